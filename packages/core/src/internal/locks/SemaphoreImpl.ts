import * as Effect from "effect/Effect"
import { identity } from "effect/Function"
import * as Predicate from "effect/Predicate"
import type { AcquireOptions } from "../../AcquireOptions.ts"
import type { LockStoreError } from "../../LockError.ts"
import { markerMillis } from "../acquire/acquirePermits.ts"
import type { Prepare, Prepared } from "../acquire/sections.ts"
import type { Service } from "../client/RedisLock.ts"
import type { InternalHolding } from "../hold/Hold.ts"
import { anonymousPermit } from "../kinds/kinds.ts"
import { checkPermits, type Invalid, isInvalid, timesOf } from "../options/acquireOptions.ts"
import * as operations from "../store/operations/semaphore.ts"
import { AnySemaphore, permitsOf, PreparedPermits } from "./AnySemaphore.ts"
import { MultiHold } from "./MultiHold.ts"
import { resolve } from "./Synchronizer.ts"

export const TypeId = "~effect-redis-lock/Semaphore"

export type PublicSemaphore<R> = Pick<SemaphoreImpl<R>, typeof TypeId | "name">

export class SemaphoreImpl<R> extends AnySemaphore {
  declare readonly [TypeId]: { readonly _R: (_: never) => R }

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

Object.defineProperty(SemaphoreImpl.prototype, TypeId, { value: { _R: identity } })

export const semaphoreOf = <R>(semaphore: PublicSemaphore<R> | string): SemaphoreImpl<R> =>
  Predicate.hasProperty(semaphore, TypeId)
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
    const invalid = checkPermits("permits", permits, 0)
    if (invalid !== undefined) return invalid
    const times = timesOf({ waitTime: options?.waitTime }, undefined)
    if (isInvalid(times)) return times
    const { kind, name } = impl
    if (permits === 0) return noPermits(name, kind.name)
    const leaseMillis = markerMillis(at.client.store, isHeld)
    return new PreparedPermits(impl, at, fiber, { ...times, leaseMillis }, { permits, isHeld })
  }

/** Zero permits are always granted, without a command. */
const noPermits = (name: string, label: string): Prepared<InternalHolding> => {
  const held = new MultiHold(name, [])
  return { name, label, acquire: () => Effect.succeed(held), tryAcquire: () => Effect.succeed(held) }
}
