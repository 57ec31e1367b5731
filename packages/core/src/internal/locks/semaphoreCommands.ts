/**
 * The commands about a `Semaphore`: how many permits there are, and permits that somebody else holds.
 */
import * as Effect from "effect/Effect"
import type { Fiber } from "effect/Fiber"
import type { LockStoreError } from "../../LockError.ts"
import type { LockClient } from "../client/LockClient.ts"
import type { Invalid } from "../options/invalid.ts"
import { checkPermits } from "../options/permitCount.ts"
import { permitIds, semaphoreChannel } from "../store/keys.ts"
import { type PublicSemaphore, type SemaphoreImpl, semaphoreOf } from "./SemaphoreImpl.ts"
import { use } from "./Synchronizer.ts"
import { runOrDescribe } from "../store/wrongType.ts"

type SemaphoreOrName = PublicSemaphore<unknown> | string

/** Runs `f` with a semaphore and a number of permits, once both have been checked. */
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

/** Adds permits; `false` where there was no semaphore, and `onlyIfExists`. */
export const add = (
  impl: SemaphoreImpl<unknown>,
  client: LockClient,
  key: string,
  permits: number,
  onlyIfExists: boolean
): Effect.Effect<boolean, LockStoreError> =>
  Effect.map(
    runOrDescribe(client, impl.title, {
      operation: "semaphore/add",
      keys: [key, permitIds(key), semaphoreChannel(key)],
      args: [onlyIfExists ? "" : (impl.permits ?? ""), permits, onlyIfExists ? 1 : 0, client.store.publish]
    }),
    (reply) => reply === 1
  )

/** Takes all permits that are free. */
export const drain = (semaphore: SemaphoreOrName): Effect.Effect<number, LockStoreError | Invalid> => {
  const impl = semaphoreOf(semaphore)
  return use(impl, (client, key) =>
    Effect.map(
      runOrDescribe(client, impl.title, {
        operation: "semaphore/drain",
        keys: [key, permitIds(key)],
        args: [impl.permits ?? ""]
      }),
      (reply) => reply as number
    )
  )
}

/** The permits that are free. */
export const countFree = (semaphore: SemaphoreOrName): Effect.Effect<number, LockStoreError | Invalid> => {
  const impl = semaphoreOf(semaphore)
  return use(impl, (client, key) =>
    Effect.map(
      runOrDescribe(client, impl.title, { operation: "semaphore/available", keys: [key], args: [] }),
      (reply) => (reply as number | null) ?? impl.permits ?? 0
    )
  )
}
