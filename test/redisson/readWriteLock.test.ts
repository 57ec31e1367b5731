/**
 * What Redisson's own tests verify of its read-write lock, by the numbers of the project's list of behaviours, where no other test
 * here proves it.
 */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { Lock, ReadWriteLock } from "effect-redis-lock"
import { hastyClient, onMemory, otherThread, renewed, tryLock } from "./kit.ts"
import { freshName } from "../kit/names.ts"

const fresh = Effect.sync(() => ReadWriteLock.make(freshName("redisson")))

// the watchdog is the client's, and the contract sees it renew every kind on Redis
onMemory("RReadWriteLock", (it) => {
  it.effect("122. write and read are renewed, and the read after the downgrade", () =>
    Effect.gen(function* () {
      const { readLock, writeLock } = yield* fresh
      const writing = yield* Lock.scoped(writeLock)
      yield* Lock.scoped(readLock)
      yield* renewed(writeLock, 3)
      yield* writing.release
      yield* renewed(readLock, 3)
      assert.isFalse(yield* otherThread(tryLock(writeLock)))
    }).pipe(hastyClient)
  )
})
