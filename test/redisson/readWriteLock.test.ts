/**
 * What Redisson's own tests verify of its read-write lock, by the numbers of the project's list of behaviours. 113 is tested on
 * a cluster. Leases are shortened about tenfold, in proportion.
 *
 * 131, a release by another thread: nobody can ask for it, there is no holding to release.
 */
import { assert } from "@effect/vitest"
import { Deferred, type Duration, Effect, Exit, Fiber, Option, Ref, Schedule, Scope } from "effect"
import { Lock, ReadWriteLock } from "effect-redis-lock"
import {
  abandoned,
  deadClient,
  elapsed,
  forceRelease,
  held,
  holdCounts,
  isHeldByCurrentThread,
  isLocked,
  leaseExpires,
  lockUnlockTwice,
  hastyClient,
  onBothStores,
  onlyHolderReleases,
  dyingClient,
  otherClient,
  otherThread,
  renewed,
  tryLock,
  watchdogMillis
} from "./kit.ts"
import { expectWarning } from "../run/logs.ts"
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

  it.effect("102. a writer may write again, and holds after one of two releases", () =>
    Effect.gen(function* () {
      const { writeLock } = yield* fresh
      yield* hold(writeLock)
      const inner = Option.getOrThrow(yield* Lock.tryScoped(writeLock))
      yield* inner.release
      assert.isTrue(yield* Lock.isHeldByCurrentOwner(writeLock))
      assert.isFalse(yield* canWrite(writeLock.name))
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

  it.effect("104. nobody else reads while a thread writes and reads", () =>
    Effect.gen(function* () {
      const { readLock, writeLock } = yield* fresh
      yield* hold(writeLock)
      yield* hold(readLock)
      assert.isFalse(yield* canRead(readLock.name))
      assert.isFalse(yield* otherClient(tryLock(readLock)))
    })
  )

  it.effect("105. after the last read has ended the thread can write again", () =>
    Effect.gen(function* () {
      const { readLock, writeLock } = yield* fresh
      const writing = yield* hold(writeLock)
      const reading = yield* hold(readLock)
      yield* writing.release
      yield* reading.release
      assert.isTrue(yield* tryLock(writeLock))
    })
  )

  it.effect("106. readers share, and keep out writers until all have gone", () =>
    Effect.gen(function* () {
      const { readLock, writeLock } = yield* fresh
      const others = [yield* held(readLock), yield* held(readLock)]
      const mine = yield* hold(readLock)
      assert.isTrue(yield* otherClient(tryLock(readLock)))
      assert.isFalse(yield* canWrite(writeLock.name))
      assert.strictEqual((yield* Effect.flip(Lock.scoped(writeLock)))._tag, "LockReentered")
      for (const { letGo } of others) yield* letGo
      assert.isFalse(yield* canWrite(writeLock.name))
      yield* mine.release
      assert.isTrue(yield* canWrite(writeLock.name))
    })
  )

  it.effect("107. force release of a read lock that nobody has is false", () =>
    Effect.gen(function* () {
      assert.isFalse(yield* Lock.forceRelease((yield* fresh).readLock))
    })
  )

  it.effect("108. the read lock is locked as long as anybody reads", () =>
    Effect.gen(function* () {
      const { readLock } = yield* fresh
      const first = yield* held(readLock)
      const second = yield* held(readLock)
      yield* first.letGo
      assert.isTrue(yield* Lock.isLocked(readLock))
      yield* second.letGo
      assert.isFalse(yield* Lock.isLocked(readLock))
    })
  )

  it.effect("109. write, read, end reading: still writing; end writing: free", () =>
    Effect.gen(function* () {
      const { readLock, writeLock } = yield* fresh
      const writing = yield* hold(writeLock)
      const reading = yield* hold(readLock)
      yield* reading.release
      assert.isTrue(yield* Lock.isHeldByCurrentOwner(writeLock))
      assert.isFalse(yield* canRead(readLock.name))
      yield* writing.release
      assert.isFalse(yield* Lock.isLocked(writeLock))
      assert.isTrue(yield* canRead(readLock.name))
    })
  )

  it.effect("110. all of 20 readers behind a writer are woken by its release, not one after another", () =>
    Effect.gen(function* () {
      const { readLock, writeLock } = yield* fresh
      const writer = yield* held(writeLock)
      const everybody = yield* Deferred.make<void>()
      const inside = yield* Ref.make(0)
      const reader = Effect.gen(function* () {
        if ((yield* Ref.updateAndGet(inside, (n) => n + 1)) === 20) yield* Deferred.succeed(everybody, undefined)
        // would wait for ever if readers went in one by one
        yield* Deferred.await(everybody)
      }).pipe(Lock.withLock(readLock))
      const ten = Effect.forEach(Array.from({ length: 10 }), () => reader, { concurrency: "unbounded", discard: true })
      const all = yield* Effect.forkChild(Effect.all([ten, otherClient(ten)], { concurrency: 2 }), {
        startImmediately: true
      })
      // time to come in, which they must not
      yield* Effect.sleep("100 millis")
      assert.strictEqual(yield* Ref.get(inside), 0)
      yield* writer.letGo
      const { isBelow } = yield* elapsed(Fiber.join(all))
      isBelow(1000)
    })
  )

  it.effect("111. the read lock is not locked while somebody only writes, and is when the writer reads as well", () =>
    Effect.gen(function* () {
      const { readLock, writeLock } = yield* fresh
      yield* hold(writeLock)
      assert.isFalse(yield* Lock.isLocked(readLock))
      yield* hold(readLock)
      assert.isTrue(yield* Lock.isLocked(readLock))
    })
  )

  it.effect("112. force release frees its own side only", () =>
    Effect.gen(function* () {
      expectWarning(/^The lock's scope has closed, but its release went wrong\./)
      const { readLock, writeLock } = yield* fresh
      const reader = yield* held(readLock)
      assert.isFalse(yield* Lock.forceRelease(writeLock))
      assert.isTrue(yield* Lock.isLocked(readLock))
      assert.isTrue(yield* Lock.forceRelease(readLock))
      assert.isFalse(yield* Lock.isLocked(readLock))
      yield* reader.letGo
      const writer = yield* held(writeLock)
      assert.isFalse(yield* Lock.forceRelease(readLock))
      assert.isTrue(yield* Lock.isLocked(writeLock))
      assert.isTrue(yield* Lock.forceRelease(writeLock))
      assert.isFalse(yield* Lock.isLocked(writeLock))
      yield* writer.letGo
    })
  )

  it.effect("114. a name that has braces of its own: 10 threads read 10 times", () =>
    Effect.gen(function* () {
      const lock = readLock(`{${freshName("redisson")}}:abc:key`)
      const thread = Effect.repeat(Lock.withLock(Effect.void, lock), Schedule.recurs(9))
      yield* Effect.forEach(Array.from({ length: 10 }), () => thread, { concurrency: "unbounded" })
      assert.isFalse(yield* Lock.isLocked(lock))
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

  it.effect("116. a nested hold that has ended does not prolong the first, neither in Redis nor for its holding", () =>
    Effect.gen(function* () {
      const { readLock, writeLock } = yield* fresh
      const { isBelow, millis, result } = yield* elapsed(
        Effect.gen(function* () {
          const first = yield* hold(readLock, { leaseTime: 2000 })
          const again = yield* hold(readLock, { leaseTime: "1 minute" })
          yield* again.release
          return yield* otherClient(Lock.withLock(first.isHeld, writeLock))
        })
      )
      assert.isFalse(result, "a writer was let in while a reader held")
      assert.isAtLeast(millis, 1999)
      isBelow(3500)
    })
  )

  it.effect("117. a reader that is gone keeps writers out until its lease ends, whoever reads meanwhile", () =>
    Effect.gen(function* () {
      const { readLock, writeLock } = yield* fresh
      const { isBelow, millis } = yield* elapsed(
        Effect.gen(function* () {
          yield* abandoned(readLock, { leaseTime: 1000 })
          // a part of its lease
          yield* Effect.sleep("500 millis")
          yield* otherThread(Lock.withLock(Effect.void, readLock, { leaseTime: "1 minute" }))
          yield* otherClient(Lock.withLock(Effect.void, writeLock))
        })
      )
      assert.isAtLeast(millis, 999)
      isBelow(2000)
    })
  )

  it.effect("118. a writer that is gone keeps two readers out until its lease ends", () =>
    Effect.gen(function* () {
      const { readLock, writeLock } = yield* fresh
      const reader = Lock.withLock(Effect.void, readLock)
      const { isBelow, millis } = yield* elapsed(
        Effect.andThen(
          abandoned(writeLock, { leaseTime: 1000 }),
          Effect.all([otherThread(reader), otherClient(reader)], { concurrency: 2 })
        )
      )
      assert.isAtLeast(millis, 999)
      isBelow(2000)
    })
  )

  it.effect("119. a writer that writes again with a shorter lease does not lose the longer one", () =>
    Effect.gen(function* () {
      const { writeLock } = yield* fresh
      yield* hold(writeLock, { leaseTime: "1 minute" })
      yield* hold(writeLock, { leaseTime: 100 })
      const error = yield* Effect.flip(otherThread(Lock.withLock(Effect.void, writeLock, { waitTime: 400 })))
      assert.strictEqual(error._tag, "LockTimeout")
    })
  )

  it.effect("120. a reader with a short lease does not delay another, and both release", () =>
    Effect.gen(function* () {
      const { readLock } = yield* fresh
      const first = yield* held(readLock, { leaseTime: "1 minute" })
      const { isBelow, result } = yield* elapsed(held(readLock))
      isBelow(1000)
      yield* first.holding.release
      yield* result.holding.release
      yield* first.letGo
      yield* result.letGo
      assert.isFalse(yield* Lock.isLocked(readLock))
    })
  )

  it.effect("121. a writer's lease ends: the next writer is in, the late release fails", leaseExpires(writeLock))

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

  it.effect("123. 50 readers that read for longer than the watchdog's lease all release without error", () =>
    Effect.gen(function* () {
      const { readLock } = yield* fresh
      const exits = yield* Effect.forEach(
        Array.from({ length: 50 }),
        () => Effect.exit(Lock.withLock(Effect.sleep(1.3 * watchdogMillis), readLock)),
        { concurrency: 25 }
      )
      assert.isTrue(exits.every(Exit.isSuccess))
      assert.isFalse(yield* Lock.isLocked(readLock))
    }).pipe(hastyClient)
  )

  it.effect("124. a dead writer: free after the watchdog's lease", deadClient(writeLock))

  it.effect("125. a dead reader is not kept alive by another client's renewals", () =>
    Effect.gen(function* () {
      const { readLock, writeLock } = yield* fresh
      yield* dyingClient(abandoned(readLock))
      const reader = yield* held(readLock)
      // past the lease of who died
      yield* Effect.sleep(1.5 * watchdogMillis)
      assert.isFalse(yield* canWrite(writeLock.name))
      yield* reader.letGo
      assert.isTrue(yield* canWrite(writeLock.name))
    })
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

onBothStores("RReadWriteLock, the contract", (it) => {
  it.effect("127. hold counts of the read side: 0, 1, 2, 1, 0", holdCounts(readLock))
  it.effect("127. hold counts of the write side: 0, 1, 2, 1, 0", holdCounts(writeLock))
  it.effect("128. isLocked before, during and after; also from another thread", isLocked(readLock))
  it.effect("129. held by the current thread, and not by another", isHeldByCurrentThread(readLock))
  it.effect("130. lock and unlock twice", lockUnlockTwice(readLock))
  it.effect("131. nobody but the reader can release", onlyHolderReleases(readLock))
  it.effect("112. force release of a reader, as seen by another client", forceRelease(readLock))

  it.effect("132. reading is re-entrant, and keeps out writers until the last release", () =>
    Effect.gen(function* () {
      const { readLock } = yield* fresh
      const outer = Option.getOrThrow(yield* Lock.tryScoped(readLock))
      const inner = Option.getOrThrow(yield* Lock.tryScoped(readLock))
      assert.strictEqual(inner.owner, outer.owner)
      yield* outer.release
      assert.isFalse(yield* canWrite(readLock.name))
      yield* inner.release
      assert.isTrue(yield* canWrite(readLock.name))
    })
  )

  const mixed = Effect.gen(function* () {
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
    return { seen, one }
  })

  it.effect("133. readers and writers at random: 15 tasks of one client", () =>
    Effect.gen(function* () {
      const { one, seen } = yield* mixed
      yield* Effect.forEach(Array.from({ length: 15 }), () => one, { concurrency: "unbounded" })
      assert.deepStrictEqual(seen, { done: 15, readers: 0, writers: 0, wrong: 0 })
    })
  )

  it.effect("133. readers and writers at random: 16 clients of 100 sections", () =>
    Effect.gen(function* () {
      const { one, seen } = yield* mixed
      const client = Effect.repeat(one, Schedule.recurs(99))
      yield* Effect.forEach(Array.from({ length: 16 }), () => otherClient(client), { concurrency: "unbounded" })
      assert.deepStrictEqual(seen, { done: 1600, readers: 0, writers: 0, wrong: 0 })
    })
  )

  it.effect("133. readers and writers at random: 100 clients of one section", () =>
    Effect.gen(function* () {
      const { one, seen } = yield* mixed
      yield* Effect.forEach(Array.from({ length: 100 }), () => otherClient(one), { concurrency: "unbounded" })
      assert.deepStrictEqual(seen, { done: 100, readers: 0, writers: 0, wrong: 0 })
    })
  )
})
