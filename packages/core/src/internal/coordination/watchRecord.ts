/**
 * A record as a Stream: read after every message of its channel, and in every fallback interval, as messages are hints.
 */
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import type { LockStoreError } from "../../LockError.ts"
import type { LockClient } from "../client/LockClient.ts"
import type { LockKeys } from "../store/keys.ts"
import { read, type RecordState, type RecordUse } from "../store/operations/record.ts"
import { isRetryable } from "../store/transient.ts"
import { jittered } from "../time/schedules.ts"

/** Reads a record, retrying a transient failure after each fallback interval. */
export const readWithRetry = (
  { options, store }: LockClient,
  keys: LockKeys,
  use: RecordUse
): Effect.Effect<RecordState, LockStoreError> =>
  Effect.retry(
    Effect.suspend(() => store.run(read(keys, use))),
    { while: isRetryable, schedule: Schedule.spaced(options.fallbackIntervalMillis) }
  )

/** Emits after every read, whether anything has changed or not; outlives transient failures, and never ends. */
export const watchRecord = (
  client: LockClient,
  keys: LockKeys,
  use: RecordUse
): Stream.Stream<RecordState, LockStoreError> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const { fallbackIntervalMillis } = client.options
      // however many messages arrive during a read, one more read follows
      const signals = yield* Queue.sliding<void>(1)
      yield* Effect.acquireRelease(
        Effect.sync(() =>
          client.subscriptions.subscribe(keys.record(use), () => Queue.offerUnsafe(signals, undefined))
        ),
        (subscription) => Effect.sync(() => subscription.stop())
      )
      const look = readWithRetry(client, keys, use)
      const next = Effect.suspend(() =>
        Effect.raceFirst(Queue.take(signals), Effect.sleep(jittered(fallbackIntervalMillis)))
      )
      return Stream.concat(Stream.fromEffect(look), Stream.fromEffectRepeat(Effect.andThen(next, look)))
    })
  )
