import * as Effect from "effect/Effect"
import { identity } from "effect/Function"
import type { LockStoreError, LockTimeout } from "../../LockError.ts"
import type { Permit, PermitSemaphore } from "../../PermitSemaphore.ts"
import type { Acquisition, Restore } from "../acquire/acquire.ts"
import { grantedTooLate, isForbidden, mayHaveRun, possess } from "../acquire/acquireOnce.ts"
import { acquire as acquireDemand, type Answer } from "../acquire/acquirePermits.ts"
import { explain } from "../report/wrongType.ts"
import { Hold } from "../hold/Hold.ts"
import { semaphoreChannel } from "../store/keys.ts"
import { idsOf, permit, permitSemaphoreTitle } from "../protocol/permits.ts"
import type { LockClient } from "../client/LockClient.ts"
import type { Claim, LockKind, Request } from "../protocol/LockProtocol.ts"
import { checkPermits } from "../options/permitCount.ts"
import { Possession } from "../hold/Lease.ts"
import { undo, undoUnknown } from "../hold/release.ts"
import { type Invalid, isMade, Synchronizer } from "./Synchronizer.ts"

export const TypeId = "~effect-redis-lock/PermitSemaphore"

export class PermitSemaphoreImpl<R> extends Synchronizer implements PermitSemaphore<R> {
  declare readonly [TypeId]: { readonly _R: (_: never) => R }
  readonly title = permitSemaphoreTitle
  /** What the semaphore begins with where it does not exist. */
  readonly permits: number | undefined
  readonly kind: LockKind

  constructor(name: string, permits: number | undefined, client: LockClient | undefined, invalid?: Invalid) {
    super(name, client, invalid ?? (permits === undefined ? undefined : checkPermits("permits", permits, 1)))
    this.permits = permits
    this.kind = permit(permits)
  }
}

Object.defineProperty(PermitSemaphoreImpl.prototype, TypeId, { value: { _R: identity } })

export const permitSemaphoreOf = <R>(semaphore: PermitSemaphore<R> | string): PermitSemaphoreImpl<R> =>
  isMade(semaphore, TypeId)
    ? (semaphore as PermitSemaphoreImpl<R>)
    : new PermitSemaphoreImpl<R>(semaphore as string, undefined, undefined)

/**
 * Permits that were acquired at once.
 */
export class PermitHold extends Hold implements Permit {
  get ids(): ReadonlyArray<string> {
    return idsOf(this.owner)
  }
}

/** As many ids as permits: 32 hexadecimal digits each, and never used before. */
const newIds = (permits: number): string =>
  Array.from({ length: permits }, () => crypto.randomUUID().replaceAll("-", "")).join(",")

/** Waits for permits as long as allowed. */
export const acquire = (
  acquisition: Acquisition,
  permits: number,
  restore: Restore
): Effect.Effect<PermitHold, LockTimeout | LockStoreError> => {
  const { client, keys, kind, name, waitMillis } = acquisition
  return acquireDemand(
    {
      client,
      kind,
      name,
      key: keys.lock,
      channel: semaphoreChannel(keys.lock),
      permits,
      waitMillis,
      ask: (restore, startedAt) => ask(acquisition, permits, restore, startedAt)
    },
    restore
  )
}

/** Names of which a client remembers that it has said so. */
const mostCompared = 1000

/**
 * Says once for each name that the semaphore has not as many permits as its value says: one that exists keeps its number. Looked at
 * when permits are denied, as that tells how many there are without another command.
 */
const compareTotal = ({ client, keys, name }: Acquisition, { args }: Request, total: number): Effect.Effect<void> => {
  const [initial] = args
  const { comparedTotals } = client
  if (initial === "" || initial === total || comparedTotals.size === mostCompared || comparedTotals.has(keys.lock)) {
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

/** Asks once. Interrupted or failed with unknown outcome, it is undone before anything else happens. */
export const ask = (
  acquisition: Acquisition,
  permits: number,
  restore: Restore,
  startedAt: number
): Effect.Effect<Answer<PermitHold>, LockStoreError> => {
  const { client, keys, kind, name } = acquisition
  const lease = acquisition.leaseMillis ?? client.options.watchdogLeaseMillis
  const claim: Claim = { client, kind, name, keys, owner: newIds(permits) }
  const request = kind.acquire(claim, { leaseMillis: lease, waits: acquisition.waitMillis > 0, writer: undefined })
  const sentAt = client.now()
  client.underWay++
  return Effect.matchCauseEffect(restore(client.store.run(request.operation, request.keys, request.args)), {
    onSuccess: (reply): Effect.Effect<Answer<PermitHold>, LockStoreError> => {
      client.underWay--
      const [granted, available, remaining, held] = reply as readonly [number, number, number, number?]
      if (granted !== 1) {
        const exists = held !== -1
        const denied: Answer<PermitHold> = { granted: undefined, available, remaining, exists }
        return exists && held !== undefined
          ? Effect.as(compareTotal(acquisition, request, available + held), denied)
          : Effect.succeed(denied)
      }
      const now = client.now()
      const possession = Possession.granted(acquisition, claim.owner, 0, sentAt, lease, now)
      return possession !== undefined
        ? Effect.succeed({
            granted: possess(acquisition, possession, new PermitHold(possession, acquisition), startedAt),
            available,
            remaining,
            exists: true
          })
        : Effect.andThen(
            undo(claim, sentAt + lease),
            Effect.fail(grantedTooLate(name, request.operation, now - sentAt, lease))
          )
    },
    onFailure: (cause) => {
      client.underWay--
      const failed = explain(client, kind.title, keys.lock, cause)
      return mayHaveRun(cause) ? Effect.andThen(undoUnknown(claim, lease, isForbidden(cause)), failed) : failed
    }
  })
}
