/**
 * Re-enters a lock that the caller holds already.
 */
import * as Effect from "effect/Effect"
import { LockReentered, type LockStoreError } from "../../LockError.ts"
import type { AcquireRequest } from "./AcquireRequest.ts"
import { acknowledgedBy } from "../store/operations/StoreOperation.ts"
import { catchTransient } from "../store/transient.ts"
import { leaseMillisOf } from "./acquireOnce.ts"
import { Hold } from "../hold/Hold.ts"
import type { Lease } from "../hold/Lease.ts"
import { rollbackReentry } from "../hold/rollback.ts"
import type { Restore } from "../hold/guard.ts"

/**
 * Acquires a lock that the caller holds already: adds a hold, or fails if the caller would wait for itself. Undefined if
 * the caller does not hold the lock.
 */
export const reenter = (
  request: AcquireRequest,
  restore: Restore
): Effect.Effect<Hold | undefined, LockReentered | LockStoreError> | undefined => {
  const { client, identity, keys, kind, name } = request
  const mine = client.find(keys.lock, kind.mode, identity)
  if (mine !== undefined) {
    if (!kind.reentrant) return Effect.fail(new LockReentered({ lock: name, attempt: "reenter" }))
    const left = mine.innerReleaseUntil - client.now()
    if (left < 0) return addHold(request, mine, restore)
    // an inner release that may still take effect would end the new hold instead of its own
    return Effect.andThen(
      restore(Effect.sleep(left + 1)),
      Effect.suspend(() => reenter(request, restore) ?? Effect.undefined)
    )
  }
  return kind.mode === "write" && client.find(keys.lock, "read", identity) !== undefined
    ? Effect.fail(new LockReentered({ lock: name, attempt: "upgrade" }))
    : undefined
}

/** {@link reenter} for a waiter: returns a transient failure as a value. */
export const tryReenter = (
  request: AcquireRequest,
  restore: Restore
): Effect.Effect<Hold | LockStoreError | undefined, LockReentered | LockStoreError> => {
  const reentered = reenter(request, restore)
  return reentered === undefined ? Effect.undefined : catchTransient(reentered)
}

/** Adds a hold to a lease; undefined if the lease turns out to be lost. */
const addHold = (
  request: AcquireRequest,
  lease: Lease,
  restore: Restore
): Effect.Effect<Hold | undefined, LockStoreError> =>
  Effect.suspend(() => {
    const { client, kind } = request
    const leaseMillis = leaseMillisOf(request)
    const hold = new Hold(lease, request)
    const command = acknowledgedBy(kind.addHold(lease, lease.add(hold), leaseMillis), request)
    const sentAt = client.now()
    lease.asksFor(leaseMillis, sentAt)
    client.underWay++
    return Effect.matchCauseEffect(restore(client.store.run(command)), {
      onSuccess: (reply) => {
        client.underWay--
        const lost = reply === 1 ? lease.confirm(sentAt, leaseMillis, hold) : lease.lose("NotOwner", client.now())
        if (lost !== undefined) return Effect.as(rollbackReentry(hold), undefined)
        lease.keepFor(request.minHoldMillis ?? 0)
        client.watchdog.watch(lease)
        client.wakeOwners(hold)
        return Effect.succeed(hold)
      },
      onFailure: (cause) => {
        client.underWay--
        return Effect.andThen(rollbackReentry(hold), Effect.failCause(cause))
      }
    })
  })
