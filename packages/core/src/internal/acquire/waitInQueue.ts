/**
 * Waits in the queue of this process, where the waiter that has the turn talks to Redis for all.
 */
import * as Effect from "effect/Effect"
import { type LockReentered, LockStoreError, type LockTimeout } from "../../LockError.ts"
import type { AcquireRequest } from "./AcquireRequest.ts"
import { acquireOnce, ownerRefOf, type Denial } from "./acquireOnce.ts"
import { backOff } from "../options/backOff.ts"
import { tryReenter } from "./reenter.ts"
import { Hold } from "../hold/Hold.ts"
import { Outage } from "../wait/Outage.ts"
import type { WaitQueue } from "../wait/WaitQueue.ts"
import type { Waiter } from "../wait/Waiter.ts"
import { gaveUp } from "./gaveUp.ts"
import { pauseAfterFailure } from "./pauseAfterFailure.ts"
import { cancelWriterIntent } from "../hold/rollback.ts"
import type { Restore } from "../hold/guard.ts"

export const isRequestInFlight = ({ client, keys, kind }: AcquireRequest): boolean =>
  kind.mode !== "read" && client.requestsInFlight.has(keys.lock)

/** The in-flight request of this process has been answered. */
export const settled = ({ client, keys, kind }: AcquireRequest): void => {
  client.requestsInFlight.delete(keys.lock)
  client.waitQueues.get(keys.lock, kind.mode)?.unreserve()
}

/** A request that was made before the wait. */
export interface EarlierRequest {
  readonly answer: Denial | LockStoreError
  /** The number of messages that had arrived before it was sent; undefined where the channel was not subscribed. */
  readonly messagesSeen: number | undefined
}

/** Waits in the queue of this process. */
export const waitInQueue = (
  request: AcquireRequest,
  restore: Restore,
  startedAt: number,
  earlier: EarlierRequest | undefined
): Effect.Effect<Hold, LockTimeout | LockReentered | LockStoreError> => {
  const { client, identity, keys, kind } = request
  const waitsUntil = startedAt + request.waitMillis
  const atHead = kind.mode !== "read" && earlier !== undefined
  const join = client.waitQueues.join(keys.lock, kind.mode, { identity, waitsUntil, atHead }, () =>
    isRequestInFlight(request)
  )
  return Effect.flatMap(join, ([queue, waiter]) => {
    if (earlier?.answer instanceof LockStoreError) {
      queue.failed(earlier.answer, startedAt)
    } else if (earlier !== undefined) {
      queue.answered(earlier.answer.remaining)
      queue.announced = kind.cancelWriterIntent !== undefined
    }
    // only now: another waiter that took the head meanwhile would be asking already
    if (atHead) settled(request)
    return Effect.ensuring(
      whileQueued(request, { restore, startedAt, earlier }, queue, waiter),
      Effect.suspend(() => {
        queue.leave(waiter)
        return queue.isEmpty && queue.announced ? cancelWriterIntent(ownerRefOf(request, client.clientId)) : Effect.void
      })
    )
  })
}

interface Wait {
  readonly restore: Restore
  readonly startedAt: number
  readonly earlier: EarlierRequest | undefined
}

const whileQueued = Effect.fnUntraced(function* (
  request: AcquireRequest,
  { earlier, restore, startedAt }: Wait,
  queue: WaitQueue,
  waiter: Waiter
): Effect.fn.Return<Hold, LockTimeout | LockReentered | LockStoreError> {
  const { client, keys, kind } = request
  let denial = earlier?.answer instanceof LockStoreError ? undefined : earlier?.answer
  let messagesSeen = earlier?.messagesSeen
  const isShared = kind.mode === "read"
  const { waitsUntil } = waiter
  const nextPause = kind.backoff === undefined ? undefined : yield* backOff(kind.backoff)
  // A request would be refused while this process holds the lock, and jump the queue while it leaves the lock to others.
  const shouldNotAsk = () => client.isHeldHere(keys.lock, kind.mode) || client.now() < queue.quietUntil
  let skipsRequest = earlier !== undefined ? waiter.hasTurn : shouldNotAsk()

  const reentry = new Outage()
  let isSubscribing = false

  while (true) {
    if (!waiter.hasTurn && reentry.failure === undefined) {
      yield* restore(queue.awaitTurn(waiter))
      skipsRequest = shouldNotAsk()
    }
    const entered = yield* tryReenter(request, restore)
    if (entered instanceof Hold) return entered
    if (entered !== undefined) {
      const left = waitsUntil - client.now()
      if (left <= 0) return yield* Effect.fail(entered)
      // only its own re-entry has failed: the others need not know
      reentry.failed(entered)
      yield* pauseAfterFailure(client, reentry, left, restore)
      continue
    }
    reentry.answered()
    // a release lets all readers in at once; while the store cannot be asked, only the waiter that has the turn keeps trying
    if ((waiter.hasTurn || (isShared && queue.outage.failure === undefined)) && !skipsRequest) {
      if (waiter.hasTurn) queue.ask(waiter)
      const ownerRef = ownerRefOf(request, client.nextOwner())
      messagesSeen = client.subscriptions.messagesSeen(kind.channel(keys, ownerRef.owner))
      const sentAt = client.now()
      queue.announced = kind.cancelWriterIntent !== undefined
      const outcome: Hold | Denial | LockStoreError = yield* acquireOnce(request, {
        ownerRef,
        waits: true,
        restore,
        startedAt,
        onGranted: Effect.succeed<Hold>,
        onDenied: Effect.succeed<Denial | LockStoreError>,
        onTransient: Effect.succeed<LockStoreError>
      })
      if (outcome instanceof Hold) {
        queue.answered(-1)
        queue.announced = false
        if (isShared) queue.wakeOthers()
        // the next one need not ask for what this process holds, but has to look out for its loss
        queue.leave(waiter, 0)
        queue.turn?.wake()
        return outcome
      }
      if (outcome instanceof LockStoreError) queue.failed(outcome, sentAt)
      else queue.answered(outcome.remaining)
      denial = outcome instanceof LockStoreError ? undefined : outcome
    }
    const now = client.now()
    const remaining = waitsUntil - now
    if (remaining <= 0) return yield* gaveUp(request, startedAt, denial, queue.outage.failure)
    if (!waiter.hasTurn) continue
    // Releases in this process wake waiters without a subscription.
    if (nextPause === undefined && !queue.isListening && !client.isHeldHere(keys.lock, kind.mode)) {
      isSubscribing = queue.listen(kind.channel(keys, client.clientId), messagesSeen)
    }
    const pause =
      nextPause === undefined || queue.outage.failure !== undefined ? queue.pauseUntil - now : yield* nextPause
    if (pause === undefined) return yield* gaveUp(request, startedAt, denial)
    const quiet = queue.quietUntil - now
    const wake = yield* restore(queue.take(waiter, now + (quiet > 0 ? quiet : pause)))
    if (wake === "tick" && quiet <= 0 && nextPause === undefined && client.now() < waitsUntil)
      client.telemetry.polled(kind.name)
    // the message may announce a release that this process has already used
    skipsRequest = wake === "signal" && shouldNotAsk()
    if (isShared && !skipsRequest && !isSubscribing && wake === "signal") queue.wakeOthers()
    isSubscribing = false
  }
})
