import { identity } from "effect/Function"
import * as Predicate from "effect/Predicate"
import type { AcquireOptions } from "../../AcquireOptions.ts"
import { InvalidLockOptions } from "../../LockError.ts"
import type { PermitHold } from "../acquire/acquirePermits.ts"
import type { Prepare } from "../acquire/sections.ts"
import type { Service } from "../client/RedisLock.ts"
import { permit } from "../kinds/kinds.ts"
import { checkPermits, type Invalid, isInvalid, refuseMinHold } from "../options/acquireOptions.ts"
import { AnySemaphore, permitsOf, PreparedPermits } from "./AnySemaphore.ts"
import { checkedTimes } from "./LockImpl.ts"
import { resolve } from "./Synchronizer.ts"

export const TypeId = "~effect-redis-lock/PermitSemaphore"

export type PublicPermitSemaphore<R> = Pick<PermitSemaphoreImpl<R>, typeof TypeId | "name">

export class PermitSemaphoreImpl<R> extends AnySemaphore {
  declare readonly [TypeId]: { readonly _R: (_: never) => R }

  /** With `permits` it is created where it is missing. */
  constructor(name: string, permits: number | undefined, service: Service | undefined, invalid?: Invalid) {
    super(name, permit(permits), service, invalid)
  }
}

Object.defineProperty(PermitSemaphoreImpl.prototype, TypeId, { value: { _R: identity } })

export const permitSemaphoreOf = <R>(semaphore: PublicPermitSemaphore<R> | string): PermitSemaphoreImpl<R> =>
  Predicate.hasProperty(semaphore, TypeId)
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
    const invalid = checkPermits("permits", permits, 1) ?? checkMost(permits)
    if (invalid !== undefined) return invalid
    const times = checkedTimes(at.client, options, undefined)
    if (isInvalid(times)) return times
    return refuseMinHold(times, "a permit") ?? new PreparedPermits(impl, at, fiber, times, { permits, isHeld: true })
  }

const checkMost = (permits: number): InvalidLockOptions | undefined =>
  permits > mostAtOnce
    ? new InvalidLockOptions({ option: "permits", problem: `it is more than ${mostAtOnce} at once` })
    : undefined
