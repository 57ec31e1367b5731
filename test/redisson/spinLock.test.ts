/**
 * What Redisson's own tests verify of its spin lock, by the numbers of the project's list of behaviours. 58 is tested on a
 * cluster. A release by a stranger (51) cannot be asked for: there is no holding to release.
 */
import { RedisServer } from "@effect-redis-lock/testing"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { Lock, SpinLock } from "effect-redis-lock"
import {
  clients,
  deadClient,
  elapsed,
  fifteenTasks,
  forceRelease,
  held,
  holdCounts,
  hundredClients,
  interruptedWaiterNeverAcquires,
  isHeldByCurrentThread,
  isLocked,
  leaseExpires,
  lockUnlockTwice,
  onBothStores,
  onlyHolderReleases,
  otherThread,
  reentrant,
  sixteenClients,
  storeAt,
  tryLock,
  waitEnds
} from "./kit.ts"
import { expectWarning } from "../run/logs.ts"
import { freshName } from "../kit/names.ts"

const make = (name: string) => SpinLock.make(name)

onBothStores("RSpinLock", (it) => {
  it.effect("46. lock and unlock twice", lockUnlockTwice(make))
  it.effect("47. isLocked before, during and after; also from another thread", isLocked(make))
  it.effect("48. held by the current thread, and not by another", isHeldByCurrentThread(make))
  it.effect("49. hold count: 0, 1, 2, 1, 0", holdCounts(make))
  it.effect("50. trying is re-entrant, and refused to others also after one of two releases", reentrant(make))
  it.effect("51. nobody but the holder can release", onlyHolderReleases(make))
  it.effect("52. force release frees it", forceRelease(make))
  it.effect("53. a lease hands over when it is over, and the late release fails", leaseExpires(make))
  it.effect("54. waiting against a foreign holder ends when waitTime is over", waitEnds(make))
  it.effect("55. an interrupted wait does not acquire", interruptedWaiterNeverAcquires(make))
  it.effect("56. a dead client: free after the watchdog's lease", deadClient(make))

  it.effect("59. an acquisition stays pending while the lock is held, and completes soon after the release", () =>
    Effect.gen(function* () {
      const lock = make(freshName("redisson"))
      const holder = yield* held(lock)
      const pending = yield* Effect.forkChild(Lock.withLock(Effect.succeed("in"), lock), { startImmediately: true })
      // time to come in, which it must not
      yield* Effect.sleep("100 millis")
      assert.isUndefined(pending.pollUnsafe())
      yield* holder.letGo
      // the longest pause is 128 ms
      const { isBelow } = yield* elapsed(Fiber.join(pending))
      isBelow(1000)
    })
  )

  it.effect("60. a timed acquisition is pending while the lock is held, and gets it soon after the release", () =>
    Effect.gen(function* () {
      const lock = make(freshName("redisson"))
      const holder = yield* held(lock)
      const pending = yield* Lock.withLock(Effect.succeed("in"), lock, { waitTime: "1 minute" }).pipe(
        Effect.forkChild({ startImmediately: true })
      )
      // time to come in, which it must not
      yield* Effect.sleep("100 millis")
      assert.isUndefined(pending.pollUnsafe())
      yield* holder.letGo
      assert.strictEqual(yield* Fiber.join(pending), "in")
    })
  )

  it.effect("61. a timed acquisition gives up when the holder keeps the lock", () =>
    Effect.gen(function* () {
      const lock = make(freshName("redisson"))
      const holder = yield* held(lock)
      const error = yield* Effect.flip(otherThread(Lock.withLock(Effect.void, lock, { waitTime: 300 })))
      assert.strictEqual(error._tag, "LockTimeout")
      assert.isTrue(yield* holder.holding.isHeld)
      yield* holder.letGo
    })
  )

  it.effect("62. asking once: refused while another thread holds, granted when free", () =>
    Effect.gen(function* () {
      const lock = make(freshName("redisson"))
      const holder = yield* held(lock)
      assert.isFalse(yield* tryLock(lock))
      yield* holder.letGo
      assert.isTrue(yield* tryLock(lock))
    })
  )

  it.effect("63. concurrency: 15 tasks of one client", fifteenTasks(make))
  it.effect("63. concurrency: 16 clients of 100 sections", sixteenClients(make))
  it.effect("63. concurrency: 100 clients of one section", hundredClients(make))
})

describe("a spin lock on a Redis of its own", () => {
  it.live("57. with the server down, acquiring fails with an error instead of spinning for ever", () =>
    Effect.gen(function* () {
      expectWarning(/^Lost the connection to Redis; connecting again\./)
      const server = yield* RedisServer.start()
      yield* Effect.gen(function* () {
        assert.isTrue(yield* tryLock(make("down")))
        yield* server.kill
        for (const ask of [
          Effect.asVoid(Lock.scoped(make("down"), { waitTime: "1 second" })),
          Effect.asVoid(Lock.tryScoped(make("down")))
        ]) {
          assert.strictEqual((yield* Effect.flip(Effect.scoped(ask)))._tag, "LockStoreError")
        }
      }).pipe(Effect.provide(Layer.provide(clients, storeAt(server.url))))
    }).pipe(Effect.scoped)
  )
})
