/**
 * Commands that arrive again after those of later holds.
 */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { Lock, LockStore, ReadWriteLock } from "effect-redis-lock"
import { stores } from "../kit/stores.ts"
import { freshName } from "../kit/names.ts"
import { as, clientOf } from "../kit/testStore.ts"
import { type Outcome, wrappedStore } from "../kit/wrappedStore.ts"
import { testsWith } from "../kit/test.ts"

for (const [where, layer] of Object.entries(stores)) {
  testsWith(layer)(
    `A reader's re-entry on ${where} that arrives again does not take back the ones after it`,
    function* () {
      const lock = ReadWriteLock.make(freshName()).readLock
      const entries: Array<() => Outcome> = []
      const store = wrappedStore(yield* LockStore.LockStore, ({ operation, run }) => {
        if (operation.endsWith("/hold")) entries.push(run)
        return run()
      })
      const client = as(yield* clientOf({ store }))
      yield* client(
        Effect.gen(function* () {
          for (let i = 0; i < 3; i++) yield* Lock.scoped(lock)
          assert.lengthOf(entries, 2)
          yield* entries[0]!()
          assert.strictEqual(yield* Lock.holdCount(lock), 3)
        }).pipe(Effect.scoped)
      )
    }
  )
}
