/**
 * Acquires a lock, in the same way for every kind: re-enters it if the caller holds it; else sends a request; if that is
 * denied, waits for a message or the fallback interval, and tries again. Most kinds wait in the line of this process,
 * where the waiter that has the turn talks to Redis for all; fair locks have a place in Redis for each waiter.
 *
 * Everything runs uninterruptibly except what is wrapped in `restore`: the waits, and the round trip of a request or a
 * re-entry, which is rolled back if it is interrupted.
 */
import * as Effect from "effect/Effect"
import type { LockReentered, LockStoreError, LockTimeout } from "../../LockError.ts"
import { Hold } from "../hold/Hold.ts"
import { goesTogether } from "../kinds/kinds.ts"
import { matchOutcome } from "../store/commands.ts"
import { acquireOnce, AcquireRequest, Ask, type Denial, type Restore } from "./ask.ts"
import { reenterOr } from "./reenter.ts"
import { gaveUp } from "./untilServed.ts"
import { waitInFairQueue } from "./waitInFairQueue.ts"
import { waitInLine } from "./waitInLine.ts"

/** A request for one lock. */
export class LockRequest extends AcquireRequest {
  /** The requests of which it consists: those of a composed lock are several. */
  get subjects(): ReadonlyArray<this> {
    return [this]
  }

  /** Whether one command can acquire it together with other locks of its client and slot. */
  get isJoinable(): boolean {
    const { acknowledge, client, identity, keys, kind } = this
    // other members may need something else
    return (
      goesTogether(this) &&
      acknowledge === undefined &&
      client.leases.find(keys.lock, kind.mode, identity) === undefined
    )
  }

  /** Waits for the lock as long as allowed. Run it at once: the request counts as under way from here on. */
  acquire(restore: Restore): Effect.Effect<Hold, LockTimeout | LockReentered | LockStoreError> {
    const { client, keys, waitMillis } = this
    const startedAt = client.now()
    return client.leases.has(keys.lock)
      ? reenterOr(this, restore, startedAt + waitMillis, () => this.#askOrJoin(restore, startedAt, true))
      : this.#askOrJoin(restore, startedAt, false)
  }

  /** Sends the first request; or joins the fibers of this process that wait already. */
  #askOrJoin(
    restore: Restore,
    startedAt: number,
    isHeldHere: boolean
  ): Effect.Effect<Hold, LockTimeout | LockReentered | LockStoreError> {
    const { client, keys, kind } = this
    const waits = this.waitMillis > 0
    let takesPlace = false
    if (waits) {
      if (kind.queued) return waitInFairQueue(this, restore, startedAt)
      // While other fibers of this process hold or wait, a request would certainly be refused, or jump the queue. While its readers hold the
      // lock, a writer still sends a request, which takes a place among other processes.
      const excluded = kind.mode === "write" ? "read" : kind.mode
      const step =
        isHeldHere && client.leases.exclude(keys.lock, excluded) ? "join" : client.lines.begin(keys.lock, kind.mode)
      if (step === "join") return waitInLine(this, restore, startedAt, undefined)
      takesPlace = step === "ask"
    }
    // of those that are in flight at once, which only readers send, the first takes the place
    const ask = new Ask(this, { waits, startedAt, takesPlace })
    return matchOutcome(
      acquireOnce(this, ask, restore),
      (answer): Effect.Effect<Hold, LockTimeout | LockReentered | LockStoreError> => {
        if (answer instanceof Hold) {
          // only now: a waiter that is resumed here runs at once, and must see that this process holds the lock
          if (takesPlace) client.lines.settle(keys.lock, kind.mode, true)
          return Effect.succeed(answer)
        }
        return waits ? waitInLine(this, restore, startedAt, { answer, ask }) : gaveUp(this, startedAt, answer as Denial)
      },
      (cause) => {
        if (takesPlace) client.lines.settle(keys.lock, kind.mode, false)
        return Effect.failCause(cause)
      }
    )
  }

  /** Sends one request, even if others wait; undefined if it is denied. Run it at once, as {@link acquire}. */
  tryAcquire(restore: Restore): Effect.Effect<Hold | undefined, LockReentered | LockStoreError> {
    return this.client.leases.has(this.keys.lock)
      ? reenterOr(this, restore, Number.NEGATIVE_INFINITY, () => this.#askOnce(restore))
      : this.#askOnce(restore)
  }

  #askOnce(restore: Restore): Effect.Effect<Hold | undefined, LockStoreError> {
    const ask = new Ask(this, { waits: false, startedAt: this.client.now() })
    return Effect.map(acquireOnce(this, ask, restore), (answer) => (answer instanceof Hold ? answer : undefined))
  }
}
