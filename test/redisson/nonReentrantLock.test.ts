/**
 * What Redisson's own tests verify of its non-reentrant locks, plain and fair, by the numbers of the project's list of
 * behaviours.
 */
import { assert } from "@effect/vitest"
import { Effect, Fiber, Option } from "effect"
import { Lock, NonReentrantLock } from "effect-redis-lock"
import { held, type Make, onBothStores, otherThread, tryLock } from "./kit.ts"
import { freshName } from "../kit/names.ts"

const contenderWaits = (make: Make) => () =>
  Effect.gen(function* () {
    const lock = make(freshName("redisson"))
    const holder = yield* held(lock)
    const contender = yield* Effect.forkChild(Lock.withLock(Effect.succeed("in"), lock), { startImmediately: true })
    // time to come in, which it must not
    yield* Effect.sleep("300 millis")
    assert.isUndefined(contender.pollUnsafe())
    yield* holder.letGo
    assert.strictEqual(yield* Fiber.join(contender), "in")
    assert.isFalse(yield* Lock.isLocked(lock))
  })

/** Every way to ask again, through other handles. */
const refusals = (lock: ReturnType<Make>, handle: ReturnType<Make>) =>
  Effect.forEach(
    [
      Effect.asVoid(Lock.withLock(Effect.void, handle)),
      Effect.asVoid(Lock.withLockIfAvailable(Effect.void, handle)),
      Effect.asVoid(Lock.withLock(Effect.void, handle, { waitTime: "100 millis" })),
      Effect.asVoid(Effect.scoped(Lock.tryScoped(handle)))
    ],
    (again) => Effect.map(Effect.flip(again), ({ _tag }) => _tag)
  ).pipe(Lock.withLock(lock))

const allRefused = ["LockReentered", "LockReentered", "LockReentered", "LockReentered"]

const holderIsRefused = (make: Make) => () =>
  Effect.gen(function* () {
    const lock = make(freshName("redisson"))
    assert.deepStrictEqual(yield* refusals(lock, lock), allRefused)
  })

const oneReleaseFrees = (make: Make) => () =>
  Effect.gen(function* () {
    const lock = make(freshName("redisson"))
    const asked = Effect.gen(function* () {
      const holding = Option.getOrThrow(yield* Lock.tryScoped(lock))
      yield* Effect.flip(Lock.scoped(lock))
      yield* Effect.flip(Lock.tryScoped(lock))
      assert.strictEqual(yield* Lock.holdCount(lock), 1)
      assert.isFalse(yield* otherThread(tryLock(lock)))
      yield* holding.release
      assert.isFalse(yield* Lock.isLocked(lock))
    })
    yield* Effect.scoped(asked)
    assert.isTrue(yield* tryLock(lock))
  })

const twoHandles = (make: Make) => () =>
  Effect.gen(function* () {
    const name = freshName("redisson")
    assert.deepStrictEqual(yield* refusals(make(name), make(name)), allRefused)
    assert.isFalse(yield* Lock.isLocked(make(name)))
  })

onBothStores("RLock that is not reentrant", (it) => {
  const make: Make = (name) => NonReentrantLock.make(name)
  it.effect("66. a contender is kept out while it is held, and gets it after the release", contenderWaits(make))
  it.effect("67. asking again fails, by every way of asking", holderIsRefused(make))
  it.effect("68. after the refusals it is still held, once, and one release frees it", oneReleaseFrees(make))
  it.effect("69. the same across two handles of the name", twoHandles(make))
})

onBothStores("fair RLock that is not reentrant", (it) => {
  const make: Make = (name) => NonReentrantLock.make(name, { fair: true })
  it.effect("70. a contender is kept out while it is held, and gets it after the release", contenderWaits(make))
  it.effect("70. asking again fails, by every way of asking", holderIsRefused(make))
  it.effect("70. after the refusals it is still held, once, and one release frees it", oneReleaseFrees(make))
  it.effect("70. the same across two handles of the name", twoHandles(make))
})
