/**
 * What is different for spin locks: they ask by the clock.
 */
import { assert } from "@effect/vitest"
import { Duration, Effect, Fiber, Option, Schedule } from "effect"
import { Lock, SpinLock } from "effect-redis-lock"
import type { Contract } from "./contract.ts"

export const spinning = ({
  channels,
  denials,
  elsewhere,
  failure,
  freshLock,
  freshName,
  holdElsewhere,
  outcome,
  pass,
  succeeded,
  suite,
  until,
  untilDenied,
  virtual
}: Contract): void => {
  suite("spinning", (test) => {
    test("A spin lock is acquired without any subscription", function* () {
      const lock = yield* freshLock
      const other = yield* holdElsewhere(lock)
      const waiting = yield* untilDenied(
        lock,
        3,
        Effect.forkChild(
          Effect.all(
            [1, 2].map((n) => Lock.withLock(Effect.succeed(n), lock)),
            { concurrency: "unbounded" }
          ),
          { startImmediately: true }
        )
      )
      yield* other.letGo
      assert.deepStrictEqual(yield* succeeded(waiting), [1, 2])
      assert.isFalse(channels.has(`redisson_lock__channel:{${lock.name}}`))
    })

    test("A wait for a spin lock ends with LockTimeout when the schedule ends", function* () {
      const name = freshName()
      const lock = SpinLock.make(name, {
        schedule: Schedule.max([Schedule.spaced("20 millis"), Schedule.recurs(3)])
      })
      const other = yield* holdElsewhere(lock)
      const waiting = yield* Effect.forkChild(Lock.withLock(Effect.void, lock))
      const error = failure(yield* outcome(waiting))
      assert.strictEqual(error._tag === "LockTimeout" ? error.holder?.owner : error._tag, other.holding.owner)
      assert.strictEqual(denials(name), 4)
      yield* other.letGo
    })

    test("A lock that is free is granted to the first request, however long a client has spun for it", function* () {
      const often = Schedule.max([Schedule.spaced("400 millis"), Schedule.recurs(3)])
      const lock = SpinLock.make(freshName(), { schedule: Schedule.concat(often, Schedule.spaced("1 hour")) })
      const other = yield* holdElsewhere(lock)
      const waiting = yield* Effect.forkChild(Lock.withLock(Effect.void, lock))
      yield* until(Effect.sync(() => denials(lock.name) === 4))
      yield* other.letGo
      const entered = yield* elsewhere(Lock.withLockIfAvailable(Effect.void, lock))
      assert.isTrue(Option.isSome(entered))
      yield* Fiber.interrupt(waiting)
    })

    test("A spin lock wakes waiters of the plain lock of the name", function* () {
      const lock = yield* freshLock
      const other = yield* holdElsewhere(lock)
      const plain = Lock.make(lock.name)
      const waiting = yield* untilDenied(
        lock,
        1,
        Effect.forkChild(Lock.withLock(Effect.succeed("in"), plain), { startImmediately: true })
      )
      yield* pass(Duration.millis(50))
      yield* other.letGo
      // no time passes in virtual time: it was told
      assert.strictEqual(yield* virtual ? Fiber.join(waiting) : succeeded(waiting), "in")
      assert.isFalse(yield* elsewhere(Lock.isLocked(lock)))
    })

    if (virtual) {
      test("A spin lock asks at the pauses of the schedule", function* () {
        const lock = SpinLock.make(freshName(), { schedule: Schedule.spaced("1 second") })
        const other = yield* holdElsewhere(lock)
        const waiting = yield* Effect.forkChild(Lock.withLock(Effect.void, lock))
        yield* pass(Duration.millis(10_500))
        assert.strictEqual(denials(lock.name), 11)
        yield* other.letGo
        yield* succeeded(waiting)
      })

      test("A spin lock backs off to 128 milliseconds by default", function* () {
        const lock = yield* freshLock
        const other = yield* holdElsewhere(lock)
        const waiting = yield* Effect.forkChild(Lock.withLock(Effect.void, lock))
        yield* pass(Duration.seconds(1))
        const before = denials(lock.name)
        yield* pass(Duration.millis(1280))
        // ten pauses of 128 ms, each varied by a fifth
        const count = denials(lock.name) - before
        assert.isTrue(count >= 8 && count <= 13, String(count))
        yield* other.letGo
        yield* succeeded(waiting)
      })
    }
  })
}
