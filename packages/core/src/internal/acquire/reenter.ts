/**
 * Re-enters a lock that the caller holds already. Only the caller itself can end what it holds, so this never waits behind others.
 */
import * as Effect from "effect/Effect"
import { LockReentered, LockStoreError } from "../../LockError.ts"
import { Hold } from "../hold/Hold.ts"
import type { Lease } from "../hold/Lease.ts"
import { rollbackHold } from "../hold/rollback.ts"
import { transientFailure } from "../store/failures.ts"
import { StoreCommand } from "../store/operations/StoreOperation.ts"
import { Outage } from "../wait/Outage.ts"
import { acquireOnce, type AcquireRequest, Ask, ownLease, type Restore } from "./ask.ts"
import { pauseAfterFailure } from "./untilServed.ts"

/**
 * Acquires a lock that the caller holds already: adds a hold, reads under its own write lock, or fails if the caller would wait for
 * itself. A transient failure is retried until `waitsUntil`. If the caller does not hold the lock, or has lost it meanwhile, `otherwise`
 * follows. Run it at once.
 */
export const reenterOr = <A, E>(
  request: AcquireRequest,
  restore: Restore,
  waitsUntil: number,
  otherwise: () => Effect.Effect<A, E>,
  outage?: Outage
): Effect.Effect<Hold | A, LockReentered | LockStoreError | E> => {
  const { client, identity, keys, kind, name } = request
  const own = ownLease(request)
  if (own === undefined) {
    return kind.mode === "write" && client.leases.find(keys.lock, "read", identity) !== undefined
      ? Effect.fail(new LockReentered({ lock: name, attempt: "upgrade" }))
      : otherwise()
  }
  const readsUnder = own.kind.mode !== kind.mode
  if (!readsUnder && !kind.reentrant) return Effect.fail(new LockReentered({ lock: name, attempt: "reenter" }))
  const entered = readsUnder ? readUnder(own, request, restore) : addHold(own, request, restore)
  return Effect.matchCauseEffect(entered, {
    onSuccess: (hold) =>
      hold === undefined ? reenterOr(request, restore, waitsUntil, otherwise, outage) : Effect.succeed(hold),
    onFailure: (cause) => {
      const left = waitsUntil - client.now()
      const failure = transientFailure(cause)
      if (left <= 0 || failure === undefined) return Effect.failCause(cause)
      const failures = outage ?? new Outage()
      failures.failed(failure)
      return Effect.andThen(
        pauseAfterFailure(client, failures, left, restore),
        Effect.suspend(() => reenterOr(request, restore, waitsUntil, otherwise, failures))
      )
    }
  })
}

/** Reads under the caller's write lock, which Redis grants whatever else waits; undefined if the write lock turns out to be lost. */
const readUnder = (
  writer: Lease,
  request: AcquireRequest,
  restore: Restore
): Effect.Effect<Hold | undefined, LockStoreError> => {
  const { client, name } = request
  const asked = acquireOnce(request, new Ask(request, { waits: false, startedAt: client.now() }), restore)
  return Effect.flatMap(asked, (answer): Effect.Effect<Hold | undefined, LockStoreError> => {
    if (answer instanceof Hold) return Effect.succeed(answer)
    // of a quorum, some members have not answered
    if (answer instanceof LockStoreError || answer.isPartial) {
      return Effect.fail(new LockStoreError({ operation: "read_lock/acquire", lock: name, reason: "NotConnected" }))
    }
    writer.lose("NotOwner")
    return Effect.undefined
  })
}

/**
 * Adds a hold to a lease, at once, so that no release comes before; it counts once a renewal of that lease is confirmed. Undefined if the
 * lease turns out to be lost. Redis learns of no hold: after a failure, the lease may at most be longer.
 */
const addHold = (
  lease: Lease,
  request: AcquireRequest,
  restore: Restore
): Effect.Effect<Hold | undefined, LockStoreError> => {
  const { acknowledge, client, kind, leaseMillis } = request
  const hold = lease.add(new Hold(lease, request))
  const { args, keys, operation } = kind.renew([lease], leaseMillis)
  // like a grant
  const command = new StoreCommand(operation, keys, args, acknowledge)
  const sentAt = client.now()
  lease.asksFor(leaseMillis, sentAt)
  client.tracking.wrote(lease)
  return Effect.matchCauseEffect(restore(client.run(command)), {
    onSuccess: ([reply]) => {
      const lost = reply === 1 ? lease.confirm(sentAt, leaseMillis) : lease.lose("NotOwner")
      if (lost !== undefined) return Effect.andThen(rollbackHold(hold), Effect.undefined)
      if (!hold.renewed) lease.fix()
      lease.keepFor(request.minHoldMillis)
      client.watchdog.watch(lease)
      client.lines.wakeOwners(hold)
      return Effect.succeed(hold)
    },
    onFailure: (cause) => Effect.andThen(rollbackHold(hold), Effect.failCause(cause))
  })
}
