/**
 * How the functions of `Semaphore` use a semaphore: permits for a section or a scope, and commands about it.
 */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { Fiber } from "effect/Fiber"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import type { AcquireError, LockStoreError, LockTimeout } from "../../LockError.ts"
import type { Semaphore } from "../../Semaphore.ts"
import { acquire as acquireDemand } from "../acquire/acquirePermits.ts"
import type { LockClient } from "../client/LockClient.ts"
import { AnonymousPermits, semaphoreKind } from "../hold/AnonymousPermits.ts"
import { isClosed, type Restore } from "../hold/guard.ts"
import { parseWait } from "../options/durations.ts"
import { checkPermits } from "../options/permitCount.ts"
import { traced } from "../report/telemetry.ts"
import { permitIds, semaphoreChannel } from "../store/keys.ts"
import { type SemaphoreImpl, semaphoreOf } from "./SemaphoreImpl.ts"
import { type Invalid, use } from "./Synchronizer.ts"
import { runOrDescribe } from "../store/wrongType.ts"

type SemaphoreOrName = Semaphore<unknown> | string

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

interface PermitTerms {
  readonly permits: number
  readonly waitMillis: number
  readonly markerMillis: number
}

/** Acquires permits under a marker that lives for `markerMillis`. */
const grant = (
  { name, permits: initial }: SemaphoreImpl<unknown>,
  client: LockClient,
  key: string,
  { markerMillis, permits, waitMillis }: PermitTerms,
  restore: Restore
): Effect.Effect<AnonymousPermits, LockTimeout | LockStoreError> =>
  acquireDemand(
    {
      client,
      kind: semaphoreKind,
      name,
      key,
      channel: semaphoreChannel(key),
      permits,
      waitMillis,
      ask: (restore, startedAt) =>
        new AnonymousPermits(client, name, key, permits, markerMillis).ask(restore, startedAt, initial ?? "")
    },
    restore
  )

/** Acquires permits and goes on with `f`. Zero permits are acquired without asking Redis. */
export const acquireWith = <A, E, R>(
  semaphore: SemaphoreOrName,
  permits: number,
  options: { readonly waitTime?: Duration.Input | undefined } | undefined,
  markerMillis: number,
  f: (granted: AnonymousPermits | undefined, restore: Restore) => Effect.Effect<A, E, R>
): Effect.Effect<A, E | AcquireError, R> => {
  const waitMillis =
    options?.waitTime === undefined ? Number.POSITIVE_INFINITY : parseWait("waitTime", options.waitTime)
  if (typeof waitMillis !== "number") return Effect.fail(waitMillis)
  return withSemaphore(semaphore, permits, 0, (impl, client, key, fiber) =>
    Effect.uninterruptibleMask((restore): Effect.Effect<A, E | LockTimeout | LockStoreError, R> =>
      permits === 0
        ? f(undefined, restore)
        : Effect.flatMap(
            traced(
              fiber,
              "Semaphore.acquire",
              { name: impl.name, label: semaphoreKind.name },
              grant(impl, client, key, { permits, waitMillis, markerMillis }, restore)
            ),
            (granted) => f(granted, restore)
          )
    )
  )
}

/** Asks once, and goes on with `f` if the permits were free. */
export const tryWith = <A, E, R>(
  semaphore: SemaphoreOrName,
  permits: number,
  markerMillis: number,
  f: (granted: AnonymousPermits | undefined, restore: Restore) => Effect.Effect<A, E, R>
): Effect.Effect<Option.Option<A>, E | LockStoreError | Invalid, R> =>
  withSemaphore(semaphore, permits, 0, (impl, client, key) =>
    Effect.uninterruptibleMask((restore): Effect.Effect<Option.Option<A>, E | LockStoreError, R> => {
      if (permits === 0) return Effect.asSome(f(undefined, restore))
      const asked = new AnonymousPermits(client, impl.name, key, permits, markerMillis)
      return Effect.flatMap(asked.ask(restore, client.now(), impl.permits ?? ""), ({ granted }) =>
        granted === undefined ? Effect.succeedNone : Effect.asSome(f(granted, restore))
      )
    })
  )

/** Keeps permits until the scope closes. */
export const keep = (granted: AnonymousPermits | undefined): Effect.Effect<void, never, Scope.Scope> =>
  granted === undefined
    ? Effect.void
    : Effect.withFiber<void, never, Scope.Scope>((fiber) =>
        Scope.addFinalizer(
          Context.getUnsafe(fiber.context as Context.Context<Scope.Scope>, Scope.Scope),
          Effect.catchCause(granted.release, (problems) =>
            isClosed(problems)
              ? Effect.void
              : Effect.annotateLogs(Effect.logWarning("Giving permits back went wrong.", problems), {
                  semaphore: granted.name,
                  permits: granted.permits
                })
          )
        )
      )

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
