/**
 * Both kinds of semaphore: values, of which permits are acquired.
 */
import * as Effect from "effect/Effect"
import { identity } from "effect/Function"
import * as Predicate from "effect/Predicate"
import type { AcquireOptions } from "../../AcquireOptions.ts"
import { InvalidLockOptions, type LockStoreError } from "../../LockError.ts"
import { markerMillis, type PermitHold, PermitRequest } from "../acquire/acquirePermits.ts"
import type { Family, Prepare, Prepared } from "../acquire/sections.ts"
import type { LockClient, Service } from "../client/LockClient.ts"
import type { InternalHolding } from "../hold/Hold.ts"
import { Identity } from "../hold/Lease.ts"
import { anonymousPermit, permit, type PermitProtocol } from "../kinds/kinds.ts"
import { checkPermits, type Invalid, isInvalid, refuseMinHold, timesOf } from "../options/acquireOptions.ts"
import { ownerText } from "../report/shown.ts"
import { labelled } from "../report/spans.ts"
import * as operations from "../store/operations/semaphore.ts"
import type { StoreCommand } from "../store/operations/StoreOperation.ts"
import { MultiHold } from "./MultiHold.ts"
import { resolve, Synchronizer } from "./Synchronizer.ts"

abstract class AnySemaphore extends Synchronizer {
  readonly kind: PermitProtocol

  constructor(name: string, kind: PermitProtocol, service: Service | undefined, invalid?: Invalid) {
    const { initial } = kind
    super(name, service, invalid ?? (initial === undefined ? undefined : checkPermits(initial, 1)))
    this.kind = kind
  }

  get title(): string {
    return this.kind.title
  }

  /** {@link run} for a command that carries a number of permits, at least this many. */
  runWith<A>(
    permits: number,
    least: number,
    command: (key: string, store: LockClient["store"]) => StoreCommand<A>
  ): Effect.Effect<A, LockStoreError | Invalid> {
    const invalid = checkPermits(permits, least)
    return invalid === undefined ? this.run(command) : Effect.fail(this.invalid ?? invalid)
  }
}

/** How permits are held, of a semaphore with this title. */
const permitsOf = <H extends InternalHolding>(title: string): Family<H> => ({
  acquireSpan: `${title}.acquire`,
  holdSpan: `${title}.hold`,
  spanAttributes: ({ holds: [hold], owner }) =>
    hold === undefined
      ? { "lock.permits": 0 }
      : {
          "lock.owner": ownerText(owner),
          "lock.permits": (hold as PermitHold).permits,
          ...labelled(hold.lease.client)
        },
  warn: ({ name, owner }, problems) =>
    Effect.annotateLogs(
      Effect.logWarning("The scope of permits has closed, but giving them back went wrong.", problems),
      { semaphore: name, owner: ownerText(owner) }
    )
})

export const SemaphoreTypeId = "~effect-redis-lock/Semaphore"

export type PublicSemaphore<R> = Pick<SemaphoreImpl<R>, typeof SemaphoreTypeId | "name">

export class SemaphoreImpl<R> extends AnySemaphore {
  declare readonly [SemaphoreTypeId]: { readonly _R: (_: never) => R }

  /** With `permits` it is created where it is missing. */
  constructor(name: string, permits: number | undefined, service: Service | undefined, invalid?: Invalid) {
    super(name, anonymousPermit(permits), service, invalid)
  }

  /** Adds permits; returns `false` with `onlyIfExists` if there is no semaphore. */
  add(permits: number, least: number, onlyIfExists = false): Effect.Effect<boolean, LockStoreError | Invalid> {
    const { initial } = this.kind
    return this.runWith(permits, least, (key, store) => operations.add(key, initial, permits, onlyIfExists, store))
  }
}

Object.defineProperty(SemaphoreImpl.prototype, SemaphoreTypeId, { value: { _R: identity } })

export const semaphoreOf = <R>(semaphore: PublicSemaphore<R> | string): SemaphoreImpl<R> =>
  Predicate.hasProperty(semaphore, SemaphoreTypeId)
    ? (semaphore as SemaphoreImpl<R>)
    : new SemaphoreImpl<R>(semaphore as string, undefined, undefined)

export const anonymousPermits = permitsOf<InternalHolding>("Semaphore")

/** A request for permits of a semaphore, given as a value or by its name: held by this process, or given back by anybody. */
export const prepareAnonymous =
  (
    semaphore: PublicSemaphore<unknown> | string,
    permits: number,
    options: Pick<AcquireOptions, "waitTime"> | undefined,
    isHeld: boolean
  ): Prepare<InternalHolding> =>
  (fiber) => {
    const impl = semaphoreOf(semaphore)
    const at = resolve(impl, fiber)
    if (isInvalid(at)) return at
    const invalid = checkPermits(permits, 0)
    if (invalid !== undefined) return invalid
    const times = timesOf({ waitTime: options?.waitTime }, undefined)
    if (isInvalid(times)) return times
    const { kind, name } = impl
    if (permits === 0) return noPermits(name, kind.name)
    const leaseMillis = markerMillis(at.client.store, isHeld)
    return new PermitRequest(impl, at, new Identity(fiber, undefined), { ...times, leaseMillis }, { permits, isHeld })
  }

/** Zero permits are always granted, without a command. */
const noPermits = (name: string, label: string): Prepared<InternalHolding> => {
  const held = new MultiHold(name, [])
  return { name, label, acquire: () => Effect.succeed(held), tryAcquire: () => Effect.succeed(held) }
}

export const PermitSemaphoreTypeId = "~effect-redis-lock/PermitSemaphore"

export type PublicPermitSemaphore<R> = Pick<PermitSemaphoreImpl<R>, typeof PermitSemaphoreTypeId | "name">

export class PermitSemaphoreImpl<R> extends AnySemaphore {
  declare readonly [PermitSemaphoreTypeId]: { readonly _R: (_: never) => R }

  /** With `permits` it is created where it is missing. */
  constructor(name: string, permits: number | undefined, service: Service | undefined, invalid?: Invalid) {
    super(name, permit(permits), service, invalid)
  }
}

Object.defineProperty(PermitSemaphoreImpl.prototype, PermitSemaphoreTypeId, { value: { _R: identity } })

export const permitSemaphoreOf = <R>(semaphore: PublicPermitSemaphore<R> | string): PermitSemaphoreImpl<R> =>
  Predicate.hasProperty(semaphore, PermitSemaphoreTypeId)
    ? (semaphore as PermitSemaphoreImpl<R>)
    : new PermitSemaphoreImpl<R>(semaphore as string, undefined, undefined)

/** The most permits that one command acquires or gives back. */
export const mostAtOnce = 10_000

export const leasedPermits = permitsOf<PermitHold>("PermitSemaphore")

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
    const invalid = checkPermits(permits, 1) ?? checkMost(permits)
    if (invalid !== undefined) return invalid
    const times = timesOf(options, undefined, at.client.store.acknowledges !== undefined)
    if (isInvalid(times)) return times
    const identity = new Identity(fiber, undefined)
    return refuseMinHold(times, "a permit") ?? new PermitRequest(impl, at, identity, times, { permits, isHeld: true })
  }

const checkMost = (permits: number): InvalidLockOptions | undefined =>
  permits > mostAtOnce
    ? new InvalidLockOptions({ option: "permits", problem: `it is more than ${mostAtOnce} at once` })
    : undefined
