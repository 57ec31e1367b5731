/**
 * Whatever operation an interruption hits, nothing of what is built on locks stays behind: nobody leads or waits, and the next one
 * has its turn at once.
 */
import { assert, describe, it } from "@effect/vitest"
import { Cron, DateTime, Effect, Layer, Option, Schema, Stream } from "effect"
import { DistributedCron, LeaderElection, LockStore, RedisLock, RunOnce, Singleton } from "effect-redis-lock"
import { onRedis } from "../../kit/stores.ts"
import { eventually } from "../../kit/eventually.ts"
import { runOperation, typeOfKey } from "../../kit/storeOperations.ts"
import {
  assertIdle,
  holdElsewhere,
  repeatYield,
  sweepHandOver,
  testLeavesNothing,
  testsElsewhere
} from "./elsewhere.ts"
import { isWaiting, sweep } from "./sweep.ts"

const turn = Effect.promise(() => new Promise<void>((resume) => setImmediate(resume)))

/** Nobody of this client waits, holds or is watched, and what it wrote is gone. */
const assertGone = Effect.fnUntraced(function* (name: string, index: number, records: ReadonlyArray<string>) {
  yield* assertIdle(index)
  assert.strictEqual(yield* typeOfKey(name), "none", `the lock is left after ${index}`)
  for (const use of records) {
    const key = `effect_redis_lock_record:{${name}}:${use}`
    // it is cleared in the background, as readers ignore it from then on: soon, mostly
    for (let turns = 0; turns < 20 && (yield* typeOfKey(key)) !== "none"; turns++) yield* turn
    yield* eventually(`${key} is gone`, typeOfKey(key), (type) => type === "none")
  }
})

const fresh = Effect.sync(() => `coordinated:${crypto.randomUUID()}`)

/** On Redis only what does not take long: memory runs the same code of the client, and each sweep runs it hundreds of times. */
const suite = <E>(name: string, store: Layer.Layer<LockStore.LockStore, E>, onMemory: boolean) =>
  describe(`interruption on ${name}`, () => {
    it.layer(store, { excludeTestServices: true, concurrent: isWaiting(name) })(
      "of what is built on locks, at every operation",
      (it) => {
        const test = testsElsewhere(it)
        const electionOf = (name: string) => LeaderElection.make(name, { value: Schema.String })
        type Scenario = (
          election: LeaderElection.LeaderElection<string>
        ) => Effect.Effect<unknown, unknown, RedisLock.RedisLock>
        const scenarios: Record<string, Scenario> = {
          "of a campaign": (election) =>
            Effect.scoped(
              Effect.flatMap(LeaderElection.campaign(election, { proclaim: "a" }), (leadership) =>
                Effect.andThen(leadership.proclaim("b"), leadership.resign)
              )
            ),
          "of work of the leader": (election) =>
            LeaderElection.whileLeader(Effect.yieldNow, election, { proclaim: "a" }),
          // whether a channel is left is seen on the server
          ...(!onMemory && {
            "of a look at the changes of an election": (election) =>
              Stream.runDrain(Stream.take(LeaderElection.changes(election), 1))
          }),
          ...(onMemory && {
            "of a singleton": ({ name }) =>
              Effect.scoped(
                Effect.andThen(Layer.build(Layer.fresh(Singleton.layer(name, Effect.never))), repeatYield(40))
              ),
            "of work of the leader that fails": (election) => LeaderElection.whileLeader(Effect.fail("no"), election)
          })
        }
        for (const [title, program] of Object.entries(scenarios)) {
          test(`Interruption ${title} leaves nothing behind`, function* () {
            const election = electionOf(yield* fresh)
            const interruptions = yield* sweep({
              program: program(election),
              check: (index) => assertGone(election.name, index, ["leader"])
            })
            assert.isAbove(interruptions, 10)
            assert.isTrue(Option.isNone(yield* LeaderElection.leader(election)))
          })
        }

        test("Interrupting a schedule leaves no lock behind, and no tick runs twice", function* () {
          const name = yield* fresh
          const ticks: Array<number> = []
          const store = yield* LockStore.LockStore
          const keys = [name, `effect_redis_lock_record:{${name}}:tick`]
          // those of the last 100 seconds are due
          const last = Math.floor(Date.now() / 1000 - 100) * 1000
          yield* runOperation(
            store,
            "lock/acquire",
            [name, `redisson_lock_token:{${name}}`],
            ["before", 10_000, 10_000]
          )
          yield* runOperation(store, "record/write", keys, ["before", 1, last, `${last} done`, 0, "PUBLISH"])
          yield* runOperation(store, "lock/release", [name, `silent:${name}`], ["before", "PUBLISH"])
          const job = DistributedCron.layer({
            name,
            cron: Cron.parse("* * * * * *"),
            catchUp: "all",
            execute: Effect.map(DistributedCron.CurrentScheduledTime, (time) =>
              ticks.push(DateTime.toEpochMillis(time))
            )
          })
          const interruptions = yield* sweep({
            // long enough for a look, and for a tick where one is due
            program: Effect.scoped(Effect.andThen(Layer.build(Layer.fresh(job)), repeatYield(60))),
            check: (index) => assertGone(name, index, [])
          })
          assert.isAbove(interruptions, 10)
          assert.isAbove(ticks.length, 10)
          assert.deepStrictEqual(ticks, [...new Set(ticks)])
          // the last tick stays: for the test that looks at the server's keys it must not
          const [, , record] = (yield* runOperation(store, "record/read", keys)) as ReadonlyArray<string | null>
          const owner = record?.split(" ")[0]
          if (owner !== undefined) yield* runOperation(store, "record/clear", keys, [owner, "PUBLISH"])
        })

        test("Interrupting work that is done once leaves nothing behind, at every operation", function* () {
          let name = yield* fresh
          const interruptions = yield* sweep({
            program: Effect.suspend(() =>
              RunOnce.run(
                Effect.as(Effect.yieldNow, "done"),
                RunOnce.make(name, { timeToLive: 1, result: Schema.String })
              )
            ),
            check: Effect.fnUntraced(function* (index) {
              yield* assertGone(name, index, [])
              name = yield* fresh
            })
          })
          assert.isAbove(interruptions, 10)
        })

        test("Interrupting a candidate while the leader resigns leaves nothing behind", function* () {
          const election = electionOf(yield* fresh)
          // the leader resigns
          yield* sweepHandOver({
            hold: holdElsewhere((body) => LeaderElection.whileLeader(body, election)),
            waiters: [LeaderElection.whileLeader(Effect.yieldNow, election)],
            check: (index) => assertGone(election.name, index, ["leader"])
          })
        })

        if (!onMemory) return
        test("Interrupting a wait for work that is done once, while its runner fails, leaves nothing behind", function* () {
          const freshOnce = Effect.map(fresh, (name) => RunOnce.make(name, { timeToLive: 1, result: Schema.String }))
          let once = yield* freshOnce
          const waiter = Effect.suspend(() => RunOnce.run(Effect.succeed("done"), once))
          yield* sweepHandOver({
            hold: Effect.gen(function* () {
              once = yield* freshOnce
              return yield* holdElsewhere((body) =>
                Effect.ignore(RunOnce.run(Effect.andThen(body, Effect.fail("no")), once))
              )
            }),
            waiters: [waiter, waiter],
            check: (index) => assertGone(once.name, index, [])
          })
        })
      }
    )
  })

suite("memory", LockStore.layerMemory, true)
suite("Redis", onRedis, false)

testLeavesNothing(
  "Interrupted elections and work that is done once leave no channel, and no key but tokens, on the server",
  {
    prefix: "coordinated"
  }
)
