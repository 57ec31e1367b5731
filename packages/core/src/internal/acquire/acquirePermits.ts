/**
 * Acquires permits, in the same way for both kinds of semaphore: ask once; else wait in the queue of this process and ask again
 * at each turn.
 *
 * Everything here runs uninterruptibly but for what is wrapped in `restore`.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { LockStoreError, LockTimeout } from "../../LockError.ts"
import type { AcquiringClient } from "./AcquiringClient.ts"
import { transientFailure } from "../store/transient.ts"
import type { PermitQueue, PermitWaiter } from "../wait/PermitQueue.ts"
import type { PermitReply } from "../protocol/PermitReply.ts"
import type { Restore } from "../hold/guard.ts"

export interface PermitRequest<A> {
  readonly client: AcquiringClient
  readonly kind: { readonly name: string }
  readonly name: string
  readonly key: string
  readonly channel: string
  readonly permits: number
  /** Milliseconds; infinite to wait without limit. */
  readonly waitMillis: number
  /**
   * Asks once. Interrupted or failed with unknown outcome, it is undone before anything else happens.
   */
  readonly ask: (restore: Restore, startedAt: number) => Effect.Effect<PermitReply<A>, LockStoreError>
}

/** Waits for permits as long as allowed. */
export const acquire = <A extends object>(
  request: PermitRequest<A>,
  restore: Restore
): Effect.Effect<A, LockTimeout | LockStoreError> => {
  const { client, channel, key, permits, waitMillis } = request
  const startedAt = client.now()
  if (waitMillis > 0 && client.permitQueues.get(key)?.isAhead(permits) === true) {
    return wait(request, restore, startedAt, undefined, undefined)
  }
  const messagesSeen = client.subscriptions.messagesSeen(channel)
  return Effect.matchCauseEffect(request.ask(restore, startedAt), {
    onSuccess: (answer): Effect.Effect<A, LockTimeout | LockStoreError> => {
      if (answer.granted !== undefined) return Effect.succeed(answer.granted)
      return waitMillis > 0
        ? wait(request, restore, startedAt, answer, messagesSeen)
        : gaveUp(request, startedAt, answer, undefined)
    },
    onFailure: (cause) => {
      const failure = waitMillis > 0 ? transientFailure(cause) : undefined
      return failure === undefined ? Effect.failCause(cause) : wait(request, restore, startedAt, failure, messagesSeen)
    }
  })
}

const wait = <A extends object>(
  request: PermitRequest<A>,
  restore: Restore,
  startedAt: number,
  /** What it was told, or why it was told nothing, where it has asked. */
  answer: PermitReply<A> | LockStoreError | undefined,
  messagesSeen: number | undefined
): Effect.Effect<A, LockTimeout | LockStoreError> => {
  const { client, key, permits } = request
  const queue = client.permitQueues.open(key)
  const waiter = queue.join(permits)
  if (answer instanceof LockStoreError) queue.outage.failed(answer)
  else if (answer !== undefined) queue.outage.answered()
  return Effect.ensuring(
    waitInQueue(request, { restore, startedAt, answer, messagesSeen }, queue, waiter),
    Effect.sync(() => client.permitQueues.leave(key, queue, waiter))
  )
}

interface PermitWait<A> {
  readonly restore: Restore
  readonly startedAt: number
  /** The outcome of a request that was made before the wait. */
  readonly answer: PermitReply<A> | LockStoreError | undefined
  /** The number of messages that had arrived before that request. */
  readonly messagesSeen: number | undefined
}

const waitInQueue = Effect.fnUntraced(function* <A extends object>(
  request: PermitRequest<A>,
  { answer, messagesSeen, restore, startedAt }: PermitWait<A>,
  queue: PermitQueue,
  waiter: PermitWaiter
): Effect.fn.Return<A, LockTimeout | LockStoreError> {
  const { client, channel, waitMillis } = request
  const waitsUntil = startedAt + waitMillis
  if (waitsUntil < Number.POSITIVE_INFINITY) client.alarms.set(waiter, waitsUntil)
  // a waiter that has not asked yet has missed no message
  if (answer !== undefined) queue.listen(channel, messagesSeen)
  let last = answer instanceof LockStoreError ? undefined : answer
  while (true) {
    yield* restore(waiter.awaitTurn)
    if (waiter.hasTurn) {
      queue.ask()
      const answer: PermitReply<A> | LockStoreError = yield* Effect.catchCause(
        request.ask(restore, startedAt),
        (cause) => {
          const failure = transientFailure(cause)
          return failure === undefined ? Effect.failCause(cause) : Effect.succeed(failure)
        }
      )
      if (answer instanceof LockStoreError) {
        queue.failed(answer)
      } else {
        queue.answered(waiter, answer)
        if (answer.granted !== undefined) return answer.granted
        last = answer
      }
    }
    if (client.now() >= waitsUntil) return yield* gaveUp(request, startedAt, last, queue.outage.failure)
  }
})

/** The wait is over: with the store's own `failure`, where that was the last that was heard of it. */
const gaveUp = (
  { client, kind, name, permits }: PermitRequest<unknown>,
  startedAt: number,
  last: PermitReply<unknown> | undefined,
  failure: LockStoreError | undefined
): Effect.Effect<never, LockTimeout | LockStoreError> =>
  Effect.suspend((): Effect.Effect<never, LockTimeout | LockStoreError> => {
    if (failure !== undefined) return Effect.fail(failure)
    client.telemetry.timedOut(kind.name)
    return Effect.fail(
      new LockTimeout({
        lock: name,
        waited: Duration.millis(client.now() - startedAt),
        holder: undefined,
        permits: {
          wanted: permits,
          available: last?.available,
          ...(last?.exists === false ? { exists: false } : undefined)
        }
      })
    )
  })
