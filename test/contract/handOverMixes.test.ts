/**
 * A read-write lock of clients that it is handed over to, and of others that it is not: those over a driver whose messages do not come in
 * order, and those of a quorum of which its server is a member.
 */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { Lock, ReadWriteLock } from "effect-redis-lock"
import { freshName } from "../kit/names.ts"
import { stores } from "../kit/stores.ts"
import { as, clientOf, quorumOf, testStore, storeOf } from "../kit/testStore.ts"
import type { Store } from "../kit/wrappedStore.ts"
import { testLive } from "../kit/test.ts"

const withoutHandOver = (store: Store): Store => ({ ...store, handsOver: false })

/** A client that needs this store, and whose majority another one completes. */
const quorumWith = Effect.fnUntraced(function* (store: Store) {
  const [second, third] = [yield* testStore(), yield* testStore()]
  third.refuses = () => true
  return yield* quorumOf([{ store }, second, third], { label: "" })
})

/** Clients that are not handed the lock. */
const others = {
  "a client over a driver without ordered messages": (store: Store) =>
    clientOf({ store: withoutHandOver(store) }, { label: "" }),
  "a quorum": quorumWith
}

for (const [where, layer] of Object.entries(stores)) {
  testLive(
    `${where}: every section succeeds, and alone, among clients of which only some are handed the lock`,
    function* () {
      const built = storeOf(layer)
      const shared = yield* built
      // each has connections of its own, as Redis counts them
      const own = where === "memory" ? Effect.succeed(shared) : built
      const clients = [
        yield* clientOf({ store: yield* own }, { label: "" }),
        yield* clientOf({ store: yield* own }, { label: "" })
      ]
      for (const otherOf of Object.values(others)) clients.push(yield* otherOf(yield* own))
      const { readLock, writeLock } = ReadWriteLock.make(freshName("mix"))
      let readers = 0
      let writers = 0
      const read = Effect.gen(function* () {
        readers++
        assert.strictEqual(writers, 0, "nobody writes")
        yield* Effect.sleep(10)
        readers--
      }).pipe(Lock.withLock(readLock))
      const write = Effect.gen(function* () {
        writers++
        assert.deepStrictEqual({ readers, writers }, { readers: 0, writers: 1 })
        yield* Effect.sleep(10)
        writers--
      }).pipe(Lock.withLock(writeLock))
      const turns = Array.from({ length: 15 }, (_, turn) => (turn % 3 === 2 ? read : write))
      yield* Effect.forEach(clients, (client) => as(client)(Effect.all(turns, { discard: true })), {
        concurrency: "unbounded",
        discard: true
      })
    }
  )
}
