/**
 * The commands of a `Semaphore` that concern its number of permits, and permits that somebody else holds.
 */
import * as Effect from "effect/Effect"
import type { Fiber } from "effect/Fiber"
import type { LockStoreError } from "../../../LockError.ts"
import type { LockClient } from "../../client/LockClient.ts"
import type { Invalid } from "../../options/invalid.ts"
import { checkPermits } from "../../options/permitCount.ts"
import * as operations from "../../store/operations/counters/semaphore.ts"
import { type PublicSemaphore, type SemaphoreImpl, semaphoreOf } from "./SemaphoreImpl.ts"
import { use } from "../Synchronizer.ts"
import { runOrDescribe } from "../../store/wrongType.ts"

type SemaphoreOrName = PublicSemaphore<unknown> | string

/** Runs `f` with a semaphore and a number of permits, after checking both. */
export const withSemaphore = <A, E, R>(
  semaphore: SemaphoreOrName,
  permits: number,
  least: number,
  f: (
    impl: SemaphoreImpl<unknown>,
    client: LockClient,
    key: string,
    fiber: Fiber<unknown, unknown>
  ) => Effect.Effect<A, E, R>
): Effect.Effect<A, E | Invalid, R> => {
  const impl = semaphoreOf(semaphore)
  const invalid = checkPermits("permits", permits, least)
  return invalid === undefined
    ? use(impl, (client, key, fiber) => f(impl, client, key, fiber))
    : Effect.fail(impl.invalid ?? invalid)
}

/** Adds permits; returns `false` with `onlyIfExists` if there is no semaphore. */
export const add = (
  impl: SemaphoreImpl<unknown>,
  client: LockClient,
  key: string,
  permits: number,
  onlyIfExists: boolean
): Effect.Effect<boolean, LockStoreError> =>
  runOrDescribe(client, impl.title, operations.add(key, impl.permits, permits, onlyIfExists, client.store))

/** Takes all free permits. */
export const drain = (semaphore: SemaphoreOrName): Effect.Effect<number, LockStoreError | Invalid> => {
  const impl = semaphoreOf(semaphore)
  return use(impl, (client, key) => runOrDescribe(client, impl.title, operations.drain(key, impl.permits)))
}

/** The number of free permits. */
export const countFree = (semaphore: SemaphoreOrName): Effect.Effect<number, LockStoreError | Invalid> => {
  const impl = semaphoreOf(semaphore)
  return use(impl, (client, key) =>
    Effect.map(
      runOrDescribe(client, impl.title, operations.available(key)),
      (available) => available ?? impl.permits ?? 0
    )
  )
}
