/**
 * What Redisson's own tests verify of its read-write lock, by the numbers of the project's list of behaviours, where no other test
 * here proves it. 113 is tested on a cluster. Leases are shortened about tenfold, in proportion.
 */
import { assert } from "@effect/vitest"
import { type Duration, Effect, Fiber, Schedule, Scope } from "effect"
import { Lock, ReadWriteLock } from "effect-redis-lock"
import {
  abandoned,
  elapsed,
  held,
  hastyClient,
  onBothStores,
  dyingClient,
  otherClient,
  otherThread,
  renewed,
  tryLock,
  watchdogMillis
} from "./kit.ts"
import { freshName } from "../kit/names.ts"

const readLock = (name: string) => ReadWriteLock.make(name).readLock
const writeLock = (name: string) => ReadWriteLock.make(name).writeLock
const fresh = Effect.sync(() => ReadWriteLock.make(freshName("redisson")))

/** Acquires by hand, for holds that end in any order. */
const hold = (lock: Parameters<typeof tryLock>[0], options?: Lock.AcquireOptions) =>
  Effect.flatMap(Effect.scope, (scope) => Scope.provide(Lock.scoped(lock, options), scope))

const canRead = (name: string) => otherThread(tryLock(readLock(name)))
const canWrite = (name: string) => otherThread(tryLock(writeLock(name)))

onBothStores("RReadWriteLock, sharing and exclusion", (it) => {
  it.effect("101. a writer blocks other threads' readers, until it has released for the last time", () =>
    Effect.gen(function* () {
      const { writeLock } = yield* fresh
      const outer = yield* hold(writeLock)
      const inner = yield* hold(writeLock)
      assert.isFalse(yield* canRead(writeLock.name))
      yield* inner.release
      assert.isFalse(yield* canRead(writeLock.name))
      yield* outer.release
      assert.isTrue(yield* canRead(writeLock.name))
    })
  )

  it.effect("103. a writer may read; when it writes no more, nobody can write, itself included", () =>
    Effect.gen(function* () {
      const { readLock, writeLock } = yield* fresh
      const writing = yield* hold(writeLock)
      const reading = yield* hold(readLock)
      yield* writing.release
      assert.isFalse(yield* Lock.isLocked(writeLock))
      assert.isFalse(yield* canWrite(writeLock.name))
      assert.strictEqual((yield* Effect.flip(Lock.tryScoped(writeLock)))._tag, "LockReentered")
      assert.isTrue(yield* reading.isHeld)
    })
  )

  it.effect("133. readers and writers at random: 16 clients of 100 sections", () =>
    Effect.gen(function* () {
      const { readLock, writeLock } = yield* fresh
      const seen = { done: 0, readers: 0, writers: 0, wrong: 0 }
      const check = Effect.andThen(
        Effect.sync(() => {
          if (seen.writers > 1 || (seen.writers === 1 && seen.readers > 0)) seen.wrong++
        }),
        Effect.yieldNow
      )
      const side = (lock: typeof writeLock, who: "readers" | "writers") =>
        Effect.acquireUseRelease(
          Effect.sync(() => seen[who]++),
          () => Effect.andThen(check, check),
          () =>
            Effect.sync(() => {
              seen[who]--
              seen.done++
            })
        ).pipe(Lock.withLock(lock))
      const one = Effect.suspend(() => (Math.random() < 0.5 ? side(readLock, "readers") : side(writeLock, "writers")))
      const client = Effect.repeat(one, Schedule.recurs(99))
      yield* Effect.forEach(Array.from({ length: 16 }), () => otherClient(client), { concurrency: "unbounded" })
      assert.deepStrictEqual(seen, { done: 1600, readers: 0, writers: 0, wrong: 0 })
    })
  )
})

onBothStores("RReadWriteLock, leases", (it) => {
  it.effect("115. a writer waits for the reader with the long lease, and no longer", () =>
    Effect.gen(function* () {
      const { readLock, writeLock } = yield* fresh
      const reader = (leaseTime: Duration.Input, sleep: number) =>
        Effect.forkChild(Lock.withLock(Effect.sleep(sleep), readLock, { leaseTime }), { startImmediately: true })
      const { isBelow, millis } = yield* elapsed(
        Effect.gen(function* () {
          const readers = [yield* reader("3 minutes", 1000), yield* reader("1 minute", 250)]
          yield* Lock.withLock(Effect.void, writeLock)
          yield* Effect.forEach(readers, Fiber.join)
        })
      )
      assert.isAtLeast(millis, 999)
      isBelow(2000)
    })
  )

  it.effect("122. write and read are renewed, and the read after the downgrade", () =>
    Effect.gen(function* () {
      const { readLock, writeLock } = yield* fresh
      const writing = yield* hold(writeLock)
      yield* hold(readLock)
      yield* renewed(writeLock, 3)
      yield* writing.release
      yield* renewed(readLock, 3)
      assert.isFalse(yield* canWrite(writeLock.name))
    }).pipe(hastyClient)
  )

  it.effect("126. 20 dead clients with 3 reads each do not hold up a writer", () =>
    Effect.gen(function* () {
      const { readLock, writeLock } = yield* fresh
      const reader = yield* held(readLock)
      const dead = dyingClient(Effect.all([abandoned(readLock), abandoned(readLock), abandoned(readLock)]))
      yield* Effect.forEach(Array.from({ length: 20 }), () => dead, { concurrency: "unbounded" })
      // past the lease of who died
      yield* Effect.sleep(1.5 * watchdogMillis)
      yield* reader.letGo
      const { isBelow } = yield* elapsed(Lock.withLock(Effect.void, writeLock))
      isBelow(500)
    })
  )

  it.effect(
    "126. dead readers hold up a writer no longer than their own lease, even if a writer among them had a longer one",
    () =>
      Effect.gen(function* () {
        const { readLock, writeLock } = yield* fresh
        yield* otherThread(
          Effect.gen(function* () {
            const writing = yield* hold(writeLock, { leaseTime: "1 minute" })
            yield* Lock.scoped(readLock, { leaseTime: 700 })
            yield* writing.release
          }).pipe(Scope.provide(yield* Scope.make()))
        )
        const error = yield* Effect.flip(Lock.withLock(Effect.void, writeLock, { waitTime: 100 }))
        assert.strictEqual(error._tag, "LockTimeout")
        yield* Lock.withLock(Effect.void, writeLock, { waitTime: "5 seconds" })
      })
  )
})
