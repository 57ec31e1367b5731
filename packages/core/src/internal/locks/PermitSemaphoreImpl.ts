import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { identity } from "effect/Function"
import * as Option from "effect/Option"
import type { AcquireOptions } from "../../AcquireOptions.ts"
import { InvalidLockOptions, LockLost, type LockStoreError, type LockTimeout } from "../../LockError.ts"
import { acquire as acquireDemand, notWaiting } from "../acquire/acquirePermits.ts"
import { type AcquireRequest, grantedTooLate, leaseMillisOf, possess } from "../acquire/ask.ts"
import type { Family, Prepare } from "../acquire/sections.ts"
import type { LockClient } from "../client/LockClient.ts"
import type { Service } from "../client/RedisLock.ts"
import type { Restore } from "../hold/guard.ts"
import { Hold } from "../hold/Hold.ts"
import { Lease, identityOf } from "../hold/Lease.ts"
import { rollback, rollbackUnknown } from "../hold/rollback.ts"
import {
  idsOf,
  ownerRefOf,
  permit,
  type PermitProtocol,
  type PermitReply,
  permitSemaphoreTitle
} from "../kinds/kinds.ts"
import {
  checkPermits,
  type Invalid,
  isInvalid,
  maxPermits,
  parsePeriod,
  parseWait,
  refuseMinHold
} from "../options/acquireOptions.ts"
import { ownerText, printsAs, shown } from "../report/shown.ts"
import { labelled } from "../report/spans.ts"
import { describeWrongType, isForbidden, mayHaveRun, runOrDescribe } from "../store/failures.ts"
import { type Asking, counted } from "../store/operations/permitPlaces.ts"
import * as permitSemaphore from "../store/operations/permitSemaphore.ts"
import * as operations from "../store/operations/permitSemaphore.ts"
import { acknowledgedBy } from "../store/operations/StoreOperation.ts"
import { checkedTimes } from "./LockImpl.ts"
import { isMade, resolve, Synchronizer, use } from "./Synchronizer.ts"

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
  const leaseMillis = leaseMillisOf(request)
  const ownerRef = ownerRefOf(request, newIds(permits))
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
        const supply = counted(available + (held ?? 0))
        const denied: PermitReply<PermitHold> = { granted: undefined, available, remaining, exists, supply }
        return exists && held !== undefined
          ? Effect.as(compareTotal(request, available + held), denied)
          : Effect.succeed(denied)
      }
      const now = client.now()
      const lease = Lease.granted(request, { owner: ownerRef.owner, token: 0, sentAt, leaseMillis }, now)
      return lease !== undefined
        ? Effect.succeed({
            granted: possess(request, lease.begin(new PermitHold(lease, request)), startedAt),
            available,
            remaining,
            exists: true,
            supply: undefined
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
        ? Effect.andThen(rollbackUnknown(ownerRef, leaseMillis, { isForbidden: isForbidden(cause) }), failed)
        : failed
    }
  })
}

printsAs(PermitHold.prototype, ({ name, owner }) => ({ _id: "effect-redis-lock/Permit", name, ids: ownerText(owner) }))

/** The most permits that one command can acquire. */
export const mostAtOnce = 10_000

export const leasedPermits: Family<PermitHold> = {
  acquireSpan: "PermitSemaphore.acquire",
  holdSpan: "PermitSemaphore.hold",
  spanAttributes: ({ ids, lease: { client }, owner }) => ({
    "lock.owner": ownerText(owner),
    "lock.permits": ids.length,
    ...labelled(client)
  }),
  warn: ({ name, owner }, problems) =>
    Effect.annotateLogs(
      Effect.logWarning("The scope of permits has closed, but giving them back went wrong.", problems),
      { semaphore: name, ids: ownerText(owner) }
    )
}

/** A request for permits of a semaphore, or of the semaphore of a name. */
export const preparePermits =
  (
    semaphore: PublicPermitSemaphore<unknown> | string,
    permits: number,
    options: AcquireOptions | undefined
  ): Prepare<PermitHold> =>
  (fiber) => {
    const impl = permitSemaphoreOf(semaphore)
    const at = resolve(impl, fiber)
    if (isInvalid(at)) return at
    const invalid = checkPermits("permits", permits, 1) ?? checkMost(permits)
    if (invalid !== undefined) return invalid
    const times = checkedTimes(at.client, options, undefined)
    if (isInvalid(times)) return times
    const kept = refuseMinHold(times, "a permit")
    if (kept !== undefined) return kept
    const { kind, name } = impl
    const request: PermitAcquireRequest = { ...at, kind, name, identity: identityOf(fiber, undefined), ...times }
    return {
      name,
      label: kind.name,
      acquire: (restore) => acquire(request, permits, restore),
      tryAcquire: (restore) =>
        Effect.map(
          ask({ ...request, waitMillis: 0 }, permits, restore, at.client.now(), notWaiting(at.client)),
          ({ granted }) => Option.fromUndefinedOr(granted)
        )
    }
  }

const checkMost = (permits: number): InvalidLockOptions | undefined =>
  permits > mostAtOnce
    ? new InvalidLockOptions({ option: "permits", problem: `it is more than ${mostAtOnce} at once` })
    : undefined

type SemaphoreOrName = PublicPermitSemaphore<unknown> | string

/** Sets the total number of permits; returns `false` and changes nothing if the semaphore exists and must not change. */
export const setPermits = (
  semaphore: SemaphoreOrName,
  permits: number,
  ifExists: boolean
): Effect.Effect<boolean, LockStoreError | Invalid> => {
  const impl = permitSemaphoreOf(semaphore)
  const invalid = checkPermits("permits", permits, 0)
  if (invalid !== undefined) return Effect.fail(impl.invalid ?? invalid)
  return use(impl, (client, key) =>
    runOrDescribe(client, impl.title, operations.set(key, permits, ifExists, client.store))
  )
}

/** Applies `f` to the numbers of free and of held permits. */
export const countPermits = (
  semaphore: SemaphoreOrName,
  f: (available: number, held: number) => number
): Effect.Effect<number, LockStoreError | Invalid> => {
  const impl = permitSemaphoreOf(semaphore)
  return use(impl, (client, key) =>
    Effect.map(runOrDescribe(client, impl.title, operations.count(key, client.store)), ({ available, held }) =>
      f(available ?? (impl.permits === undefined ? 0 : impl.permits - held), held)
    )
  )
}

const problemOfIds = (ids: ReadonlyArray<unknown>): string | undefined => {
  if (!Array.isArray(ids)) return `${shown(ids)} is not an array of ids`
  if (ids.length > mostAtOnce) return `there are more than ${mostAtOnce}`
  const bad = ids.findIndex((id) => typeof id !== "string" || !/^[0-9a-f]{32}$/i.test(id))
  return bad === -1 ? undefined : `${shown(ids[bad])} is not an id of 32 hexadecimal digits`
}

/** Runs `f` with ids from the caller, in the form in which Redis has them. */
export const withIds = <A, E>(
  semaphore: SemaphoreOrName,
  ids: ReadonlyArray<string>,
  f: (
    client: LockClient,
    key: string,
    ids: ReadonlyArray<string>,
    impl: PermitSemaphoreImpl<unknown>
  ) => Effect.Effect<A, E>
): Effect.Effect<A, E | Invalid> => {
  const impl = permitSemaphoreOf(semaphore)
  const problem = problemOfIds(ids)
  if (problem !== undefined) {
    return Effect.fail(impl.invalid ?? new InvalidLockOptions({ option: "ids", problem }))
  }
  return use(impl, (client, key) => f(client, key, [...new Set(ids.map((id) => id.toLowerCase()))], impl))
}

/** Gives back all permits with these ids, or none if one is not held. */
export const tryRelease = (
  semaphore: SemaphoreOrName,
  ids: ReadonlyArray<string>
): Effect.Effect<boolean, LockStoreError | Invalid> =>
  withIds(semaphore, ids, (client, key, ids, impl) =>
    ids.length === 0
      ? Effect.succeed(true)
      : Effect.map(
          runOrDescribe(client, impl.title, operations.tryRelease(key, ids, client.store)),
          (released) => released === ids.length
        )
  )

export const release = (
  semaphore: SemaphoreOrName,
  id: string
): Effect.Effect<void, LockLost | LockStoreError | Invalid> =>
  Effect.flatMap(tryRelease(semaphore, [id]), (released) =>
    released
      ? Effect.void
      : Effect.fail(
          new LockLost({
            lock: permitSemaphoreOf(semaphore).name,
            owner: id,
            reason: "NotOwner",
            late: Duration.zero
          })
        )
  )

export const addPermits = (
  semaphore: SemaphoreOrName,
  permits: number
): Effect.Effect<void, LockStoreError | Invalid> => {
  const impl = permitSemaphoreOf(semaphore)
  const invalid = checkPermits("permits", permits, -maxPermits)
  if (invalid !== undefined) return Effect.fail(impl.invalid ?? invalid)
  return use(impl, (client, key) =>
    Effect.asVoid(runOrDescribe(client, impl.title, operations.add(key, impl.permits, permits, client.store)))
  )
}

export const updateLeaseTime = (
  semaphore: SemaphoreOrName,
  id: string,
  leaseTime: Duration.Input
): Effect.Effect<boolean, LockStoreError | Invalid> => {
  const isEndless = parseWait("leaseTime", leaseTime) === Number.POSITIVE_INFINITY
  const lease = isEndless ? -1 : parsePeriod("leaseTime", leaseTime)
  if (typeof lease !== "number") return Effect.fail(lease)
  return withIds(semaphore, [id], (client, key, ids, impl) =>
    runOrDescribe(client, impl.title, operations.updateLease(key, ids[0]!, lease))
  )
}

export const leaseTime = (
  semaphore: SemaphoreOrName,
  id: string
): Effect.Effect<Option.Option<Duration.Duration>, LockStoreError | Invalid> =>
  withIds(semaphore, [id], (client, key, ids, impl) =>
    Effect.map(runOrDescribe(client, impl.title, operations.lease(key, ids[0]!)), (left) =>
      left === -2 ? Option.none() : Option.some(left === -1 ? Duration.infinity : Duration.millis(left))
    )
  )
