/**
 * What the holder of a lock has published beside it stays there for as long as it holds, also where Redis has lost that without the lock.
 */
import { assert, describe } from "@effect/vitest"
import { Cron, DateTime, Deferred, Effect, Exit, Fiber, Layer, Option, Schema, Scope, Stream } from "effect"
import { DistributedCron, FairLock, LeaderElection, Lock, type RedisDriver, Singleton } from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { background } from "../kit/background.ts"
import { replicatedStore } from "../kit/replicatedStore.ts"
import { listenTo, runOperation } from "../kit/storeOperations.ts"
import { as, clientOf, memoryStore, quorumOf, type Service, testStores } from "../kit/testStore.ts"
import { type Handler, type Store, wrappedStore } from "../kit/wrappedStore.ts"
import { expectWarning } from "../run/logs.ts"
import { test } from "../kit/test.ts"

const election = LeaderElection.make("a", { value: Schema.String })
const recordKey = "effect_redis_lock_record:{a}:leader"

/** In small steps, between which the fibers run. */
const pass = (millis: number) =>
  Effect.forEach(Array.from({ length: millis / 50 }), () => TestClock.adjust(50), { discard: true })

const textOf = Option.match<string, LeaderElection.Leader<string>>({
  onNone: () => "nobody",
  onSome: ({ value }) => Option.getOrElse(value, () => "nothing")
})

/** What a client sees proclaimed now. */
const proclaimed = (service: Service) => Effect.map(as(service)(LeaderElection.leader(election)), textOf)

/** What a client has seen proclaimed so far. */
const watching = Effect.fnUntraced(function* (service: Service) {
  const seen: Array<string> = []
  const look = Stream.runForEach(LeaderElection.changes(election), (leader) =>
    Effect.sync(() => void seen.push(textOf(leader)))
  )
  yield* background(as(service)(look))
  return seen
})

const campaign = (service: Service, proclaim: string) => as(service)(LeaderElection.campaign(election, { proclaim }))

/** Removes the record alone, behind everybody's back. */
const remove = Effect.fnUntraced(function* (store: Store) {
  const reply = yield* runOperation(store, "record/read", ["a", recordKey])
  const [, owner] = reply as ReadonlyArray<RedisDriver.Reply>
  assert.strictEqual(yield* runOperation(store, "record/clear", ["a", recordKey], [String(owner), "PUBLISH"]), 1)
})

/** A server with a replica, and two clients of it: the first one's operations go through `handle`. */
const site = Effect.fnUntraced(function* (handle: Handler = ({ run }) => run()) {
  const server = yield* replicatedStore
  const store = wrappedStore(server.store, handle)
  return { server, one: yield* clientOf({ store }), other: yield* clientOf(server) }
})

describe("a failover that keeps a lock", () => {
  test("Everybody sees again what a leader has proclaimed last if a failover has forgotten it", function* () {
    const { one, other, server } = yield* site()
    const seen = yield* watching(other)
    const leadership = yield* campaign(one, "old")
    yield* pass(1000)
    yield* server.lag
    yield* leadership.proclaim("new")
    yield* server.failOver
    yield* pass(1500)
    yield* leadership.ensureLeading
    assert.strictEqual(seen.at(-1), "new")
    assert.strictEqual(yield* proclaimed(other), "new")
  })

  test("A singleton that has completed is seen as completed again if a failover has forgotten that", function* () {
    const { one, other, server } = yield* site()
    const ended = yield* Deferred.make<void>()
    yield* as(one)(Layer.build(Layer.fresh(Singleton.layer("a", Deferred.await(ended)))))
    const health: Array<string> = []
    const look = Stream.runForEach(Singleton.health("a"), ({ _tag }) => Effect.sync(() => void health.push(_tag)))
    yield* background(as(other)(look))
    yield* pass(1000)
    yield* server.lag
    yield* Deferred.succeed(ended, undefined)
    yield* pass(1000)
    yield* server.failOver
    yield* pass(1500)
    assert.strictEqual(health.at(-1), "Completed")
  })

  test("A tick that a failover has forgotten, but not its lock, does not run again in a process that starts later", function* () {
    let lag: Effect.Effect<void> = Effect.void
    const { one, other, server } = yield* site(({ args, operation, run }) =>
      operation === "record/write" && String(args[3]).endsWith("20000 running") ? Effect.andThen(lag, run()) : run()
    )
    lag = server.lag
    const ticks: Array<string> = []
    const process = (name: string) =>
      DistributedCron.layer({
        name: "a",
        cron: Cron.parseUnsafe("*/10 * * * * *"),
        catchUp: "latest",
        execute: Effect.flatMap(DistributedCron.CurrentScheduledTime, (time) => {
          ticks.push(`${name} ${(DateTime.toEpochMillis(time) / 1000) % 100}`)
          return ticks.length === 2 ? Effect.never : Effect.void
        })
      })
    const scope = yield* Scope.make()
    yield* as(one)(Layer.buildWithScope(Layer.fresh(process("one")), scope))
    yield* pass(22_000)
    yield* server.failOver
    yield* pass(1000)
    yield* as(other)(Layer.build(Layer.fresh(process("other"))))
    yield* pass(1000)
    yield* Scope.close(scope, Exit.void)
    yield* pass(8000)
    assert.deepStrictEqual(ticks, ["one 10", "one 20", "other 30"])
  })

  test("What a failover has forgotten is written again within a second of when the new master accepts it", function* () {
    let isRefused = false
    const { one, other, server } = yield* site(({ fail, operation, run }) =>
      isRefused && operation === "record/write" ? fail("NotEnoughReplicas") : run()
    )
    const leadership = yield* campaign(one, "old")
    yield* pass(100)
    yield* server.lag
    yield* leadership.proclaim("new")
    isRefused = true
    yield* server.failOver
    yield* pass(2500)
    assert.strictEqual(yield* proclaimed(other), "old")
    isRefused = false
    yield* pass(1100)
    assert.strictEqual(yield* proclaimed(other), "new")
  })

  test("Nothing is written, and nobody is told, where a failover has forgotten nothing of what a leader has proclaimed", function* () {
    let writes = 0
    const { one, server } = yield* site(({ operation, run }) => {
      if (operation === "record/write") writes++
      return run()
    })
    yield* campaign(one, "here")
    yield* pass(100)
    const { heard } = yield* listenTo(server.store, recordKey)
    yield* server.failOver
    yield* pass(11_000)
    assert.strictEqual(writes, 3, "when it was elected, after the failover, and with the first renewal")
    assert.deepStrictEqual(heard, [])
  })

  test("A proclamation that a failover overtakes is seen in the end, and no earlier one after it", function* () {
    let isCut = false
    const { one, other, server } = yield* site(({ fail, operation, run }) =>
      isCut && operation === "record/write" ? Effect.andThen(run(), fail("ConnectionLost")) : run()
    )
    const seen = yield* watching(other)
    const leadership = yield* campaign(one, "first")
    yield* leadership.proclaim("old")
    yield* pass(100)
    yield* server.lag
    isCut = true
    const proclaiming = yield* background(leadership.proclaim("new"))
    yield* pass(100)
    assert.isUndefined(proclaiming.pollUnsafe())
    assert.strictEqual(yield* proclaimed(other), "new")
    isCut = false
    yield* server.failOver
    yield* pass(12_000)
    assert.deepStrictEqual(proclaiming.pollUnsafe(), Exit.void)
    assert.strictEqual(yield* proclaimed(other), "new")
    assert.strictEqual(seen.at(-1), "new")
  })

  test("Of two proclamations the later one is written again, also if the earlier one was confirmed after it", function* () {
    const { one, other, server } = yield* site(({ args, operation, run }) =>
      operation === "record/write" && args[3] === '"slow"' ? Effect.tap(run(), Effect.sleep("1 second")) : run()
    )
    const leadership = yield* campaign(one, "old")
    yield* server.lag
    const slow = yield* background(leadership.proclaim("slow"))
    yield* leadership.proclaim("new")
    yield* pass(1100)
    yield* Fiber.join(slow)
    yield* server.failOver
    yield* pass(1000)
    assert.strictEqual(yield* proclaimed(other), "new")
  })

  test("A proclamation that has failed is not written later", function* () {
    let isFull = false
    const { one, other, server } = yield* site(({ fail, operation, run }) =>
      isFull && operation === "record/write" ? fail("WrongType") : run()
    )
    const leadership = yield* campaign(one, "old")
    isFull = true
    assert.propertyVal(yield* Effect.flip(leadership.proclaim("new")), "reason", "WrongType")
    isFull = false
    yield* server.failOver
    yield* pass(12_000)
    assert.strictEqual(yield* proclaimed(other), "old")
  })
})

test("A leader that a failover has deposed writes nothing over what its successor has proclaimed", function* () {
  expectWarning(/leader's scope has closed, but resigning failed/)
  let isSlow = false
  const { one, other, server } = yield* site(({ run }) => (isSlow ? Effect.delay(Effect.suspend(run), 200) : run()))
  yield* server.lag
  const deposed = yield* campaign(one, "deposed")
  yield* pass(100)
  isSlow = true
  yield* server.failOver
  const successor = yield* campaign(other, "successor")
  yield* pass(500)
  assert.isFalse(yield* deposed.isLeading)
  assert.isTrue(yield* successor.isLeading)
  assert.strictEqual(yield* proclaimed(other), "successor")
})

describe("a record that is removed alone", () => {
  test("What a leader has proclaimed is there again after its next renewal if somebody has removed it", function* () {
    const store = yield* memoryStore(0)
    const [one, other] = [yield* clientOf({ store }), yield* clientOf({ store })]
    const seen = yield* watching(other)
    const leadership = yield* campaign(one, "old")
    yield* leadership.proclaim("here")
    yield* pass(1000)
    yield* remove(store)
    yield* pass(1000)
    assert.strictEqual(seen.at(-1), "nobody")
    // a third of a lease of 30 seconds
    yield* pass(9000)
    assert.strictEqual(seen.at(-1), "here")
  })

  test("On a quorum, too, it is there again after the next renewal", function* () {
    const stores = yield* testStores(3)
    const [one, other] = [yield* quorumOf(stores), yield* quorumOf(stores)]
    yield* campaign(one, "here")
    for (const { store } of stores) yield* remove(store)
    assert.strictEqual(yield* proclaimed(other), "nobody")
    yield* pass(10_500)
    assert.strictEqual(yield* proclaimed(other), "here")
  })
})

test("A leader that has resigned is not announced again while another hold of its own keeps the lock", function* () {
  const { one, other } = yield* site()
  yield* Effect.gen(function* () {
    const leadership = yield* LeaderElection.campaign(election, { proclaim: "here" })
    yield* Lock.scoped(FairLock.make("a"))
    yield* leadership.resign
    yield* pass(500)
    assert.strictEqual(yield* proclaimed(other), "nobody")
    // past a renewal
    yield* pass(15_000)
    assert.strictEqual(yield* proclaimed(other), "nobody")
  }).pipe(as(one), Effect.scoped)
})
