import { identity } from "effect/Function"
import { semaphoreTitle } from "../../hold/AnonymousPermits.ts"
import type { Service } from "../../client/RedisLock.ts"
import { checkPermits } from "../../options/permitCount.ts"
import type { Invalid } from "../../options/invalid.ts"
import { isMade, Synchronizer } from "../Synchronizer.ts"

export const TypeId = "~effect-redis-lock/Semaphore"

/** The public part of a semaphore. */
export type PublicSemaphore<R> = Pick<SemaphoreImpl<R>, typeof TypeId | "name">

export class SemaphoreImpl<R> extends Synchronizer {
  declare readonly [TypeId]: { readonly _R: (_: never) => R }
  readonly title = semaphoreTitle
  /** The number of permits with which a missing semaphore is created. */
  readonly permits: number | undefined

  constructor(name: string, permits: number | undefined, service: Service | undefined, invalid?: Invalid) {
    super(name, service, invalid ?? (permits === undefined ? undefined : checkPermits("permits", permits, 1)))
    this.permits = permits
  }
}

Object.defineProperty(SemaphoreImpl.prototype, TypeId, { value: { _R: identity } })

export const semaphoreOf = <R>(semaphore: PublicSemaphore<R> | string): SemaphoreImpl<R> =>
  isMade(semaphore, TypeId)
    ? (semaphore as SemaphoreImpl<R>)
    : new SemaphoreImpl<R>(semaphore as string, undefined, undefined)
