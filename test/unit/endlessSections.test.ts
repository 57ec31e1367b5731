/**
 * A fiber that a section has left behind may begin the next section, and so on for as long as the process runs.
 */
import { assert } from "@effect/vitest"
import { Context, Deferred, Effect, type Fiber, Scheduler } from "effect"
import { LeaderElection, Lock, PermitSemaphore, type RedisLock } from "effect-redis-lock"
import { CurrentOwner } from "../../packages/core/dist/internal/hold/Lease.js"
import { testInMemory } from "../kit/test.ts"

/** Notes how many schedulers of sections ask this one on one another's behalf. */
class Depth extends Scheduler.MixedScheduler {
  deepest = 0
  asked = 0

  override shouldYield(fiber: Fiber.Fiber<unknown, unknown>): boolean {
    this.asked++
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = Number.POSITIVE_INFINITY
    const frames = new Error().stack!.split("\n").filter((line) => line.includes("shouldYield"))
    Error.stackTraceLimit = stackTraceLimit
    this.deepest = Math.max(this.deepest, frames.length)
    return super.shouldYield(fiber)
  }
}

const generations = 30

type Body = Effect.Effect<unknown, unknown, RedisLock.RedisLock>

const kinds: Record<string, (body: Body, i: number) => Body> = {
  locks: (body, i) => Lock.withLock(body, `a:${i}`),
  permits: (body, i) => PermitSemaphore.withPermits(body, PermitSemaphore.make(`a:${i}`, { permits: 1 }), 1),
  "two locks": (body, i) => Lock.withLock(Lock.withLock(body, `a:${i}`), `b:${i}`),
  "a lock that is lost": (body) => Effect.ignore(Lock.withLock(Effect.andThen(body, Lock.forceRelease("a")), "a")),
  elections: (body, i) => LeaderElection.whileLeader(body, LeaderElection.make(`a:${i}`))
}

/** The terms under which the running code leads: the reference of `LeaderElection.ts`, by its key. */
const CurrentTerms = Context.Reference<ReadonlyArray<unknown>>("effect-redis-lock/CurrentTerms", {
  defaultValue: () => []
})

for (const [kind, section] of Object.entries(kinds)) {
  for (const [way, isEarly] of [
    ["after it has ended", false],
    ["before it ends", true]
  ] as const) {
    testInMemory(`Sections of ${kind}, each of which begins the next one ${way}, do not pile up`, function* () {
      const scheduler = new Depth()
      const done = yield* Deferred.make<void>()
      let around = 0
      const from = (i: number, entered: Deferred.Deferred<void>, previous: Deferred.Deferred<void>): Body =>
        Effect.gen(function* () {
          const [ended, next] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
          const body = Effect.gen(function* () {
            yield* Deferred.succeed(entered, undefined)
            yield* Deferred.await(previous)
            const { length: count } = (yield* CurrentOwner).sections
            around = Math.max(around, count, (yield* CurrentTerms).length)
            if (i === generations) return
            const begin = from(i + 1, next, ended)
            yield* Effect.forkDetach(isEarly ? begin : Effect.andThen(Deferred.await(ended), begin))
            if (isEarly) yield* Deferred.await(next)
          })
          yield* section(body, i)
          yield* Deferred.succeed(i === generations ? done : ended, undefined)
        })
      const open = yield* Deferred.make<void>()
      yield* Deferred.succeed(open, undefined)
      yield* Effect.forkDetach(Effect.provideService(from(0, open, open), Scheduler.Scheduler, scheduler))
      yield* Deferred.await(done)
      assert.isAtMost(scheduler.deepest, 8)
      assert.isAtMost(around, 6)
    })
  }
}

testInMemory(
  "Where yields are prevented, a fiber that has outlived a section, and in there another, does not yield either",
  function* () {
    const scheduler = new Depth()
    const done = yield* Deferred.make<number>()
    const outliving = (next: Body): Body =>
      Effect.gen(function* () {
        const ended = yield* Deferred.make<void>()
        yield* Lock.withLock(Effect.forkDetach(Effect.andThen(Deferred.await(ended), next)), "a")
        yield* Deferred.succeed(ended, undefined)
      })
    const steps = Effect.gen(function* () {
      const before = scheduler.asked
      for (let i = 0; i < 10; i++) yield* Effect.sync(() => i)
      yield* Deferred.succeed(done, scheduler.asked - before)
    })
    yield* outliving(outliving(steps)).pipe(
      Effect.provideService(Scheduler.Scheduler, scheduler),
      Effect.provideService(Scheduler.PreventSchedulerYield, true),
      Effect.forkDetach
    )
    assert.strictEqual(yield* Deferred.await(done), 0)
  }
)
