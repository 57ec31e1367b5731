/**
 * Waits for a latch to open, in the line of this process: the waiter that has the turn reads the count for all that are
 * waiting by then.
 *
 * Everything here runs uninterruptibly except what is wrapped in `restore`.
 */
import * as Effect from "effect/Effect"
import { LatchTimeout, LockStoreError } from "../../LockError.ts"
import type { LockClient } from "../client/LockClient.ts"
import { inMicrotask } from "../hold/Lease.ts"
import { latchTitle } from "../kinds/kinds.ts"
import { catchTransient, runOrDescribe } from "../store/failures.ts"
import { latchChannel } from "../store/keys.ts"
import { count } from "../store/operations/latch.ts"
import { untilServed, type Wait, waitedSince } from "./untilServed.ts"

interface LatchRequest {
  readonly client: LockClient
  readonly name: string
  readonly key: string
  /** Milliseconds; infinite to wait without limit. */
  readonly waitMillis: number
}

/** Waits until the count is zero. */
export const awaitLatch = (request: LatchRequest): Effect.Effect<void, LatchTimeout | LockStoreError> =>
  Effect.uninterruptibleMask((restore) => {
    const { client, key, name, waitMillis } = request
    const startedAt = client.now()
    const look = () => restore(runOrDescribe(client, latchTitle, count(key)))
    /** The wait ends with this count. */
    const endAt = (count: number): Effect.Effect<void, LatchTimeout> =>
      count === 0
        ? Effect.void
        : Effect.fail(
            new LatchTimeout({ latch: name, waited: waitedSince(startedAt, client.now(), waitMillis), count })
          )
    if (waitMillis <= 0) return Effect.flatMap(look(), endAt)
    return Effect.flatMap(client.lines.join(key, "latch", { waitsUntil: startedAt + waitMillis }), ([line, waiter]) => {
      const ask = () => {
        line.asked(waiter)
        const { askedAt, waiters } = line
        const messagesSeen = client.subscriptions.messagesSeen(latchChannel(key))
        return Effect.flatMap(catchTransient(look()), (answer) => {
          if (answer instanceof LockStoreError) line.failed(answer, askedAt, true)
          else {
            line.answered(-1, true)
            for (const each of waiters) each.tell(answer)
          }
          if (!line.isListening) line.listen(latchChannel(key), messagesSeen, undefined)
          return waiter.count === 0 ? Effect.as(inMicrotask(client), true as const) : Effect.undefined
        })
      }
      const wait: Wait<true, LatchTimeout | LockStoreError> = {
        restore,
        sleep: () => line.sleep(waiter),
        attempt: () => {
          if (waiter.count === 0) return Effect.succeed(true)
          return waiter.hasTurn && line.isDue && !waiter.isLate ? ask() : Effect.undefined
        },
        isOver: () => waiter.isLate,
        gaveUp: () => {
          const { failure } = line.outage
          if (failure !== undefined) return Effect.fail(failure)
          const counted = waiter.count === undefined ? look() : Effect.succeed(waiter.count)
          return Effect.as(Effect.flatMap(counted, endAt), true)
        }
      }
      // waiters that join during a request are served by the next one
      line.changed()
      return Effect.ensuring(
        Effect.asVoid(untilServed(wait)),
        Effect.sync(() => line.leave(waiter))
      )
    })
  })
