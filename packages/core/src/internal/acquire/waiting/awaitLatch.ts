/**
 * Waits for a latch to open, in the queue of this process: the waiter that has the turn reads the count for all that are
 * waiting by then.
 *
 * Everything here runs uninterruptibly except what is wrapped in `restore`.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { LatchTimeout, LockStoreError } from "../../../LockError.ts"
import { inOwnTurn } from "../../hold/Dependents.ts"
import type { Restore } from "../../hold/guard.ts"
import { latchTitle } from "../../protocol/latch.ts"
import { latchChannel } from "../../store/keys.ts"
import { count } from "../../store/operations/counters/latch.ts"
import { catchTransient } from "../../store/transient.ts"
import { runOrDescribe } from "../../store/wrongType.ts"
import type { Waiter } from "../../wait/Waiter.ts"
import type { WaitQueue } from "../../wait/WaitQueue.ts"
import type { AcquiringClient } from "../AcquiringClient.ts"

interface LatchRequest {
  readonly client: AcquiringClient
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
    return Effect.flatMap(
      client.waitQueues.join(key, "latch", { waitsUntil: startedAt + waitMillis }),
      ([queue, waiter]) => {
        // waiters that join during a request are served by the next one
        queue.signal()
        return Effect.ensuring(
          whileClosed(request, restore, startedAt, queue, waiter),
          Effect.sync(() => queue.leave(waiter))
        )
      }
    )
  })

const look = ({ client, key }: LatchRequest): Effect.Effect<number, LockStoreError> =>
  runOrDescribe(client, latchTitle, count(key))

const whileClosed = Effect.fnUntraced(function* (
  request: LatchRequest,
  restore: Restore,
  startedAt: number,
  queue: WaitQueue,
  waiter: Waiter
): Effect.fn.Return<void, LatchTimeout | LockStoreError> {
  const { client, key } = request
  const { waitsUntil } = waiter
  const channel = latchChannel(key)
  while (true) {
    const wake = yield* restore(queue.sleep(waiter))
    if (waiter.isServed) return
    if (wake === "signal" || (wake === "tick" && client.now() < waitsUntil)) {
      queue.ask(waiter)
      const { waiters } = queue
      const messagesSeen = client.subscriptions.messagesSeen(channel)
      const sentAt = client.now()
      const answer = yield* catchTransient(restore(look(request)))
      if (answer instanceof LockStoreError) {
        queue.failed(answer, sentAt)
      } else {
        queue.answered(-1)
        for (const each of waiters) each.tell(answer)
        if (waiter.isServed) return yield* inOwnTurn(client)
      }
      if (!queue.isListening) queue.listen(channel, messagesSeen)
    }
    if (client.now() >= waitsUntil) {
      const { failure } = queue.outage
      if (failure !== undefined) return yield* Effect.fail(failure)
      return yield* endAt(request, startedAt, waiter.count ?? (yield* restore(look(request))))
    }
  }
})

/** The wait ends with this count. */
const endAt = ({ client, name }: LatchRequest, startedAt: number, count: number): Effect.Effect<void, LatchTimeout> =>
  count === 0
    ? Effect.void
    : Effect.suspend(() =>
        Effect.fail(new LatchTimeout({ latch: name, waited: Duration.millis(client.now() - startedAt), count }))
      )
