import { ownerText } from "../../report/ownerText.ts"
import { printsAs } from "../../report/printsAs.ts"
import * as Effect from "effect/Effect"
import { identity } from "effect/Function"
import type { LockStoreError, LockTimeout } from "../../../LockError.ts"
import type { AcquireRequest } from "../../acquire/AcquireRequest.ts"
import { grantedTooLate, possess } from "../../acquire/acquireOnce.ts"
import { acquire as acquireDemand } from "../../acquire/acquirePermits.ts"
import { describeWrongType } from "../../store/wrongType.ts"
import { Hold } from "../../hold/Hold.ts"
import { semaphoreChannel } from "../../store/keys.ts"
import { idsOf, permit, type PermitProtocol, permitSemaphoreTitle } from "../../protocol/permits.ts"
import type { Service } from "../../client/RedisLock.ts"
import { checkPermits } from "../../options/permitCount.ts"
import { Lease } from "../../hold/Lease.ts"
import type { HeldRef } from "../../hold/releaseCommand.ts"
import type { Invalid } from "../../options/invalid.ts"
import { isMade, Synchronizer } from "../Synchronizer.ts"
import { isForbidden, mayHaveRun } from "../../store/outcome.ts"
import type { Asking } from "../../store/operations/counters/permitPlaces.ts"
import * as permitSemaphore from "../../store/operations/counters/permitSemaphore.ts"
import { acknowledgedBy } from "../../store/operations/StoreOperation.ts"
import type { PermitReply } from "../../protocol/PermitReply.ts"
import { rollback, rollbackUnknown } from "../../hold/rollback.ts"
import type { Restore } from "../../hold/guard.ts"

export const TypeId = "~effect-redis-lock/PermitSemaphore"

/** The public part of a semaphore. */
export type PublicPermitSemaphore<R> = Pick<PermitSemaphoreImpl<R>, typeof TypeId | "name">

export class PermitSemaphoreImpl<R> extends Synchronizer {
  declare readonly [TypeId]: { readonly _R: (_: never) => R }
  readonly title = permitSemaphoreTitle
  /** The number of permits with which a missing semaphore is created. */
  readonly permits: number | undefined
  readonly kind: PermitProtocol

  constructor(name: string, permits: number | undefined, service: Service | undefined, invalid?: Invalid) {
    super(name, service, invalid ?? (permits === undefined ? undefined : checkPermits("permits", permits, 1)))
    this.permits = permits
    this.kind = permit(permits)
  }
}

Object.defineProperty(PermitSemaphoreImpl.prototype, TypeId, { value: { _R: identity } })

export const permitSemaphoreOf = <R>(semaphore: PublicPermitSemaphore<R> | string): PermitSemaphoreImpl<R> =>
  isMade(semaphore, TypeId)
    ? (semaphore as PermitSemaphoreImpl<R>)
    : new PermitSemaphoreImpl<R>(semaphore as string, undefined, undefined)

/**
 * Permits that were acquired together.
 */
export class PermitHold extends Hold {
  get ids(): ReadonlyArray<string> {
    return idsOf(this.owner)
  }
}

/** One new id per permit, 32 hexadecimal digits each. */
const newIds = (permits: number): string =>
  Array.from({ length: permits }, () => crypto.randomUUID().replaceAll("-", "")).join(",")

export interface PermitAcquireRequest extends AcquireRequest {
  readonly kind: PermitProtocol
}

/** Waits for permits as long as allowed. */
export const acquire = (
  request: PermitAcquireRequest,
  permits: number,
  restore: Restore
): Effect.Effect<PermitHold, LockTimeout | LockStoreError> => {
  const { client, keys, kind, name, waitMillis } = request
  return acquireDemand(
    {
      client,
      kind,
      name,
      key: keys.lock,
      channel: semaphoreChannel(keys.lock),
      permits,
      waitMillis,
      ask: (restore, startedAt, asking) => ask(request, permits, restore, startedAt, asking)
    },
    restore
  )
}

/** The most names that a client remembers to have warned about. */
const mostCompared = 1000

/**
 * Warns once per name if a semaphore has a different number of permits than its value says, since an existing semaphore
 * keeps its number. The check happens when permits are denied, because that reply contains the number.
 */
const compareTotal = (
  { client, keys, kind: { initial }, name }: PermitAcquireRequest,
  total: number
): Effect.Effect<void> => {
  const { comparedTotals } = client
  if (
    initial === undefined ||
    initial === total ||
    comparedTotals.size === mostCompared ||
    comparedTotals.has(keys.lock)
  ) {
    return Effect.void
  }
  comparedTotals.add(keys.lock)
  return Effect.annotateLogs(
    Effect.logWarning(
      `The semaphore has ${total} permits in all, and not the ${initial} of its value here: it existed already. ` +
        `PermitSemaphore.setPermits changes the number.`
    ),
    { semaphore: name }
  )
}

/** Sends one request. If it is interrupted or fails with an unknown outcome, it is rolled back first. */
export const ask = (
  request: PermitAcquireRequest,
  permits: number,
  restore: Restore,
  startedAt: number,
  asking: Asking
): Effect.Effect<PermitReply<PermitHold>, LockStoreError> => {
  const { client, keys, kind, name } = request
  const leaseMillis = request.leaseMillis ?? client.options.watchdogLeaseMillis
  const ownerRef: HeldRef = { client, kind, name, keys, owner: newIds(permits) }
  const ids = idsOf(ownerRef.owner)
  const command = acknowledgedBy(
    permitSemaphore.acquire(keys.lock, kind.initial, { ids, leaseMillis }, asking, client.store),
    request
  )
  const sentAt = client.now()
  client.underWay++
  return Effect.matchCauseEffect(restore(client.store.run(command)), {
    onSuccess: ({ available, held, isGranted, remaining }): Effect.Effect<PermitReply<PermitHold>, LockStoreError> => {
      client.underWay--
      if (!isGranted) {
        const exists = held !== -1
        const denied: PermitReply<PermitHold> = { granted: undefined, available, remaining, exists }
        return exists && held !== undefined
          ? Effect.as(compareTotal(request, available + held), denied)
          : Effect.succeed(denied)
      }
      const now = client.now()
      const lease = Lease.granted(request, { owner: ownerRef.owner, token: 0, sentAt, leaseMillis }, now)
      return lease !== undefined
        ? Effect.succeed({
            granted: possess(request, lease, new PermitHold(lease, request), startedAt),
            available,
            remaining,
            exists: true
          })
        : Effect.andThen(
            rollback(ownerRef, leaseMillis),
            Effect.fail(grantedTooLate(name, command.operation.name, now - sentAt, leaseMillis))
          )
    },
    onFailure: (cause) => {
      client.underWay--
      const failed = describeWrongType(client, kind.title, keys.lock, cause)
      return mayHaveRun(cause)
        ? Effect.andThen(rollbackUnknown(ownerRef, leaseMillis, isForbidden(cause)), failed)
        : failed
    }
  })
}

printsAs(PermitHold.prototype, ({ name, owner }) => ({ _id: "effect-redis-lock/Permit", name, ids: ownerText(owner) }))
