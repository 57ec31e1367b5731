/**
 * Acquires a lock, in the same way for every kind: re-enters it if the caller holds it; else sends a request; if that is
 * denied, waits for a message or the fallback interval, and tries again. Most kinds wait in the queue of this process,
 * where the waiter that has the turn talks to Redis for all; fair locks have a place in Redis for each waiter.
 *
 * Everything runs uninterruptibly except what is wrapped in `restore`: the waits, and the round trip of a request or a
 * re-entry, which is rolled back if it is interrupted.
 */
import * as Effect from "effect/Effect"
import type * as Option from "effect/Option"
import type { LockReentered, LockStoreError, LockTimeout } from "../../LockError.ts"
import { acquireOnce, type Attempt, type Denial, ownerRefOf, writerOf } from "./acquireOnce.ts"
import { reenter } from "./reenter.ts"
import type { Hold } from "../hold/Hold.ts"
import type { HeldRef } from "../hold/releaseCommand.ts"
import { transientFailure } from "../store/transient.ts"
import { waitInFairQueue } from "./waiting/waitInFairQueue.ts"
import { isRequestInFlight, messagesSeenOf, settled, waitInQueue } from "./waiting/waitInQueue.ts"
import { gaveUp } from "./waiting/gaveUp.ts"
import { pauseAfterFailure } from "./waiting/pauseAfterFailure.ts"
import { Outage } from "../wait/Outage.ts"
import type { AcquireRequest } from "./AcquireRequest.ts"
import type { Restore } from "../hold/guard.ts"

/** Waits for the lock as long as allowed. */
export const acquire = (
  request: AcquireRequest,
  restore: Restore,
  startedAt = request.client.now(),
  reentry?: Outage
): Effect.Effect<Hold, LockTimeout | LockReentered | LockStoreError> => {
  const { client, keys, kind } = request
  const reentered = reenter(request, restore)
  if (reentered !== undefined)
    return reenterUntilSettled(request, restore, startedAt, reentry ?? new Outage(), reentered)
  const waits = request.waitMillis > 0
  if (kind.queued && waits) return waitInFairQueue(request, restore, startedAt)
  if (!waits) return ask(request, restore, startedAt)
  return Effect.suspend(() => {
    // While other fibers of this process wait or hold, a request would jump the queue, or certainly be refused.
    if (isHeldUp(request)) return waitInQueue(request, restore, startedAt, undefined)
    if (kind.mode === "read") {
      if (client.requestsInFlight.read.has(keys.lock)) return ask(request, restore, startedAt)
      client.requestsInFlight.read.set(keys.lock, true)
      return ask(request, restore, startedAt, true)
    }
    // Fibers that arrive during a request share its result.
    client.requestsInFlight.exclusive.set(keys.lock, true)
    return ask(request, restore, startedAt, true)
  })
}

/** Sends the first request, and waits if it is denied. */
const ask = (
  request: AcquireRequest,
  restore: Restore,
  startedAt: number,
  takesPlace = false
): Effect.Effect<Hold, LockTimeout | LockReentered | LockStoreError> =>
  acquireOnce(request, new FirstAttempt(request, restore, startedAt, takesPlace))

/** The request before there is any wait. */
class FirstAttempt implements Attempt<Hold, Hold, LockTimeout | LockReentered | LockStoreError> {
  readonly ownerRef: HeldRef
  readonly restore: Restore
  readonly startedAt: number
  /** Of the requests that are in flight at once, which only readers send, the first. */
  readonly takesPlace: boolean
  readonly #request: AcquireRequest
  readonly #messagesSeen: number | undefined
  readonly #sentAt: number

  constructor(request: AcquireRequest, restore: Restore, startedAt: number, takesPlace: boolean) {
    const { client } = request
    this.ownerRef = ownerRefOf(request, client.nextOwner())
    this.restore = restore
    this.startedAt = startedAt
    this.takesPlace = takesPlace
    this.#request = request
    this.#messagesSeen = messagesSeenOf(request)
    this.#sentAt = client.now()
  }

  get waits(): boolean {
    return this.#request.waitMillis > 0
  }

  onGranted(hold: Hold): Effect.Effect<Hold> {
    return Effect.succeed(hold)
  }

  onDenied(denial: Denial): Effect.Effect<Hold, LockTimeout | LockReentered | LockStoreError> {
    return this.waits ? this.#wait(denial) : gaveUp(this.#request, this.startedAt, denial)
  }

  onSettled(): void {
    if (this.takesPlace) settled(this.#request)
  }

  onTransient(failure: LockStoreError): Effect.Effect<Hold, LockTimeout | LockReentered | LockStoreError> {
    return this.#wait(failure)
  }

  #wait(answer: Denial | LockStoreError): Effect.Effect<Hold, LockTimeout | LockReentered | LockStoreError> {
    const { ownerRef, restore, startedAt, takesPlace } = this
    const earlier = { answer, messagesSeen: this.#messagesSeen, ownerRef, sentAt: this.#sentAt, takesPlace }
    return waitInQueue(this.#request, restore, startedAt, earlier)
  }
}

/** Re-enters a lock that its owner holds, retrying transient failures; acquires it anew if it is lost meanwhile. */
const reenterUntilSettled = (
  request: AcquireRequest,
  restore: Restore,
  startedAt: number,
  reentry: Outage,
  reentered: Effect.Effect<Hold | undefined, LockReentered | LockStoreError>
): Effect.Effect<Hold, LockTimeout | LockReentered | LockStoreError> =>
  Effect.matchCauseEffect(reentered, {
    onSuccess: (hold) => (hold === undefined ? acquire(request, restore, startedAt) : Effect.succeed(hold)),
    onFailure: (cause): Effect.Effect<Hold, LockTimeout | LockReentered | LockStoreError> => {
      const { client, waitMillis } = request
      const left = startedAt + waitMillis - client.now()
      const failure = transientFailure(cause)
      if (left <= 0 || failure === undefined) return Effect.failCause(cause)
      reentry.failed(failure)
      return Effect.andThen(
        pauseAfterFailure(client, reentry, left, restore),
        Effect.suspend(() => acquire(request, restore, startedAt, reentry))
      )
    }
  })

/** Sends one request, even if others wait. */
export const tryAcquire = (
  request: AcquireRequest,
  restore: Restore
): Effect.Effect<Option.Option<Hold>, LockReentered | LockStoreError> => {
  const reentered = reenter(request, restore)
  if (reentered !== undefined) {
    return Effect.flatMap(reentered, (hold) =>
      hold === undefined ? tryAcquire(request, restore) : Effect.succeedSome(hold)
    )
  }
  const { client } = request
  const ownerRef = ownerRefOf(request, client.nextOwner())
  return acquireOnce(request, {
    ownerRef,
    waits: false,
    restore,
    startedAt: client.now(),
    onGranted: Effect.succeedSome,
    onDenied: () => Effect.succeedNone
  })
}

const isHeldUp = (request: AcquireRequest): boolean => {
  const { client, keys, kind } = request
  // a writer never waits for itself
  if (writerOf(request) !== undefined) return false
  if (client.waitQueues.get(keys.lock, kind.mode) !== undefined || isRequestInFlight(request)) return true
  // while readers of this process hold the lock, a writer still sends a request, which announces it to other processes
  return client.isHeldHere(keys.lock, kind.cancelWriterIntent === undefined ? kind.mode : "read")
}
