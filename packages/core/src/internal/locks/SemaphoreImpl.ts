import * as Effect from "effect/Effect"
import type { Fiber } from "effect/Fiber"
import { identity } from "effect/Function"
import * as Option from "effect/Option"
import type { AcquireOptions } from "../../AcquireOptions.ts"
import type { LockStoreError } from "../../LockError.ts"
import { acquire, notWaiting } from "../acquire/acquirePermits.ts"
import type { Family, Held, Prepare, Prepared } from "../acquire/sections.ts"
import type { LockClient } from "../client/LockClient.ts"
import type { Service } from "../client/RedisLock.ts"
import { AnonymousPermits, type ReturnedBy, semaphoreKind, semaphoreTitle } from "../hold/AnonymousPermits.ts"
import type { Restore } from "../hold/guard.ts"
import { checkPermits, type Invalid, isInvalid, timesOf } from "../options/acquireOptions.ts"
import { labelled } from "../report/spans.ts"
import { runOrDescribe } from "../store/failures.ts"
import type { Asking } from "../store/operations/permitPlaces.ts"
import * as operations from "../store/operations/semaphore.ts"
import { isMade, resolve, Synchronizer, use } from "./Synchronizer.ts"

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

export const anonymousPermits: Family<Held> = {
  acquireSpan: "Semaphore.acquire",
  holdSpan: "Semaphore.hold",
  spanAttributes: (held) =>
    held instanceof AnonymousPermits
      ? { "lock.owner": held.owner, "lock.permits": held.permits, ...labelled(held.client) }
      : { "lock.permits": 0 },
  warn: (held, problems) =>
    Effect.annotateLogs(Effect.logWarning("Giving permits back went wrong.", problems), {
      semaphore: held.name,
      ...(held instanceof AnonymousPermits ? { permits: held.permits } : undefined)
    })
}

/** A request for permits of a semaphore, given as a value or by its name. `returnedBy` says who will give them back. */
export const prepareAnonymous =
  (
    semaphore: PublicSemaphore<unknown> | string,
    permits: number,
    options: Pick<AcquireOptions, "waitTime"> | undefined,
    returnedBy: ReturnedBy
  ): Prepare<Held> =>
  (fiber) => {
    const impl = semaphoreOf(semaphore)
    const at = resolve(impl, fiber)
    if (isInvalid(at)) return at
    const invalid = checkPermits("permits", permits, 0)
    if (invalid !== undefined) return invalid
    const times = timesOf({ waitTime: options?.waitTime }, undefined)
    if (isInvalid(times)) return times
    const { name, permits: initial } = impl
    if (permits === 0) return nothing(name)
    const { client, keys } = at
    const key = keys.lock
    const ask = (restore: Restore, startedAt: number, asking: Asking) =>
      new AnonymousPermits(client, name, key, permits, returnedBy).ask(restore, startedAt, initial, asking)
    return {
      name,
      label: semaphoreKind.name,
      acquire: (restore) =>
        acquire({ client, kind: semaphoreKind, name, key, permits, waitMillis: times.waitMillis, ask }, restore),
      tryAcquire: (restore) =>
        Effect.map(ask(restore, client.now(), notWaiting(client)), ({ granted }) => Option.fromUndefinedOr(granted))
    }
  }

/** Zero permits are always granted, without a command. */
const nothing = (name: string): Prepared<Held> => {
  const held: Held = {
    name,
    clients: [],
    checkLost: () => undefined,
    isOver: () => false,
    onLost: () => () => {},
    releaseNow: () => Effect.void,
    release: Effect.void
  }
  return {
    name,
    label: semaphoreKind.name,
    acquire: () => Effect.succeed(held),
    tryAcquire: () => Effect.succeedSome(held)
  }
}

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
