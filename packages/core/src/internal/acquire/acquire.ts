/**
 * Acquires a lock, in the same way for every kind: re-enters it if the caller holds it; else sends a request; if that is
 * denied, waits for a message or the fallback interval, and tries again. Most kinds wait in the line of this process,
 * where the waiter that has the turn talks to Redis for all; fair locks have a place in Redis for each waiter.
 *
 * Everything runs uninterruptibly except what is wrapped in `restore`: the waits, and the round trip of a request or a
 * re-entry, which is rolled back if it is interrupted.
 */
import * as Effect from "effect/Effect"
import type * as Option from "effect/Option"
import type { LockReentered, LockStoreError, LockTimeout } from "../../LockError.ts"
import type { Restore } from "../hold/guard.ts"
import type { Hold } from "../hold/Hold.ts"
import { acquireOnce, type AcquireRequest, Ask, type Denial, messagesSeenOf, type Outcomes } from "./ask.ts"
import { reenter, reenterOwn } from "./reenter.ts"
import { gaveUp } from "./untilServed.ts"
import { waitInFairQueue } from "./waitInFairQueue.ts"
import { waitInLine } from "./waitInLine.ts"

/** Waits for the lock as long as allowed. Run it at once: the request counts as under way from here on. */
export const acquire = (
  request: AcquireRequest,
  restore: Restore,
  startedAt = request.client.now()
): Effect.Effect<Hold, LockTimeout | LockReentered | LockStoreError> => {
  const { client, keys, kind } = request
  const isHeldHere = client.leases.has(keys.lock)
  const own = isHeldHere ? reenterOwn(request, restore, startedAt + request.waitMillis) : undefined
  if (own !== undefined) {
    return Effect.flatMap(own, (hold) =>
      hold === undefined ? acquire(request, restore, startedAt) : Effect.succeed(hold)
    )
  }
  if (request.waitMillis <= 0) return askFirst(request, restore, startedAt)
  if (kind.queued) return waitInFairQueue(request, restore, startedAt)
  // While other fibers of this process hold or wait, a request would certainly be refused, or jump the queue. While its readers hold the
  // lock, a writer still sends a request, which takes a place among other processes.
  const excluded = kind.mode === "write" ? "read" : kind.mode
  const step =
    isHeldHere && client.leases.exclude(keys.lock, excluded) ? "join" : client.lines.begin(keys.lock, kind.mode)
  return step === "join"
    ? waitInLine(request, restore, startedAt, undefined)
    : askFirst(request, restore, startedAt, step === "ask")
}

/** Sends the first request, and waits if it is denied. */
const askFirst = (
  request: AcquireRequest,
  restore: Restore,
  startedAt: number,
  takesPlace = false
): Effect.Effect<Hold, LockTimeout | LockReentered | LockStoreError> => {
  const first = new Ask(request, { waits: request.waitMillis > 0, startedAt, takesPlace })
  return acquireOnce(request, first, new Begins(request, first, restore))
}

/**
 * What follows the request before there is any wait. Of those that are in flight at once, which only readers send, the first takes the place.
 */
class Begins implements Outcomes<Hold, Hold, LockTimeout | LockReentered | LockStoreError> {
  readonly restore: Restore
  readonly #request: AcquireRequest
  readonly #ask: Ask
  readonly #messagesSeen: number | undefined

  constructor(request: AcquireRequest, ask: Ask, restore: Restore) {
    this.restore = restore
    this.#request = request
    this.#ask = ask
    this.#messagesSeen = messagesSeenOf(request)
  }

  onGranted(hold: Hold): Effect.Effect<Hold> {
    return Effect.succeed(hold)
  }

  onDenied(denial: Denial): Effect.Effect<Hold, LockTimeout | LockReentered | LockStoreError> {
    const { startedAt, waits } = this.#ask
    return waits ? this.#wait(denial) : gaveUp(this.#request, startedAt, denial)
  }

  onSettled(isGranted: boolean): void {
    const { client, keys, kind, takesPlace } = this.#ask
    if (takesPlace) client.lines.settle(keys.lock, kind.mode, isGranted)
  }

  onTransient(failure: LockStoreError): Effect.Effect<Hold, LockTimeout | LockReentered | LockStoreError> {
    return this.#wait(failure)
  }

  #wait(answer: Denial | LockStoreError): Effect.Effect<Hold, LockTimeout | LockReentered | LockStoreError> {
    const ask = this.#ask
    return waitInLine(this.#request, this.restore, ask.startedAt, { answer, messagesSeen: this.#messagesSeen, ask })
  }
}

/** Sends one request, even if others wait. Run it at once, as {@link acquire}. */
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
  const ask = new Ask(request, { waits: false, startedAt: client.now() })
  return acquireOnce<Option.Option<Hold>, Option.Option<Hold>, LockStoreError>(request, ask, {
    restore,
    onGranted: Effect.succeedSome,
    onDenied: () => Effect.succeedNone
  })
}
