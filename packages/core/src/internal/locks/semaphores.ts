/**
 * Both kinds of semaphore: values, of which permits are acquired.
 */
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import type { AcquireOptions } from "../../AcquireOptions.ts"
import { markerMillis, type PermitHold, PermitRequest } from "../acquire/acquirePermits.ts"
import type { Family, Prepare, Prepared } from "../acquire/sections.ts"
import type { InternalHolding } from "../hold/Hold.ts"
import { Identity } from "../hold/Lease.ts"
import { anonymousPermit, permit, type PermitProtocol } from "../kinds/kinds.ts"
import { checkPermits, invalidIf, isInvalid, refuseMinHold, timesOf } from "../options/acquireOptions.ts"
import { ownerText } from "../report/shown.ts"
import { labelled } from "../report/spans.ts"
import { MultiHold } from "./MultiHold.ts"
import { type Requires, requires, Synchronizer } from "./Synchronizer.ts"

type AnySemaphore = Synchronizer<PermitProtocol>

/** How permits are held, of a semaphore with this title. */
const permitsOf = (title: string): Family<InternalHolding> => ({
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

export class SemaphoreImpl<R> extends Synchronizer<PermitProtocol> {
  readonly [SemaphoreTypeId]: Requires<R> = requires
}

export const semaphoreOf = <R>(semaphore: PublicSemaphore<R> | string): SemaphoreImpl<R> =>
  Predicate.hasProperty(semaphore, SemaphoreTypeId)
    ? (semaphore as SemaphoreImpl<R>)
    : new SemaphoreImpl<R>(semaphore as string, anonymousPermit(undefined))

export const anonymousPermits = permitsOf("Semaphore")

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
    const at = impl.resolve(fiber)
    if (isInvalid(at)) return at
    const times = checkPermits(permits, 0) ?? timesOf({ waitTime: options?.waitTime }, undefined)
    if (isInvalid(times)) return times
    if (permits === 0) return noPermits(impl)
    const leaseMillis = markerMillis(at.client.store, isHeld)
    return new PermitRequest(impl, at, new Identity(fiber, undefined), { ...times, leaseMillis }, { permits, isHeld })
  }

/** Zero permits are always granted, without a command. */
const noPermits = ({ kind, name }: AnySemaphore): Prepared<InternalHolding> => {
  const held = new MultiHold(name, [])
  return { name, label: kind.name, acquire: () => Effect.succeed(held), tryAcquire: () => Effect.succeed(held) }
}

export const PermitSemaphoreTypeId = "~effect-redis-lock/PermitSemaphore"

export type PublicPermitSemaphore<R> = Pick<PermitSemaphoreImpl<R>, typeof PermitSemaphoreTypeId | "name">

export class PermitSemaphoreImpl<R> extends Synchronizer<PermitProtocol> {
  readonly [PermitSemaphoreTypeId]: Requires<R> = requires
}

export const permitSemaphoreOf = <R>(semaphore: PublicPermitSemaphore<R> | string): PermitSemaphoreImpl<R> =>
  Predicate.hasProperty(semaphore, PermitSemaphoreTypeId)
    ? (semaphore as PermitSemaphoreImpl<R>)
    : new PermitSemaphoreImpl<R>(semaphore as string, permit(undefined))

/** The most permits that one command acquires or gives back. */
export const mostAtOnce = 10_000

export const leasedPermits = permitsOf("PermitSemaphore")

/** A request for permits of a semaphore, or of the semaphore of a name. */
export const preparePermits =
  (
    semaphore: PublicPermitSemaphore<unknown> | string,
    permits: number,
    options: AcquireOptions | undefined
  ): Prepare<PermitHold> =>
  (fiber) => {
    const impl = permitSemaphoreOf(semaphore)
    const at = impl.resolve(fiber)
    if (isInvalid(at)) return at
    const invalid =
      checkPermits(permits, 1) ??
      invalidIf("permits", permits > mostAtOnce ? `it is more than ${mostAtOnce} at once` : undefined)
    const times = invalid ?? timesOf(options, undefined, at.client.store.acknowledges !== undefined)
    if (isInvalid(times)) return times
    const identity = new Identity(fiber, undefined)
    return refuseMinHold(times, "a permit") ?? new PermitRequest(impl, at, identity, times, { permits, isHeld: true })
  }
