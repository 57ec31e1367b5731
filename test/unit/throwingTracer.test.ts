/**
 * A tracer is code of others, and may throw as a span begins or ends. What was acquired then has no holder, and must not stay held.
 */
import { assert } from "@effect/vitest"
import { Effect, Exit, Tracer } from "effect"
import {
  FairLock,
  LeaderElection,
  Lock,
  MultiLock,
  PermitSemaphore,
  ReadWriteLock,
  RedisLock,
  Semaphore
} from "effect-redis-lock"
import { metricValues, withOwnMetrics } from "../kit/metrics.ts"
import { testsThrough } from "../kit/test.ts"

const test = testsThrough<RedisLock.RedisLock>((self) => withOwnMetrics(Effect.provide(self, RedisLock.layerMemory)))

const mistake = new Error("a mistake of the tracer")

/** A span whose end throws. */
class Unending extends Tracer.NativeSpan {
  override end(): void {
    throw mistake
  }
}

/** A tracer that throws as a span of this name begins or ends, once. */
const throwing = (name: string, when: "begins" | "ends") => {
  const state = { hasThrown: false }
  const tracer = Tracer.make({
    span: (options) => {
      if (state.hasThrown || !options.name.endsWith(name)) return new Tracer.NativeSpan(options)
      state.hasThrown = true
      if (when === "begins") throw mistake
      return new Unending(options)
    }
  })
  return { state, tracer }
}

const semaphore = Semaphore.make("a", { permits: 2 })
const permits = PermitSemaphore.make("a", { permits: 2 })
const election = LeaderElection.make("a")

const isFree = Effect.map(Lock.isLocked("a"), (isLocked) => !isLocked)
const hasAll = Effect.map(Semaphore.availablePermits(semaphore), (available) => available === 2)
const hasAllPermits = Effect.map(PermitSemaphore.availablePermits(permits), (available) => available === 2)

type Check = Effect.Effect<boolean, unknown, RedisLock.RedisLock>
type Use = Effect.Effect<unknown, unknown, RedisLock.RedisLock>

const uses: Record<string, readonly [use: Use, isFree: Check, acquire: string, hold: string]> = {
  "a section": [Lock.withLock(Effect.void, "a"), isFree, "Lock.acquire", "Lock.hold"],
  "a section inside a section": [
    Effect.ignoreCause(Lock.withLock(Lock.withLock(Effect.void, "b"), "a")),
    isFree,
    "Lock.acquire",
    "Lock.hold"
  ],
  "a section that tries once": [Lock.withLockIfAvailable(Effect.void, "a"), isFree, "Lock.acquire", "Lock.hold"],
  "a scope": [Effect.scoped(Lock.scoped("a")), isFree, "Lock.acquire", "Lock.hold"],
  "a section of a fair lock": [
    Lock.withLock(Effect.void, FairLock.make("a")),
    Lock.isLocked(FairLock.make("a")).pipe(Effect.map((isLocked) => !isLocked)),
    "Lock.acquire",
    "Lock.hold"
  ],
  "a reader's section": [
    Lock.withLock(Effect.void, ReadWriteLock.make("a").readLock),
    Lock.isLocked(ReadWriteLock.make("a").readLock).pipe(Effect.map((isLocked) => !isLocked)),
    "Lock.acquire",
    "Lock.hold"
  ],
  "a section of several locks": [
    Lock.withLock(Effect.void, MultiLock.make(["a", "b"])),
    isFree,
    "Lock.acquire",
    "Lock.hold"
  ],
  "a section of permits": [
    Semaphore.withPermits(Effect.void, semaphore, 1),
    hasAll,
    "Semaphore.acquire",
    "Semaphore.hold"
  ],
  "permits of a scope": [
    Effect.scoped(PermitSemaphore.scoped(permits)),
    hasAllPermits,
    "PermitSemaphore.acquire",
    "PermitSemaphore.hold"
  ],
  "a leadership": [
    LeaderElection.whileLeader(Effect.void, election),
    Effect.map(LeaderElection.leader(election), (leader) => leader._tag === "None"),
    "LeaderElection.campaign",
    "LeaderElection.lead"
  ]
}

for (const [title, [use, isFree, acquire, hold]] of Object.entries(uses)) {
  for (const name of [acquire, hold]) {
    for (const when of ["begins", "ends"] as const) {
      test(`A tracer that throws as the span ${name} of ${title} ${when} leaves nothing held`, function* () {
        const { state, tracer } = throwing(name, when)
        const exit = yield* Effect.exit(use.pipe(Effect.withSpan("request"), Effect.withTracer(tracer)))
        assert.isTrue(state.hasThrown)
        if (title !== "a section inside a section") assert.isTrue(Exit.isFailure(exit))
        assert.isTrue(yield* isFree)
        const values = Object.entries(yield* metricValues).filter(([metric]) => metric.startsWith("redis_lock.held"))
        for (const [metric, value] of values) assert.strictEqual(value, 0, metric)
      })
    }
  }
}

test("A tracer that throws as the span of permits that anybody may give back ends gives them back", function* () {
  const { tracer } = throwing("Semaphore.acquire", "ends")
  const acquired = Semaphore.acquire(semaphore, 1).pipe(Effect.withSpan("request"), Effect.withTracer(tracer))
  assert.isTrue(Exit.isFailure(yield* Effect.exit(acquired)))
  assert.isTrue(yield* hasAll)
  assert.deepInclude(yield* metricValues, { "redis_lock.held lock.kind=semaphore": 0 })
})
