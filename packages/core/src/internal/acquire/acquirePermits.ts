/**
 * Acquires permits, in the same way for both kinds of semaphore: sends a request; if that is denied, waits in the queue of
 * this process and tries again at each turn.
 *
 * Everything here runs uninterruptibly except what is wrapped in `restore`.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { LockStoreError, LockTimeout } from "../../LockError.ts"
import type { AcquiringClient } from "./AcquiringClient.ts"
import { countWaiting } from "./waiting/countWaiting.ts"
import { mayHaveRun } from "../store/outcome.ts"
import type { Asking } from "../store/operations/counters/permitPlaces.ts"
import { catchTransient, transientFailure } from "../store/transient.ts"
import type { WaitQueue } from "../wait/WaitQueue.ts"
import type { Waiter } from "../wait/Waiter.ts"
import type { Mode } from "../protocol/LockProtocol.ts"
import type { PermitReply } from "../protocol/PermitReply.ts"
import type { Restore } from "../hold/guard.ts"
import { leavePlace } from "../hold/rollback.ts"

export interface PermitRequest<A> {
  readonly client: AcquiringClient
  readonly kind: { readonly name: string }
  readonly name: string
  readonly key: string
  readonly channel: string
  readonly permits: number
  /** Milliseconds; infinite to wait without limit. */
  readonly waitMillis: number
  /** Sends one request. If interrupted, or failed with unknown outcome, it is rolled back before anything else happens. */
  readonly ask: (restore: Restore, startedAt: number, asking: Asking) => Effect.Effect<PermitReply<A>, LockStoreError>
}

/** A request of a fiber that will not wait. */
export const notWaiting = ({ clientId }: AcquiringClient): Asking => ({
  clientId,
  ifDenied: 0,
  ifGranted: 0,
  who: "new"
})

/** Waits for permits as long as allowed. */
export const acquire = <A extends object>(
  request: PermitRequest<A>,
  restore: Restore
): Effect.Effect<A, LockTimeout | LockStoreError> => {
  const { client, channel, key, permits, waitMillis } = request
  const startedAt = client.now()
  // later requests are served later
  if (waitMillis > 0 && client.waitQueues.get(key, "permit")?.isAhead(permits) === true) {
    return wait(request, restore, startedAt, undefined, undefined)
  }
  const messagesSeen = client.subscriptions.messagesSeen(channel, client.store.handsOver)
  const asking: Asking = { ...notWaiting(client), ifDenied: waitMillis > 0 ? permits : 0 }
  return Effect.matchCauseEffect(request.ask(restore, startedAt, asking), {
    onSuccess: (answer): Effect.Effect<A, LockTimeout | LockStoreError> => {
      if (answer.granted !== undefined) return Effect.succeed(answer.granted)
      return waitMillis > 0
        ? wait(request, restore, startedAt, answer, messagesSeen)
        : gaveUp(request, startedAt, answer, undefined)
    },
    onFailure: (cause) => {
      const failure = waitMillis > 0 ? transientFailure(cause) : undefined
      if (failure !== undefined) return wait(request, restore, startedAt, failure, messagesSeen)
      const mayHavePlace = waitMillis > 0 && mayHaveRun(cause) && client.waitQueues.get(key, "permit") === undefined
      return Effect.andThen(mayHavePlace ? leavePlace(client, key, true) : Effect.void, Effect.failCause(cause))
    }
  })
}

const wait = <A extends object>(
  request: PermitRequest<A>,
  restore: Restore,
  startedAt: number,
  /** The reply to the request before the wait, or its failure, if there was one. */
  answer: PermitReply<A> | LockStoreError | undefined,
  messagesSeen: number | undefined
): Effect.Effect<A, LockTimeout | LockStoreError> => {
  const { channel, client, key, kind, permits, waitMillis } = request
  const waitsUntil = startedAt + waitMillis
  const joined = Effect.flatMap(client.waitQueues.join(key, "permit", { permits, waitsUntil }), ([queue, waiter]) => {
    if (answer instanceof LockStoreError) queue.failed(answer, startedAt)
    else if (answer !== undefined) queue.answered(answer.remaining)
    if (answer !== undefined) {
      queue.mayHavePlace = true
      queue.listen(channel, messagesSeen, placesIn(client))
    }
    // the waiters ahead of it have just left
    else if (waiter.hasTurn) queue.signal()
    const last = answer instanceof LockStoreError ? undefined : answer
    return Effect.ensuring(
      whileQueued(request, { restore, startedAt, last }, queue, waiter),
      Effect.suspend(() => {
        queue.leave(waiter)
        return queue.isEmpty && queue.mayHavePlace
          ? leavePlace(client, key, queue.outage.failure !== undefined)
          : Effect.void
      })
    )
  })
  return countWaiting(client, kind.name, joined)
}

const placesIn = ({ store }: AcquiringClient): Mode | undefined => (store.handsOver ? "permit" : undefined)

interface PermitWait<A> {
  readonly restore: Restore
  readonly startedAt: number
  /** The reply to the request before the wait. */
  readonly last: PermitReply<A> | undefined
}

const whileQueued = Effect.fnUntraced(function* <A extends object>(
  request: PermitRequest<A>,
  { last, restore, startedAt }: PermitWait<A>,
  queue: WaitQueue,
  waiter: Waiter
): Effect.fn.Return<A, LockTimeout | LockStoreError> {
  const { channel, client, kind } = request
  const { waitsUntil } = waiter
  const takesPlaces = client.store.handsOver
  while (true) {
    const wake = yield* restore(queue.sleep(waiter))
    if (wake === "signal" || (wake === "tick" && client.now() < waitsUntil)) {
      if (wake === "tick") client.telemetry.polled(kind.name)
      queue.ask(waiter)
      const messagesSeen = client.subscriptions.messagesSeen(channel, takesPlaces)
      const sentAt = client.now()
      const asking = askingOf(queue, waiter)
      queue.mayHavePlace = true
      const answer: PermitReply<A> | LockStoreError = yield* catchTransient(request.ask(restore, startedAt, asking))
      if (answer instanceof LockStoreError) {
        queue.failed(answer, sentAt)
        queue.pass(0)
      } else if (answer.granted !== undefined) {
        queue.outage.answered()
        queue.mayHavePlace = asking.ifGranted > 0
        queue.leave(waiter, answer.available)
        // fibers that have joined meanwhile: the place does not tell of them
        if (takesPlaces && queue.wantedWithout(undefined) !== asking.ifGranted) queue.signal()
        return answer.granted
      } else {
        queue.answered(answer.remaining)
        queue.pass(answer.available)
        last = answer
      }
      if (!queue.isListening) queue.listen(channel, messagesSeen, placesIn(client))
    }
    if (client.now() >= waitsUntil) return yield* gaveUp(request, startedAt, last, queue.outage.failure)
  }
})

const askingOf = (queue: WaitQueue, waiter: Waiter): Asking => ({
  clientId: queue.client.clientId,
  ifDenied: queue.wantedWithout(undefined),
  ifGranted: queue.wantedWithout(waiter),
  who: queue.oldest === waiter ? "oldest" : "younger"
})

/** Ends the wait: with the store's own `failure` if the last request failed. */
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
