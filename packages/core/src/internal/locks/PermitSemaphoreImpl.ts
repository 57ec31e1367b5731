import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { identity } from "effect/Function"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import type { AcquireOptions } from "../../AcquireOptions.ts"
import { InvalidLockOptions, LockLost, type LockStoreError } from "../../LockError.ts"
import type { PermitHold } from "../acquire/acquirePermits.ts"
import type { Prepare } from "../acquire/sections.ts"
import type { Service } from "../client/RedisLock.ts"
import { permit } from "../kinds/kinds.ts"
import {
  checkPermits,
  type Invalid,
  isInvalid,
  maxPermits,
  parsePeriod,
  parseWait,
  refuseMinHold
} from "../options/acquireOptions.ts"
import { shown } from "../report/shown.ts"
import { mayHaveRun, runOrDescribe } from "../store/failures.ts"
import * as operations from "../store/operations/permitSemaphore.ts"
import { AnySemaphore, permitsOf, PreparedPermits } from "./AnySemaphore.ts"
import { checkedTimes } from "./LockImpl.ts"
import { resolve, use } from "./Synchronizer.ts"

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

type SemaphoreOrName = PublicPermitSemaphore<unknown> | string

export const permitSemaphoreOf = <R>(semaphore: PublicPermitSemaphore<R> | string): PermitSemaphoreImpl<R> =>
  Predicate.hasProperty(semaphore, TypeId)
    ? (semaphore as PermitSemaphoreImpl<R>)
    : new PermitSemaphoreImpl<R>(semaphore as string, undefined, undefined)

/** The most permits that one command can acquire. */
export const mostAtOnce = 10_000

export const leasedPermits = permitsOf<PermitHold>("PermitSemaphore")

/** A request for permits of a semaphore, or of the semaphore of a name. */
export const preparePermits =
  (semaphore: SemaphoreOrName, permits: number, options: AcquireOptions | undefined): Prepare<PermitHold> =>
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

/** Sets the total number of permits; returns `false` and changes nothing if the semaphore exists and must not change. */
export const setPermits = (
  semaphore: SemaphoreOrName,
  permits: number,
  ifExists: boolean
): Effect.Effect<boolean, LockStoreError | Invalid> => {
  const impl = permitSemaphoreOf(semaphore)
  return impl.runWith(permits, 0, (key, store) => operations.set(key, permits, ifExists, store))
}

/** Applies `f` to the numbers of free and of held permits. */
export const countPermits = (
  semaphore: SemaphoreOrName,
  f: (available: number, held: number) => number
): Effect.Effect<number, LockStoreError | Invalid> => {
  const impl = permitSemaphoreOf(semaphore)
  const { initial } = impl.kind
  return Effect.map(impl.run(operations.count), ({ available, held }) =>
    f(available ?? (initial === undefined ? 0 : initial - held), held)
  )
}

const problemOfIds = (ids: ReadonlyArray<unknown>): string | undefined => {
  if (!Array.isArray(ids)) return `${shown(ids)} is not an array of ids`
  if (ids.length > mostAtOnce) return `there are more than ${mostAtOnce}`
  const bad = ids.findIndex((id) => typeof id !== "string" || !/^[0-9a-f]{32}$/i.test(id))
  return bad === -1 ? undefined : `${shown(ids[bad])} is not an id of 32 hexadecimal digits`
}

/** Runs `f` with ids from the caller, in the form in which Redis has them. */
const withIds = <A, E>(
  semaphore: SemaphoreOrName,
  ids: ReadonlyArray<string>,
  f: (impl: PermitSemaphoreImpl<unknown>, ids: ReadonlyArray<string>) => Effect.Effect<A, E>
): Effect.Effect<A, E | Invalid> => {
  const impl = permitSemaphoreOf(semaphore)
  const problem = problemOfIds(ids)
  if (problem !== undefined) {
    return Effect.fail(impl.invalid ?? new InvalidLockOptions({ option: "ids", problem }))
  }
  return f(impl, [...new Set(ids.map((id) => id.toLowerCase()))])
}

/** Gives back all permits with these ids, or none if one is not held. */
export const tryRelease = (
  semaphore: SemaphoreOrName,
  ids: ReadonlyArray<string>
): Effect.Effect<boolean, LockStoreError | Invalid> =>
  withIds(semaphore, ids, (impl, ids) =>
    use(impl, (client, key) => {
      if (ids.length === 0) return Effect.succeed(true)
      const command = operations.tryRelease(key, ids, client.store)
      const released = Effect.map(runOrDescribe(client, impl.title, command), (count) => count === ids.length)
      // one that was refused gives nothing back: sent again, it could take what is in use
      return Effect.onExit(released, (exit) =>
        Effect.sync(() => {
          if (Exit.isSuccess(exit) && !exit.value) client.releases?.withdraw(command)
          else if (Exit.isSuccess(exit) || mayHaveRun(exit.cause)) client.releases?.add(command)
        })
      )
    })
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
  return Effect.asVoid(
    impl.runWith(permits, -maxPermits, (key, store) => operations.add(key, impl.kind.initial, permits, store))
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
  return withIds(semaphore, [id], (impl, ids) => impl.run((key) => operations.updateLease(key, ids[0]!, lease)))
}

export const leaseTime = (
  semaphore: SemaphoreOrName,
  id: string
): Effect.Effect<Option.Option<Duration.Duration>, LockStoreError | Invalid> =>
  withIds(semaphore, [id], (impl, ids) =>
    Effect.map(
      impl.run((key) => operations.lease(key, ids[0]!)),
      (left) => (left === -2 ? Option.none() : Option.some(left === -1 ? Duration.infinity : Duration.millis(left)))
    )
  )
