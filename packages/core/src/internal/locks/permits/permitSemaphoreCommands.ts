/**
 * The commands of a `PermitSemaphore` that concern its total, and permits by their ids.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { InvalidLockOptions, LockLost, type LockStoreError } from "../../../LockError.ts"
import type { LockClient } from "../../client/LockClient.ts"
import { parsePeriod, parseWait } from "../../options/durations.ts"
import { checkPermits, maxPermits } from "../../options/permitCount.ts"
import { shown } from "../../report/shown.ts"
import * as operations from "../../store/operations/counters/permitSemaphore.ts"
import { mostAtOnce } from "./leasedPermits.ts"
import { type PermitSemaphoreImpl, permitSemaphoreOf, type PublicPermitSemaphore } from "./PermitSemaphoreImpl.ts"
import type { Invalid } from "../../options/invalid.ts"
import { use } from "../Synchronizer.ts"
import { runOrDescribe } from "../../store/wrongType.ts"

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
