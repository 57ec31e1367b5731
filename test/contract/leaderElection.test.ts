/**
 * What elections must do on every store: on memory under virtual time, and on Redis in real time.
 */
import { failure } from "../kit/exits.ts"
import { assert, describe } from "@effect/vitest"
import { Deferred, Effect, Fiber, Option, Result, Schedule, Schema, Stream } from "effect"
import {
  FairLock,
  InvalidLockName,
  LeaderElection,
  Lock,
  LockLost,
  NonReentrantLock,
  RedisLock
} from "effect-redis-lock"
import { background } from "../kit/background.ts"
import { freshName } from "../kit/names.ts"
import { expectWarning } from "../run/logs.ts"
import { type Outcome, deaf, noting, recording, wrappedStore } from "../kit/wrappedStore.ts"
import { type Backend, backends, coordinated } from "./coordinated.ts"

const addresses = (name = freshName("election")) => LeaderElection.make(name, { value: Schema.String })

const contract = (backend: Backend): void => {
  const { elsewhere, joined, over, suite, until, virtual } = coordinated(backend)

  /** Leads in a fiber, as another client, until told to resign. */
  const leadElsewhere = Effect.fnUntraced(function* <A>(
    election: LeaderElection.LeaderElection<A>,
    options?: LeaderElection.CampaignOptions<A>
  ) {
    const elected = yield* Deferred.make<LeaderElection.Leadership<A>>()
    const told = yield* Deferred.make<void>()
    const fiber = yield* background(
      Effect.gen(function* () {
        yield* Deferred.succeed(elected, yield* LeaderElection.campaign(election, options))
        yield* Deferred.await(told)
      }).pipe(Effect.scoped, elsewhere)
    )
    return {
      elected: Deferred.await(elected),
      isElected: Deferred.isDone(elected),
      resign: Effect.andThen(Deferred.succeed(told, undefined), Fiber.join(fiber)),
      fiber
    }
  })

  /** What a stream of changes has emitted so far. */
  const watching = Effect.fnUntraced(function* <A>(election: LeaderElection.LeaderElection<A>) {
    const seen: Array<string> = []
    const fiber = yield* background(
      Stream.runForEach(LeaderElection.changes(election), (leader) =>
        Effect.sync(() =>
          seen.push(
            Option.match(leader, {
              onNone: () => "nobody",
              onSome: ({ value }) => `leader of ${Option.getOrElse(value, () => "nothing")}`
            })
          )
        )
      )
    )
    return { seen, fiber }
  })

  describe(`an election on ${backend.name}`, () => {
    suite("an election", (test) => {
      test("One candidate leads, and the next one of a higher term as soon as it resigns", function* () {
        const election = addresses()
        assert.deepStrictEqual(yield* LeaderElection.leader(election), Option.none())
        const first = yield* leadElsewhere(election)
        const leadership = yield* first.elected
        const second = yield* leadElsewhere(election)
        assert.isTrue(yield* leadership.isLeading)
        yield* leadership.ensureLeading
        assert.isFalse(yield* second.isElected)
        // no time passes but that of the server
        yield* first.resign
        assert.isAbove(Number((yield* second.elected).term), Number(leadership.term))
        assert.instanceOf(yield* Effect.flip(leadership.ensureLeading), LockLost)
        yield* second.resign
        assert.deepStrictEqual(yield* LeaderElection.leader(election), Option.none())
      })

      test("Everybody can read who leads, its term and what it has proclaimed", function* () {
        const election = LeaderElection.make(freshName("election"), {
          value: Schema.Struct({ host: Schema.String, since: Schema.Date })
        })
        const value = { host: "a b\n", since: new Date(0) }
        const leadership = yield* LeaderElection.campaign(election, { proclaim: value })
        const { owner, term } = leadership
        const seen = elsewhere(LeaderElection.leader(election))
        assert.deepStrictEqual(yield* seen, Option.some({ owner, term, value: Option.some(value) }))
        yield* leadership.proclaim({ ...value, host: "b" })
        assert.deepStrictEqual(yield* seen, Option.some({ owner, term, value: Option.some({ ...value, host: "b" }) }))
        yield* leadership.resign
        assert.deepStrictEqual(yield* seen, Option.none())
        yield* leadership.resign
      })

      test("What a leader proclaims through an election bound to a service, everybody else can read, and the reverse", function* () {
        const election = addresses()
        const bound = LeaderElection.provide(election, yield* RedisLock.RedisLock)
        for (const [leads, reads] of [
          [bound, election],
          [election, bound]
        ] as const) {
          yield* Effect.gen(function* () {
            yield* LeaderElection.campaign(leads, { proclaim: "here" })
            const leader = Option.getOrThrow(yield* LeaderElection.leader(reads))
            assert.deepStrictEqual(leader.value, Option.some("here"))
          }).pipe(Effect.scoped)
        }
      })

      test("A leader that proclaims nothing is seen without a value", function* () {
        const election = LeaderElection.make(freshName("election"))
        const { owner, term } = yield* LeaderElection.campaign(election)
        const seen = yield* LeaderElection.leader(election)
        assert.deepStrictEqual(seen, Option.some({ owner, term, value: Option.none() }))
      })

      test("A value that the Schema does not decode is left out, with a warning", function* () {
        expectWarning(/proclaimed a value that this process's Schema cannot decode/)
        const election = addresses()
        const other = LeaderElection.make(election.name, { value: Schema.Number })
        yield* LeaderElection.campaign(election, { proclaim: "ten" })
        const seen = yield* LeaderElection.leader(other)
        assert.isTrue(Option.isNone(Option.getOrThrow(seen).value))
      })

      test("A value that a leader proclaims once more by a late command does not replace its newer one", function* () {
        const election = addresses()
        const writes: Array<() => Outcome> = []
        yield* Effect.gen(function* () {
          const leadership = yield* LeaderElection.campaign(election, { proclaim: "old" })
          yield* leadership.proclaim("new")
          assert.lengthOf(writes, 2)
          yield* writes[0]!()
          const seen = Option.getOrThrow(yield* LeaderElection.leader(election))
          assert.deepStrictEqual(seen.value, Option.some("new"))
        }).pipe(
          Effect.scoped,
          over((store) =>
            wrappedStore(
              store,
              noting(({ operation, run }) => void (operation === "record/write" && writes.push(run)))
            )
          )
        )
      })

      test("A leader that resigns takes back nothing that the next one has proclaimed, however late it does so", function* () {
        const election = addresses()
        const clears: Array<() => Outcome> = []
        const next = yield* Effect.gen(function* () {
          const first = yield* LeaderElection.campaign(election, { proclaim: "first" })
          yield* first.resign
          yield* until(() => clears.length === 1)
          const next = yield* leadElsewhere(election, { proclaim: "next" })
          yield* next.elected
          yield* clears[0]!()
          return next
        }).pipe(
          Effect.scoped,
          over((store) =>
            wrappedStore(
              store,
              noting(({ operation, run }) => void (operation === "record/clear" && clears.push(run)))
            )
          )
        )
        const seen = Option.getOrThrow(yield* LeaderElection.leader(election))
        assert.deepStrictEqual(seen.value, Option.some("next"))
        yield* next.resign
      })

      test("What a leader has proclaimed is taken away after its lock is released, whether it resigns or its scope closes", function* () {
        for (const resigns of [true, false]) {
          const asked: Array<string> = []
          yield* LeaderElection.campaign(addresses(), { proclaim: "here" }).pipe(
            Effect.flatMap(({ resign }) => (resigns ? resign : Effect.void)),
            Effect.scoped,
            over(recording(asked))
          )
          const ending = asked.filter((operation) => /release|clear/.test(operation))
          assert.deepStrictEqual(ending, ["fair_lock/release", "record/clear"])
        }
      })

      test("A candidate that is elected but cannot announce it resigns at once, and its campaign fails", function* () {
        const election = addresses()
        yield* Effect.gen(function* () {
          const error = yield* Effect.flip(LeaderElection.campaign(election, { proclaim: "here" }))
          assert.strictEqual(error._tag === "LockStoreError" ? error.reason : error._tag, "WrongType")
          // while its scope is open
          assert.isFalse(yield* Lock.isLocked(election.name))
        }).pipe(
          Effect.scoped,
          over((store) =>
            wrappedStore(store, ({ fail, operation, run }) =>
              operation === "record/write" ? fail("WrongType") : run()
            )
          )
        )
      })

      test("A leader that was deposed without knowing it can proclaim nothing, and learns of it by that", function* () {
        const election = addresses()
        expectWarning(/leader's scope has closed, but resigning failed/)
        const stale = yield* LeaderElection.campaign(election, { proclaim: "stale" })
        yield* elsewhere(Lock.forceRelease(election.name))
        const next = yield* leadElsewhere(election, { proclaim: "next" })
        yield* next.elected
        assert.isTrue(yield* stale.isLeading)
        const lost = yield* Effect.flip(stale.proclaim("stale again"))
        assert.instanceOf(lost, LockLost)
        assert.strictEqual(lost.reason, "NotOwner")
        assert.isFalse(yield* stale.isLeading)
        assert.instanceOf(yield* Effect.flip(stale.awaitLost), LockLost)
        const seen = yield* LeaderElection.leader(election)
        assert.deepStrictEqual(
          Option.flatMap(seen, ({ value }) => value),
          Option.some("next")
        )
        yield* next.resign
      })

      test("What a dead leader has proclaimed is not taken for that of a holder who proclaims nothing", function* () {
        const election = addresses()
        expectWarning(/leader's scope has closed, but resigning failed/)
        yield* LeaderElection.campaign(election, { proclaim: "dead" })
        yield* elsewhere(Lock.forceRelease(election.name))
        assert.deepStrictEqual(yield* LeaderElection.leader(election), Option.none())
        yield* elsewhere(
          Lock.withLock(
            Effect.flatMap(LeaderElection.leader(election), (leader) =>
              Effect.sync(() => assert.deepStrictEqual(leader, Option.none()))
            ),
            election.name
          )
        )
      })

      test("Each campaign is a candidate of its own, also in the same fiber and scope", function* () {
        const election = addresses()
        const first = yield* LeaderElection.campaign(election)
        const second = yield* background(LeaderElection.campaign(election))
        yield* first.resign
        assert.isAbove(Number((yield* Fiber.join(second)).term), Number(first.term))
      })

      test("A leader that locks the name of its election re-enters, and does not wait for itself", function* () {
        const { name } = addresses()
        const locked = (lock: Lock.Lock | string) =>
          Effect.map(Effect.result(Lock.withLock(Effect.void, lock as Lock.Lock, { waitTime: 0 })), (result) =>
            Result.isSuccess(result) ? "entered" : (result.failure as { readonly _tag: string })._tag
          )
        const work = Effect.all({
          plain: locked(name),
          fair: locked(FairLock.make(name)),
          forked: Effect.flatMap(Effect.forkChild(locked(name)), Fiber.join),
          nonReentrant: locked(NonReentrantLock.make(name) as Lock.Lock),
          another: elsewhere(locked(name))
        })
        const expected = {
          plain: "entered",
          fair: "entered",
          forked: "entered",
          nonReentrant: "LockReentered",
          another: "LockTimeout"
        }
        assert.deepStrictEqual(yield* LeaderElection.whileLeader(work, LeaderElection.make(name)), expected)
        const leadership = yield* LeaderElection.campaign(LeaderElection.make(name))
        assert.strictEqual(yield* locked(name), "entered")
        assert.strictEqual(yield* Effect.flatMap(Effect.forkDetach(locked(name)), Fiber.join), "LockTimeout")
        yield* leadership.ensureLeading
      })

      test("Candidates are elected in the order in which they came", function* () {
        const election = addresses()
        const order: Array<string> = []
        const first = yield* leadElsewhere(election)
        yield* first.elected
        const others = []
        for (const name of ["a", "b", "c"]) {
          const candidate = yield* leadElsewhere(election, { proclaim: name })
          others.push(candidate)
          // until it has its place
          yield* Effect.yieldNow
          if (!virtual) yield* Effect.sleep("30 millis")
        }
        yield* first.resign
        for (const candidate of others) {
          yield* candidate.elected
          order.push(Option.getOrThrow(Option.getOrThrow(yield* LeaderElection.leader(election)).value))
          yield* candidate.resign
        }
        assert.deepStrictEqual(order, ["a", "b", "c"])
      })

      test("An election that is not fair elects just as well", function* () {
        const election = LeaderElection.make(freshName("election"), { fair: false })
        const first = yield* leadElsewhere(election)
        const { term } = yield* first.elected
        const second = yield* leadElsewhere(election)
        yield* first.resign
        assert.isAbove(Number((yield* second.elected).term), Number(term))
        yield* second.resign
      })

      test("An invalid name fails where the election is used, and an election can be bound to a service", function* () {
        const nameless = LeaderElection.make("")
        for (const use of [
          LeaderElection.campaign(nameless),
          LeaderElection.leader(nameless),
          Stream.runDrain(LeaderElection.changes(nameless)),
          LeaderElection.whileLeader(Effect.void, nameless)
        ]) {
          assert.instanceOf(yield* Effect.flip(use as Effect.Effect<unknown, unknown>), InvalidLockName)
        }
        const election = addresses()
        const bound = LeaderElection.provide(election, yield* RedisLock.RedisLock)
        const { term } = yield* LeaderElection.campaign(bound)
        assert.strictEqual(Option.getOrThrow(yield* LeaderElection.leader(bound)).term, term)
        assert.isTrue(LeaderElection.isLeaderElection(bound))
        assert.isFalse(LeaderElection.isLeaderElection("scheduler"))
      })
    })

    suite("the changes of an election", (test) => {
      test("Changes tell who leads by messages alone, and repeat nothing", function* () {
        const election = addresses()
        const { seen } = yield* watching(election)
        yield* until(() => seen.length === 1)
        const first = yield* leadElsewhere(election, { proclaim: "a" })
        const leadership = yield* first.elected
        yield* until(() => seen.length === 2)
        yield* leadership.proclaim("b")
        yield* until(() => seen.length === 3)
        yield* first.resign
        yield* until(() => seen.length === 4)
        const second = yield* leadElsewhere(election, { proclaim: "c" })
        yield* second.elected
        yield* until(() => seen.length === 5)
        assert.deepStrictEqual(seen, ["nobody", "leader of a", "leader of b", "nobody", "leader of c"])
        yield* second.resign
      })

      test("Changes are seen within the fallback interval where no message arrives, without asking more often", function* () {
        const election = addresses()
        let reads = 0
        const startedAt = virtual ? 0 : performance.now()
        yield* Effect.gen(function* () {
          const { seen } = yield* watching(election)
          yield* until(() => seen.length === 1)
          const first = yield* leadElsewhere(election, { proclaim: "a" })
          yield* first.elected
          yield* until(() => seen.length === 2)
          yield* first.resign
          yield* until(() => seen.length === 3)
          assert.deepStrictEqual(seen, ["nobody", "leader of a", "nobody"])
        }).pipe(
          over(
            (store) =>
              wrappedStore(
                deaf(store),
                noting(({ operation }) => void (operation === "record/read" && reads++))
              ),
            { fallbackInterval: "200 millis" }
          )
        )
        // the first look, the one when it had subscribed, and one in an interval, which is jittered by a fifth
        const most = virtual ? 6 : 3 + (performance.now() - startedAt) / 160
        assert.isAtMost(reads, most)
      })
    })

    suite("work of the leader", (test) => {
      test("What ends by itself ends the leadership, with its result", function* () {
        const election = addresses()
        const result = yield* LeaderElection.leader(election).pipe(
          LeaderElection.whileLeader(election, { proclaim: "here" })
        )
        assert.deepStrictEqual(Option.getOrThrow(result).value, Option.some("here"))
        assert.deepStrictEqual(yield* LeaderElection.leader(election), Option.none())
      })

      test("A loss interrupts the work, and the campaign begins again", function* () {
        const election = addresses()
        const terms: Array<bigint> = []
        let interruptions = 0
        const work = Effect.gen(function* () {
          terms.push(Option.getOrThrow(yield* LeaderElection.leader(election)).term)
          if (terms.length === 1) yield* Effect.never
          return "done"
        }).pipe(Effect.onInterrupt(() => Effect.sync(() => interruptions++)))
        const fiber = yield* background(LeaderElection.whileLeader(work, election))
        yield* until(() => terms.length === 1)
        yield* Lock.forceRelease(election.name)
        assert.strictEqual(yield* joined(fiber), "done")
        assert.strictEqual(interruptions, 1)
        assert.isAbove(Number(terms[1]), Number(terms[0]))
      })

      test("Work that finds out itself that it no longer leads is no failure: the campaign begins again", function* () {
        const election = addresses()
        let runs = 0
        const work = Effect.gen(function* () {
          if (++runs === 2) return "done"
          const { proclaim } = yield* LeaderElection.currentLeadership(election)
          yield* elsewhere(Lock.forceRelease(election.name))
          yield* proclaim("here")
          return "not reached"
        })
        assert.strictEqual(yield* joined(yield* background(LeaderElection.whileLeader(work, election))), "done")
      })

      test("Work that has succeeded is not run again if its leadership turns out to be lost: that is a LockLost", function* () {
        for (const options of [{}, { restart: Schedule.spaced("10 millis") }]) {
          const election = addresses()
          let runs = 0
          const work = Effect.suspend(() =>
            ++runs === 1 ? Effect.as(elsewhere(Lock.forceRelease(election.name)), "done") : Effect.succeed("done twice")
          )
          const fiber = yield* background(Effect.exit(LeaderElection.whileLeader(work, election, options)))
          const error = failure(yield* joined(fiber))
          assert.instanceOf(error, LockLost)
          assert.strictEqual(error.reason, "NotOwner")
          assert.strictEqual(runs, 1)
        }
      })

      test("Work that has succeeded is not run again if Redis refuses the resignation: the failure says it is done", function* () {
        const election = addresses()
        let runs = 0
        let refused = 0
        const work = Effect.sync(() => void runs++)
        const error = yield* Effect.flip(
          LeaderElection.whileLeader(work, election, { restart: Schedule.spaced("10 millis") })
        ).pipe(
          over((store) =>
            wrappedStore(store, ({ fail, operation, run }) =>
              operation === "fair_lock/release" && refused++ === 0 ? fail("NoPermission") : run()
            )
          )
        )
        assert.strictEqual(error._tag, "LockStoreError")
        assert.include(error.message, "the work is done")
        assert.strictEqual(runs, 1)
      })

      test("Each of two clients that run one effect of whileLeader restarts it after its own failures", function* () {
        const election = addresses()
        const releasing = yield* Deferred.make<void>()
        const asked = yield* Deferred.make<void>()
        let runs = 0
        const work = Effect.suspend(() => (++runs === 1 ? Effect.fail("no") : Effect.succeed("done")))
        const leading = LeaderElection.whileLeader(work, election, { restart: Schedule.spaced("10 millis") })
        const first = yield* background(
          leading.pipe(
            over((store) =>
              wrappedStore(store, ({ operation, run }) =>
                operation === "fair_lock/release"
                  ? Effect.andThen(Deferred.succeed(releasing, undefined), Effect.andThen(Deferred.await(asked), run()))
                  : run()
              )
            )
          )
        )
        yield* Deferred.await(releasing)
        const second = yield* background(
          leading.pipe(
            over((store) =>
              wrappedStore(
                store,
                noting(
                  ({ operation }) => void (operation === "fair_lock/acquire" && Deferred.doneUnsafe(asked, Effect.void))
                )
              )
            )
          )
        )
        assert.strictEqual(yield* joined(second), "done")
        assert.strictEqual(yield* joined(first), "done")
        assert.strictEqual(runs, 3)
      })

      test("Work under campaign that asks for its current leadership is told what to do instead", function* () {
        const election = addresses()
        yield* LeaderElection.campaign(election)
        const error = yield* Effect.flip(LeaderElection.currentLeadership(election))
        assert.strictEqual(error._tag, "NotLockOwner")
        assert.include(error.message, election.name)
        assert.match(error.message, /LeaderElection\.whileLeader.*LeaderElection\.campaign/s)
        assert.notMatch(error.message, /withLock|not held/)
      })

      test("Work that loses another lock has failed", function* () {
        const other = freshName("other")
        const work = Lock.withLock(
          Effect.andThen(
            elsewhere(Lock.forceRelease(other)),
            Effect.flatMap(Lock.currentHolding(other), (holding) => holding.renew())
          ),
          other
        )
        const error = yield* Effect.flip(LeaderElection.whileLeader(work, addresses()))
        assert.strictEqual(error._tag === "LockLost" ? error.lock : error._tag, other)
      })

      test("Work that fails resigns and fails the whole, where nothing says when to restart it", function* () {
        const election = addresses()
        const error = yield* Effect.flip(LeaderElection.whileLeader(Effect.fail("no"), election))
        assert.strictEqual(error, "no")
        assert.isFalse(yield* Lock.isLocked(election.name))
      })

      test("Work that fails resigns before it is restarted, so that another candidate has its turn", function* () {
        const election = addresses()
        let runs = 0
        const other = yield* Deferred.make<void>()
        const work = Effect.suspend(() => {
          if (++runs === 2) return Effect.succeed("restarted")
          return Effect.andThen(Deferred.await(other), Effect.fail("no"))
        })
        const fiber = yield* background(
          LeaderElection.whileLeader(work, election, { restart: Schedule.spaced("50 millis") })
        )
        yield* until(() => runs === 1)
        const rival = yield* leadElsewhere(election)
        yield* Deferred.succeed(other, undefined)
        yield* rival.elected
        assert.isUndefined(fiber.pollUnsafe())
        yield* rival.resign
        assert.strictEqual(yield* joined(fiber), "restarted")
      })
    })
  })
}

for (const backend of backends) contract(backend)
