/**
 * Waits until a record has been written: one watch serves all fibers of this process that wait for it.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type { Fiber } from "effect/Fiber"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import type { LockClient } from "../client/LockClient.ts"
import type { LockKeys } from "../store/keys.ts"
import type { LockRecord, RecordUse } from "../store/operations/record.ts"
import { watchRecord } from "./watchRecord.ts"

interface Watch {
  readonly written: Deferred.Deferred<LockRecord>
  readonly fiber: Fiber<unknown, unknown>
  waiters: number
}

const watchesOf = new WeakMap<LockClient, Map<string, Watch>>()

/** Never completes if the store fails for good: the caller's other requests report that. */
export const awaitRecord = (client: LockClient, keys: LockKeys, use: RecordUse): Effect.Effect<LockRecord> => {
  const key = keys.record(use)
  return Effect.acquireUseRelease(
    Effect.sync(() => {
      const watches = watchesOf.get(client) ?? new Map<string, Watch>()
      watchesOf.set(client, watches)
      const watch = watches.get(key) ?? startWatch(client, keys, use, watches)
      watch.waiters++
      return watch
    }),
    ({ written }) => Deferred.await(written),
    (watch) =>
      Effect.sync(() => {
        if (--watch.waiters > 0) return
        const watches = watchesOf.get(client)
        if (watches?.get(key) === watch) watches.delete(key)
        watch.fiber.interruptUnsafe()
      })
  )
}

const startWatch = (client: LockClient, keys: LockKeys, use: RecordUse, watches: Map<string, Watch>): Watch => {
  const key = keys.record(use)
  const written = Deferred.makeUnsafe<LockRecord>()
  const look = watchRecord(client, keys, use).pipe(
    Stream.filter(({ record }) => record !== undefined),
    Stream.runHead,
    Effect.map((state) => {
      // later callers start a new watch, as the record may be gone by then
      watches.delete(key)
      const record = Option.getOrUndefined(state)?.record
      if (record !== undefined) Deferred.doneUnsafe(written, Effect.succeed(record))
    })
  )
  const watch: Watch = { written, fiber: client.fork(Effect.ignore(look)), waiters: 0 }
  watches.set(key, watch)
  return watch
}
