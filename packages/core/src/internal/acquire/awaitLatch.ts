/**
 * Waits for a latch to open, in the line of this process: the waiter that has the turn reads the count for all that are
 * waiting by then.
 *
 * Everything here runs uninterruptibly except what is wrapped in `restore`.
 */
import * as Effect from "effect/Effect"
import { LatchTimeout, LockStoreError } from "../../LockError.ts"
import type { LockClient } from "../client/LockClient.ts"
import { inOwnTurn } from "../hold/Lease.ts"
import { latchTitle } from "../kinds/kinds.ts"
import { catchTransient, runOrDescribe } from "../store/failures.ts"
import { latchChannel } from "../store/keys.ts"
import { count } from "../store/operations/latch.ts"
import type { Line, Waiter } from "../wait/Line.ts"
import type { Restore } from "./ask.ts"
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
    const { client, key, waitMillis } = request
    const startedAt = client.now()
    if (waitMillis <= 0) return Effect.flatMap(restore(look(request)), (count) => endAt(request, startedAt, count))
    const waitsUntil = startedAt + waitMillis
    const joined = client.lines.join(key, "latch", { waitsUntil })
    return Effect.flatMap(joined, ([line, waiter]) => {
      // waiters that join during a request are served by the next one
      line.changed()
      return Effect.ensuring(
        Effect.asVoid(untilServed(waitOf(request, restore, startedAt, line, waiter))),
        Effect.sync(() => line.leave(waiter))
      )
    })
  })

const look = ({ client, key }: LatchRequest): Effect.Effect<number, LockStoreError> =>
  runOrDescribe(client, latchTitle, count(key))

const waitOf = (
  request: LatchRequest,
  restore: Restore,
  startedAt: number,
  line: Line,
  waiter: Waiter
): Wait<true, LatchTimeout | LockStoreError> => {
  const { client, key } = request
  const channel = latchChannel(key)
  return {
    restore,
    sleep: () => line.sleep(waiter),
    attempt: () => {
      if (waiter.count === 0) return Effect.succeed(true)
      if (!waiter.hasTurn || !line.isDue || waiter.isLate) return Effect.undefined
      line.asked(waiter)
      const { waiters } = line
      const messagesSeen = client.subscriptions.messagesSeen(channel)
      const sentAt = client.now()
      return Effect.flatMap(catchTransient(restore(look(request))), (answer) => {
        if (answer instanceof LockStoreError) line.failed(answer, sentAt, true)
        else {
          line.answered(-1, true)
          for (const each of waiters) each.tell(answer)
        }
        if (!line.isListening) line.listen(channel, messagesSeen, undefined)
        return waiter.count === 0 ? Effect.as(inOwnTurn(client), true as const) : Effect.undefined
      })
    },
    isOver: () => waiter.isLate,
    gaveUp: () => {
      const { failure } = line.outage
      if (failure !== undefined) return Effect.fail(failure)
      const counted = waiter.count === undefined ? restore(look(request)) : Effect.succeed(waiter.count)
      return Effect.as(
        Effect.flatMap(counted, (count) => endAt(request, startedAt, count)),
        true
      )
    }
  }
}

/** The wait ends with this count. */
const endAt = (
  { client, name, waitMillis }: LatchRequest,
  startedAt: number,
  count: number
): Effect.Effect<void, LatchTimeout> =>
  count === 0
    ? Effect.void
    : Effect.fail(new LatchTimeout({ latch: name, waited: waitedSince(startedAt, client.now(), waitMillis), count }))
