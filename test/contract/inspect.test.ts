/**
 * `Lock.inspect` tells the same of every kind on memory and on Redis.
 */
import { assert, describe } from "@effect/vitest"
import { Duration, Effect, Layer } from "effect"
import { CountDownLatch, FairLock, Lock, PermitSemaphore, ReadWriteLock, RedisLock, Semaphore } from "effect-redis-lock"
import { eventually } from "../kit/eventually.ts"
import { freshName } from "../kit/names.ts"
import { stores } from "../kit/stores.ts"
import { testsWith } from "../kit/test.ts"

for (const [title, store] of Object.entries(stores)) {
  const test = testsWith(RedisLock.layerFromStore().pipe(Layer.provide(store)))

  describe(`inspect on ${title}`, () => {
    test("inspect says that a free name is none, and keeps the token of its last grant", function* () {
      const name = freshName()
      assert.deepStrictEqual(yield* Lock.inspect(name), {
        name,
        kind: "none",
        holders: [],
        token: undefined,
        waiters: [],
        waiting: 0,
        count: undefined,
        permits: [],
        held: 0
      })
      const token = yield* Effect.scoped(Effect.map(Lock.scoped(name), (holding) => holding.token))
      const free = yield* Lock.inspect(name)
      assert.deepStrictEqual([free.kind, free.token], ["none", token])
    })

    test("inspect shows the holder of a plain lock and its lease", function* () {
      const name = freshName()
      const holding = yield* Lock.scoped(name, { leaseTime: "1 hour" })
      const { holders, kind, token } = yield* Lock.inspect(name)
      assert.deepStrictEqual([kind, token], ["lock", holding.token])
      const [{ label, remaining, since, ...holder }] = holders as [(typeof holders)[number]]
      // of this client itself
      assert.include(label, String(process.pid))
      assert.isBelow(Duration.toMillis(since!), 240_000)
      assert.deepStrictEqual(holder, { owner: holding.owner, holdCount: 1, mode: "exclusive" })
      assert.isAbove(Duration.toMillis(remaining!), 3_000_000)
      assert.isAtMost(Duration.toMillis(remaining!), 3_600_000)
    })

    test("inspect shows the queue of a fair lock in its order", function* () {
      const name = freshName()
      const holding = yield* Lock.scoped(FairLock.make(name))
      const waiting = (count: number) =>
        eventually(
          `${count} wait`,
          Lock.inspect(name),
          (state) => state.waiting === count && state.waiters.length === count
        )
      yield* Effect.forkScoped(Effect.scoped(Lock.scoped(FairLock.make(name))))
      const first = yield* waiting(1)
      yield* Effect.forkScoped(Effect.scoped(Lock.scoped(FairLock.make(name))))
      const both = yield* waiting(2)
      assert.strictEqual(both.kind, "fair lock")
      assert.deepStrictEqual(
        both.holders.map(({ owner }) => owner),
        [holding.owner]
      )
      const owners = both.waiters.map(({ owner }) => owner)
      assert.strictEqual(owners[0], first.waiters[0]!.owner)
      assert.notStrictEqual(owners[1], owners[0])
    })

    test("inspect shows all of more than a hundred who wait, whose labels it does not look up", function* () {
      const name = freshName()
      yield* Lock.scoped(FairLock.make(name))
      yield* Effect.forkScoped(
        Effect.forEach(Array.from({ length: 105 }), () => Lock.withLock(Effect.void, FairLock.make(name)), {
          concurrency: "unbounded"
        })
      )
      const { waiters } = yield* eventually("105 wait", Lock.inspect(name), ({ waiting }) => waiting === 105)
      assert.strictEqual(new Set(waiters.map(({ owner }) => owner)).size, 105)
    })

    test("inspect shows each reader's own lease, and the writer that waits for the readers", function* () {
      const name = freshName()
      const { readLock, writeLock } = ReadWriteLock.make(name)
      yield* Lock.withOwner(Lock.scoped(readLock, { leaseTime: "1 hour" }))
      yield* Lock.withOwner(Lock.scoped(readLock, { leaseTime: "2 hours" }))
      const { holders, kind } = yield* Lock.inspect(name)
      assert.strictEqual(kind, "read-write lock")
      assert.deepStrictEqual(
        holders
          .map(({ mode, remaining }) => [mode, Math.ceil(Duration.toHours(remaining!))] as const)
          .toSorted(([, a], [, b]) => a - b),
        [
          ["read", 1],
          ["read", 2]
        ]
      )
      yield* Effect.forkScoped(Effect.scoped(Lock.scoped(writeLock)))
      const { waiters } = yield* eventually("a writer waits", Lock.inspect(name), ({ waiting }) => waiting === 1)
      const [{ mode, owner: writer }] = waiters as [(typeof waiters)[number]]
      assert.strictEqual(mode, "write")
      // of this client
      assert.isTrue(holders.every(({ owner }) => owner.startsWith(writer.slice(0, 36))))
    })

    test("inspect shows the permits of a semaphore, and its number or that of a latch as a counter", function* () {
      const [permits, anonymous, latch] = [freshName(), freshName(), freshName()]
      const { ids } = yield* PermitSemaphore.scoped(PermitSemaphore.make(permits, { permits: 5 }), {
        permits: 2,
        leaseTime: "1 hour"
      })
      const held = yield* Lock.inspect(permits)
      assert.deepStrictEqual([held.kind, held.count, held.held], ["permit semaphore", 3, 2])
      assert.deepStrictEqual(held.permits.map(({ id }) => id).toSorted(), ids.toSorted())
      for (const { remaining } of held.permits) assert.isAbove(Duration.toMillis(remaining!), 3_000_000)
      yield* Semaphore.trySetPermits(anonymous, 3)
      yield* CountDownLatch.trySetCount(latch, 4)
      const counters = yield* Effect.forEach([anonymous, latch], Lock.inspect)
      assert.deepStrictEqual(
        counters.map(({ count, kind }) => [kind, count]),
        [
          ["counter", 3],
          ["counter", 4]
        ]
      )
    })
  })
}
