/**
 * Semaphores whose permits are anonymous: a counter in Redis, as Redisson's `RSemaphore`.
 *
 * **Gotchas**
 *
 * Nobody knows who has a permit. What a process held when it died is gone until somebody adds it again, and whoever calls
 * {@link release} too often makes more permits than there should be. Prefer `PermitSemaphore`, whose permits come back by
 * themselves, wherever no Java service shares the counter.
 *
 * @since 0.2.0
 */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { Fiber } from "effect/Fiber"
import { dual } from "effect/Function"
import * as Option from "effect/Option"
import type { Pipeable } from "effect/Pipeable"
import * as Predicate from "effect/Predicate"
import * as Scope from "effect/Scope"
import type * as Types from "effect/Types"
import type { Restore } from "./internal/acquire/acquire.ts"
import { acquire as acquireDemand } from "./internal/acquire/acquirePermits.ts"
import { parsePeriod, parseWait } from "./internal/options/durations.ts"
import {
  AnonymousPermits,
  heldMarkerMillis,
  semaphoreKind,
  undoMarkerMillis
} from "./internal/hold/AnonymousPermits.ts"
import { guard, isClosed, nothing } from "./internal/hold/guard.ts"
import { permitIds, semaphoreChannel } from "./internal/store/keys.ts"
import type { LockClient } from "./internal/client/LockClient.ts"
import { checkPermits, maxPermits } from "./internal/options/permitCount.ts"
import { SemaphoreImpl, semaphoreOf, TypeId as internalTypeId } from "./internal/locks/SemaphoreImpl.ts"
import { type Invalid, run, use } from "./internal/locks/Synchronizer.ts"
import { traced } from "./internal/report/telemetry.ts"
import type { AcquireError, LockLost, LockStoreError, LockTimeout } from "./LockError.ts"
import type { RedisLock } from "./RedisLock.ts"

/**
 * Marks the values of this module at run time; see {@link isSemaphore}.
 *
 * @category type IDs
 * @since 0.3.0
 */
export const TypeId: TypeId = internalTypeId

/**
 * The type of {@link TypeId}.
 *
 * @category type IDs
 * @since 0.3.0
 */
export type TypeId = "~effect-redis-lock/Semaphore"

/**
 * A semaphore with anonymous permits. `R` is what using it requires: {@link RedisLock}, or nothing once a service is bound
 * with {@link provide}.
 *
 * @category models
 * @since 0.2.0
 */
export interface Semaphore<out R = RedisLock> extends Pipeable {
  readonly [TypeId]: { readonly _R: Types.Covariant<R> }
  readonly name: string
}

/**
 * Whether a value is a semaphore with anonymous permits of this library.
 *
 * **When to use**
 *
 * To narrow an unknown value, or to tell a semaphore from its name where either is accepted.
 *
 * @category guards
 * @since 0.3.0
 */
export const isSemaphore = (u: unknown): u is Semaphore<unknown> => Predicate.hasProperty(u, TypeId)

/**
 * How to acquire.
 *
 * @category options
 * @since 0.2.0
 */
export interface AcquireOptions {
  /**
   * How long to wait at most for the permits; zero to ask once. Then `LockTimeout`. The wait can be interrupted at any time.
   * While Redis does not answer, it may be exceeded by one command timeout of the driver. Default: without limit.
   *
   * The wait outlives what passes by itself: a restart, a failover, a lost connection and every other `LockStoreError` whose
   * `isTransient` is true. If Redis still cannot be asked when the time is over, the wait fails with that `LockStoreError`.
   */
  readonly waitTime?: Duration.Input | undefined
}

/**
 * A semaphore. With `permits` it begins with so many as soon as somebody uses it and it does not exist; without, it has none
 * until {@link trySetPermits}, {@link addPermits} or {@link release} gives it some, here or in Java. Where a function takes
 * a semaphore, a name does as well, for one without `permits`.
 *
 * The name follows the rules of `Lock.make`; `permits` is a whole number from 1 to 2147483647. What is wrong with them is
 * reported when the semaphore is used, before any command is sent. A semaphore that exists already keeps the number it has, also
 * after a deployment with another one, and nobody can say so, as a counter does not know how many are held: {@link addPermits}
 * changes the number.
 *
 * A name that a `PermitSemaphore` uses is refused with `LockStoreError`, reason `WrongType`, while any of its permits is
 * held.
 *
 * The counter stays in Redis until somebody deletes it: see docs/memory.md.
 *
 * **When not to use**
 *
 * Without Java services that share it: see the gotchas above.
 *
 * @example
 * ```ts
 * import { Effect } from "effect"
 * import { Semaphore } from "effect-redis-lock"
 *
 * const connections = Semaphore.make("partner-api", { permits: 10 })
 *
 * const program = Effect.log("call the partner").pipe(Semaphore.withPermits(connections, 1, { waitTime: "5 seconds" }))
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const make = (name: string, options?: { readonly permits?: number | undefined }): Semaphore =>
  new SemaphoreImpl(name, options?.permits, undefined)

/**
 * Binds a semaphore to one service, so that using it requires nothing.
 *
 * @category combinators
 * @since 0.2.0
 */
export const provide: {
  (service: RedisLock["Service"]): <R>(semaphore: Semaphore<R>) => Semaphore<Exclude<R, RedisLock>>
  <R>(semaphore: Semaphore<R>, service: RedisLock["Service"]): Semaphore<Exclude<R, RedisLock>>
} = dual(2, <R>(semaphore: Semaphore<R>, service: RedisLock["Service"]): Semaphore<Exclude<R, RedisLock>> => {
  const { invalid, name, permits } = semaphoreOf(semaphore)
  return new SemaphoreImpl(name, permits, service as LockClient, invalid)
})

/** Runs something with a semaphore and a number of permits, once both are known to be valid. */
const withSemaphore = <R, A, E, R2>(
  semaphore: Semaphore<R> | string,
  permits: number,
  least: number,
  f: (
    impl: SemaphoreImpl<R>,
    client: LockClient,
    key: string,
    fiber: Fiber<unknown, unknown>
  ) => Effect.Effect<A, E, R2>
): Effect.Effect<A, E | Invalid, R | R2> => {
  const impl = semaphoreOf(semaphore)
  const invalid = checkPermits("permits", permits, least)
  return invalid === undefined
    ? use(impl, (client, key, fiber) => f(impl, client, key, fiber))
    : Effect.fail(impl.invalid ?? invalid)
}

/** Acquires permits under a marker that lives so long. */
const grant = <R>(
  { name, permits: initial }: SemaphoreImpl<R>,
  client: LockClient,
  key: string,
  permits: number,
  waitMillis: number,
  markerMillis: number,
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

/** What is acquired, kept by `f`; without permits there is nothing to be acquired, nor to be told to Redis. */
const acquireWith = <R, A, E, R2>(
  semaphore: Semaphore<R> | string,
  permits: number,
  options: AcquireOptions | undefined,
  markerMillis: number,
  f: (granted: AnonymousPermits | undefined, restore: Restore) => Effect.Effect<A, E, R2>
): Effect.Effect<A, E | AcquireError, R | R2> => {
  const waitMillis =
    options?.waitTime === undefined ? Number.POSITIVE_INFINITY : parseWait("waitTime", options.waitTime)
  if (typeof waitMillis !== "number") return Effect.fail(waitMillis)
  return withSemaphore(semaphore, permits, 0, (impl, client, key, fiber) =>
    Effect.uninterruptibleMask((restore): Effect.Effect<A, E | LockTimeout | LockStoreError, R2> =>
      permits === 0
        ? f(undefined, restore)
        : Effect.flatMap(
            traced(
              fiber,
              "Semaphore.acquire",
              { name: impl.name, label: semaphoreKind.name },
              grant(impl, client, key, permits, waitMillis, markerMillis, restore)
            ),
            (granted) => f(granted, restore)
          )
    )
  )
}

/**
 * Runs an effect with permits, and gives them back, however it ends.
 *
 * Waiters of one process are served first come, first served as far as their demands fit into what is free: one who wants
 * many permits does not keep others from those that are there, and can be passed by them again and again. Zero permits
 * always are there, without a command.
 *
 * What may have been acquired is undone exactly, after a timeout, a lost reply or an interruption, and permits are given
 * back exactly once, although the counter does not know whose they are: a marker beside it does, for a day at most.
 *
 * Fails with `LockTimeout` when `waitTime` ran out, `LockStoreError` when Redis could not be asked or the permits could not
 * be given back within the release timeout (it then goes on in the background), `LockLost` when Redis no longer knows of the
 * grant (it has lost its data) or when the client was closed meanwhile, `InvalidLockName` and `InvalidLockOptions` before any
 * command. A failure of the effect itself wins over problems of giving back. The effect runs in a fiber of its own: fibers that it
 * forks with `Effect.forkChild` end with it.
 *
 * **Gotchas**
 *
 * The permits of a process that dies are gone: see `PermitSemaphore`.
 *
 * @example
 * ```ts
 * import { Effect } from "effect"
 * import { Semaphore } from "effect-redis-lock"
 *
 * const upload = Effect.log("upload")
 *
 * const program = upload.pipe(Semaphore.withPermits(Semaphore.make("uploads", { permits: 4 }), 1))
 * const same = Semaphore.withPermits(upload, Semaphore.make("uploads", { permits: 4 }), 1)
 * ```
 *
 * @category acquiring
 * @since 0.2.0
 */
export const withPermits: {
  <R2 = RedisLock>(
    semaphore: Semaphore<R2> | string,
    permits: number,
    options?: AcquireOptions
  ): <A, E, R>(self: Effect.Effect<A, E, R>) => Effect.Effect<A, E | AcquireError | LockLost, R | R2>
  <A, E, R, R2 = RedisLock>(
    self: Effect.Effect<A, E, R>,
    semaphore: Semaphore<R2> | string,
    permits: number,
    options?: AcquireOptions
  ): Effect.Effect<A, E | AcquireError | LockLost, R | R2>
} = dual(
  (args) => Effect.isEffect(args[0]),
  <A, E, R, R2 = RedisLock>(
    self: Effect.Effect<A, E, R>,
    semaphore: Semaphore<R2> | string,
    permits: number,
    options?: AcquireOptions
  ) =>
    acquireWith(semaphore, permits, options, heldMarkerMillis, (granted, restore) =>
      guard(granted ?? nothing, self, restore)
    )
)

/**
 * Runs an effect with permits if they are free at this moment, without waiting; otherwise as {@link withPermits}. `None`
 * when they are not.
 *
 * @example
 * ```ts
 * import { Effect } from "effect"
 * import { Semaphore } from "effect-redis-lock"
 *
 * const program = Effect.log("warm the cache").pipe(Semaphore.withPermitsIfAvailable("spare-capacity", 1))
 * ```
 *
 * @category acquiring
 * @since 0.2.0
 */
export const withPermitsIfAvailable: {
  <R2 = RedisLock>(
    semaphore: Semaphore<R2> | string,
    permits: number
  ): <A, E, R>(
    self: Effect.Effect<A, E, R>
  ) => Effect.Effect<Option.Option<A>, E | LockStoreError | LockLost | Invalid, R | R2>
  <A, E, R, R2 = RedisLock>(
    self: Effect.Effect<A, E, R>,
    semaphore: Semaphore<R2> | string,
    permits: number
  ): Effect.Effect<Option.Option<A>, E | LockStoreError | LockLost | Invalid, R | R2>
} = dual(
  (args) => Effect.isEffect(args[0]),
  <A, E, R, R2 = RedisLock>(self: Effect.Effect<A, E, R>, semaphore: Semaphore<R2> | string, permits: number) =>
    tryWith(
      semaphore,
      permits,
      heldMarkerMillis,
      (granted, restore): Effect.Effect<A, E | LockLost | LockStoreError, R> => guard(granted ?? nothing, self, restore)
    )
)

/** Asks once; `f` is for what was granted. */
const tryWith = <R, A, E, R2>(
  semaphore: Semaphore<R> | string,
  permits: number,
  markerMillis: number,
  f: (granted: AnonymousPermits | undefined, restore: Restore) => Effect.Effect<A, E, R2>
): Effect.Effect<Option.Option<A>, E | LockStoreError | Invalid, R | R2> =>
  withSemaphore(semaphore, permits, 0, (impl, client, key) =>
    Effect.uninterruptibleMask((restore): Effect.Effect<Option.Option<A>, E | LockStoreError, R2> => {
      if (permits === 0) return Effect.asSome(f(undefined, restore))
      const asked = new AnonymousPermits(client, impl.name, key, permits, markerMillis)
      return Effect.flatMap(asked.ask(restore, client.now(), impl.permits ?? ""), ({ granted }) =>
        granted === undefined ? Effect.succeedNone : Effect.asSome(f(granted, restore))
      )
    })
  )

/**
 * Acquires permits for as long as the scope is open; otherwise as {@link withPermits}.
 *
 * **Gotchas**
 *
 * Where giving back goes wrong when the scope closes, that can only be logged.
 *
 * @example
 * ```ts
 * import { Effect } from "effect"
 * import { Semaphore } from "effect-redis-lock"
 *
 * const program = Effect.scoped(Effect.gen(function*() {
 *   yield* Semaphore.scoped("uploads", 2, { waitTime: "5 seconds" })
 *   yield* Effect.log("two permits until here")
 * }))
 * ```
 *
 * @category acquiring
 * @since 0.2.0
 */
export const scoped = <R = RedisLock>(
  semaphore: Semaphore<R> | string,
  permits: number,
  options?: AcquireOptions
): Effect.Effect<void, AcquireError, R | Scope.Scope> =>
  acquireWith(semaphore, permits, options, heldMarkerMillis, (granted) =>
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
  )

/**
 * Acquires permits that nothing gives back by itself: somebody, anywhere, has to call {@link release}.
 *
 * Fails with `LockTimeout` when `waitTime` ran out, `LockStoreError` when Redis could not be asked (what may have been
 * acquired is undone), `InvalidLockName` and `InvalidLockOptions` before any command.
 *
 * **When not to use**
 *
 * Where {@link withPermits} or {@link scoped} does.
 *
 * @category acquiring
 * @since 0.2.0
 */
export const acquire = <R = RedisLock>(
  semaphore: Semaphore<R> | string,
  permits = 1,
  options?: AcquireOptions
): Effect.Effect<void, AcquireError, R> => acquireWith(semaphore, permits, options, undoMarkerMillis, () => Effect.void)

/**
 * Asks once for permits that nothing gives back by itself, without waiting; otherwise as {@link acquire}. `false` when they
 * are not free.
 *
 * @category acquiring
 * @since 0.2.0
 */
export const tryAcquire = <R = RedisLock>(
  semaphore: Semaphore<R> | string,
  permits = 1
): Effect.Effect<boolean, LockStoreError | Invalid, R> =>
  Effect.map(
    tryWith(semaphore, permits, undoMarkerMillis, () => Effect.void),
    Option.isSome
  )

const add = <R>(
  impl: SemaphoreImpl<R>,
  client: LockClient,
  key: string,
  permits: number,
  onlyIfExists: boolean
): Effect.Effect<boolean, LockStoreError> =>
  Effect.map(
    run(client, impl.title, {
      operation: "semaphore/add",
      keys: [key, permitIds(key), semaphoreChannel(key)],
      args: [onlyIfExists ? "" : (impl.permits ?? ""), permits, onlyIfExists ? 1 : 0, client.store.publish]
    }),
    (reply) => reply === 1
  )

/**
 * Gives back permits that were taken with {@link acquire}, and tells waiters. Creates a semaphore that does not exist, as
 * Redisson does; one that was made with `permits` begins anew with all of them, so there is nothing to be done.
 *
 * Fails with `LockStoreError` when Redis could not be asked, `InvalidLockName` and `InvalidLockOptions` before any command.
 *
 * **Gotchas**
 *
 * Nobody checks that you have them. After a `LockStoreError` whose `isOutcomeUnknown` is true, and after an interruption, the
 * permits may or may not have been given back, and doing it again may give too many. {@link withPermits} and {@link scoped}
 * have no such doubt.
 *
 * @category mutations
 * @since 0.2.0
 */
export const release = <R = RedisLock>(
  semaphore: Semaphore<R> | string,
  permits = 1
): Effect.Effect<void, LockStoreError | Invalid, R> =>
  withSemaphore(semaphore, permits, 0, (impl, client, key) =>
    permits === 0 ? Effect.void : Effect.asVoid(add(impl, client, key, permits, impl.permits !== undefined))
  )

/**
 * As {@link release}, but does nothing where the semaphore does not exist: `false` then.
 *
 * @category mutations
 * @since 0.2.0
 */
export const releaseIfExists = <R = RedisLock>(
  semaphore: Semaphore<R> | string,
  permits = 1
): Effect.Effect<boolean, LockStoreError | Invalid, R> =>
  withSemaphore(semaphore, permits, 1, (impl, client, key) => add(impl, client, key, permits, true))

/**
 * Creates the semaphore with so many permits, from 0; for good, or for `timeToLive`, after which it is gone with all that is
 * held of it. `false`, and nothing changed, where it exists.
 *
 * Fails with `LockStoreError` when Redis could not be asked, `InvalidLockName` and `InvalidLockOptions` before any command.
 *
 * @category mutations
 * @since 0.2.0
 */
export const trySetPermits = <R = RedisLock>(
  semaphore: Semaphore<R> | string,
  permits: number,
  options?: { readonly timeToLive?: Duration.Input | undefined }
): Effect.Effect<boolean, LockStoreError | Invalid, R> => {
  const life = options?.timeToLive === undefined ? 0 : parsePeriod("timeToLive", options.timeToLive)
  if (typeof life !== "number") return Effect.fail(life)
  return withSemaphore(semaphore, permits, 0, (impl, client, key) =>
    Effect.map(
      run(client, impl.title, {
        operation: "semaphore/set",
        keys: [key, permitIds(key), semaphoreChannel(key)],
        args: [permits, life, client.store.publish]
      }),
      (reply) => reply === 1
    )
  )
}

/**
 * Adds permits for good, or takes some away with a negative number: then fewer than none may be free until enough are given
 * back. A time to live of the semaphore stays as it is.
 *
 * Fails with `LockStoreError` when Redis could not be asked, `InvalidLockName` and `InvalidLockOptions` before any command.
 *
 * @category mutations
 * @since 0.2.0
 */
export const addPermits = <R = RedisLock>(
  semaphore: Semaphore<R> | string,
  permits: number
): Effect.Effect<void, LockStoreError | Invalid, R> =>
  withSemaphore(semaphore, permits, -maxPermits, (impl, client, key) =>
    Effect.asVoid(add(impl, client, key, permits, false))
  )

/**
 * Takes all permits that are free, without waiting, and gives their number. A number below zero is raised to zero, as in
 * Java. A time to live of the semaphore stays as it is.
 *
 * Fails with `LockStoreError` when Redis could not be asked, `InvalidLockName` and `InvalidLockOptions` before any command.
 *
 * @category mutations
 * @since 0.2.0
 */
export const drainPermits = <R = RedisLock>(
  semaphore: Semaphore<R> | string
): Effect.Effect<number, LockStoreError | Invalid, R> => {
  const impl = semaphoreOf(semaphore)
  return use(impl, (client, key) =>
    Effect.map(
      run(client, impl.title, {
        operation: "semaphore/drain",
        keys: [key, permitIds(key)],
        args: [impl.permits ?? ""]
      }),
      (reply) => reply as number
    )
  )
}

/**
 * How many permits are free at this moment. By the time you look it may have changed: to act on it, acquire.
 *
 * Fails with `LockStoreError` when Redis could not be asked, `InvalidLockName` and `InvalidLockOptions` before any command.
 *
 * @category getters
 * @since 0.2.0
 */
export const availablePermits = <R = RedisLock>(
  semaphore: Semaphore<R> | string
): Effect.Effect<number, LockStoreError | Invalid, R> => {
  const impl = semaphoreOf(semaphore)
  return use(impl, (client, key) =>
    Effect.map(
      run(client, impl.title, { operation: "semaphore/available", keys: [key], args: [] }),
      (reply) => (reply as number | null) ?? impl.permits ?? 0
    )
  )
}
