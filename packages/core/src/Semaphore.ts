/**
 * Semaphores whose permits are anonymous: a counter in Redis, like Redisson's `RSemaphore`.
 *
 * A semaphore is a value. Making one costs nothing and sends no command; every function that takes a semaphore also accepts
 * a name.
 *
 * **When to use**
 *
 * To share a counter with Java services that use Redisson's `RSemaphore`.
 *
 * **When not to use**
 *
 * Anywhere else: the permits of a `PermitSemaphore` come back by themselves.
 *
 * **Gotchas**
 *
 * Redis does not record who holds a permit. If a process dies, its permits stay held until somebody adds them back, and
 * every superfluous {@link release} creates a permit that should not exist.
 *
 * @since 0.2.0
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { dual } from "effect/Function"
import * as Option from "effect/Option"
import type { Pipeable } from "effect/Pipeable"
import * as Predicate from "effect/Predicate"
import type * as Scope from "effect/Scope"
import type * as Types from "effect/Types"
import type { AcquireOptions as BaseOptions } from "./AcquireOptions.ts"
import * as Sections from "./internal/acquire/sections.ts"
import { anonymousPermit } from "./internal/kinds/kinds.ts"
import {
  anonymousPermits,
  SemaphoreTypeId as TypeId,
  prepareAnonymous,
  SemaphoreImpl,
  semaphoreOf
} from "./internal/locks/semaphores.ts"
import {
  checkPermits,
  isDataFirstOfPermits,
  isEffectFirst,
  maxPermits,
  parsePeriod
} from "./internal/options/acquireOptions.ts"
import * as operations from "./internal/store/operations/semaphore.ts"
import type { CommandError, LockLost, TimeoutOf } from "./LockError.ts"
import type { RedisLock } from "./RedisLock.ts"

/**
 * A semaphore with anonymous permits. `R` is the services that it requires: {@link RedisLock}, or none once a service is
 * bound with {@link provide}.
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
 * A semaphore, or the name of one.
 *
 * @category type-level
 * @since 0.3.0
 */
export type SemaphoreOrName = Semaphore<unknown> | string

/**
 * The services that a semaphore requires; for a name, {@link RedisLock}.
 *
 * @category type-level
 * @since 0.3.0
 */
export type Services<S> = S extends Semaphore<infer R> ? R : RedisLock

/**
 * Options of acquiring: only the wait, as anonymous permits have no lease.
 *
 * @category options
 * @since 0.2.0
 */
export interface AcquireOptions<
  out WaitTime extends Duration.Input | undefined = Duration.Input | undefined
> extends Pick<BaseOptions<WaitTime>, "waitTime"> {}

/**
 * A semaphore. With `permits`, its first use creates it with that many permits if it does not exist; without, it has none
 * until {@link trySetPermits}, {@link addPermits} or {@link release} gives it some, here or in Java. A name in place of a
 * semaphore stands for one without `permits`.
 *
 * The name follows the rules of `Lock.make`; `permits` is a whole number from 1 to 2147483647. An invalid name or number is
 * reported when the semaphore is used, before any command is sent.
 *
 * **Gotchas**
 *
 * A semaphore that exists keeps its number of permits, even after a deployment with a different one, and without a warning,
 * as a counter does not know how many are held: {@link addPermits} changes the number.
 *
 * A name that a `PermitSemaphore` uses is refused with `LockStoreError`, reason `WrongType`, while any of its permits is
 * held.
 *
 * The counter stays in Redis until somebody deletes it: see docs/memory.md.
 *
 * **When not to use**
 *
 * Where no Java service shares the counter: the permits of a `PermitSemaphore` come back when their process dies.
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
  new SemaphoreImpl(name, anonymousPermit(options?.permits))

/**
 * Binds a semaphore to one service, so that it requires no other.
 *
 * @category combinators
 * @since 0.2.0
 */
export const provide: {
  (service: RedisLock["Service"]): <R>(semaphore: Semaphore<R>) => Semaphore<Exclude<R, RedisLock>>
  <R>(semaphore: Semaphore<R>, service: RedisLock["Service"]): Semaphore<Exclude<R, RedisLock>>
} = dual(2, <R>(semaphore: Semaphore<R>, service: RedisLock["Service"]): Semaphore<Exclude<R, RedisLock>> => {
  const { invalid, kind, name } = semaphoreOf(semaphore)
  return new SemaphoreImpl(name, kind, service, invalid)
})

/**
 * Runs an effect with permits, and gives them back however it ends.
 *
 * **Details**
 *
 * Waiters of one process are served first come, first served, as far as enough permits are free. A waiter for many permits
 * is overtaken by others that want fewer, but from time to time permits are kept for it: docs/contention.md has the bounds.
 * Zero permits are always granted, without a command.
 *
 * After a timeout, a lost reply or an interruption, a possible grant is rolled back exactly, and permits are given back
 * exactly once. The counter does not know whose permits they are, but a marker beside it does, for at most a day, and for no
 * longer than the counter itself.
 *
 * The effect runs in a fiber of its own: fibers that it forks with `Effect.forkChild` end with it.
 *
 * Fails with `LockTimeout` when `waitTime` ran out, `LockStoreError` when the request to Redis failed or the permits could
 * not be given back within the release timeout (the attempts then go on in the background), `LockLost` when Redis no longer
 * knows the grant (it has lost its data, or the time to live of the semaphore has ended) or the client was closed meanwhile,
 * `InvalidLockName` and `InvalidLockOptions` before any command. A failure of the effect itself takes precedence over
 * problems of giving the permits back.
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
  <A, E, R, S extends SemaphoreOrName, WaitTime extends Duration.Input | undefined = undefined>(
    self: Effect.Effect<A, E, R>,
    semaphore: S,
    permits: number,
    options?: AcquireOptions<WaitTime>
  ): Effect.Effect<A, E | TimeoutOf<WaitTime> | CommandError | LockLost, R | Services<S>>
  <S extends SemaphoreOrName, WaitTime extends Duration.Input | undefined = undefined>(
    semaphore: S,
    permits: number,
    options?: AcquireOptions<WaitTime>
  ): <A, E, R>(
    self: Effect.Effect<A, E, R>
  ) => Effect.Effect<A, E | TimeoutOf<WaitTime> | CommandError | LockLost, R | Services<S>>
} = dual(
  isEffectFirst,
  <A, E, R>(self: Effect.Effect<A, E, R>, semaphore: SemaphoreOrName, permits: number, options?: AcquireOptions) =>
    Sections.section(anonymousPermits, prepareAnonymous(semaphore, permits, options, true), self)
)

/**
 * Runs an effect with permits if they are free at this moment, without waiting; otherwise like {@link withPermits}. `None`
 * when they are not free.
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
  <A, E, R, S extends SemaphoreOrName>(
    self: Effect.Effect<A, E, R>,
    semaphore: S,
    permits: number
  ): Effect.Effect<Option.Option<A>, E | CommandError | LockLost, R | Services<S>>
  <S extends SemaphoreOrName>(
    semaphore: S,
    permits: number
  ): <A, E, R>(
    self: Effect.Effect<A, E, R>
  ) => Effect.Effect<Option.Option<A>, E | CommandError | LockLost, R | Services<S>>
} = dual(isEffectFirst, <A, E, R>(self: Effect.Effect<A, E, R>, semaphore: SemaphoreOrName, permits: number) =>
  Sections.trySection(anonymousPermits, prepareAnonymous(semaphore, permits, undefined, true), self)
)

/**
 * Acquires permits for as long as the scope is open; otherwise like {@link withPermits}.
 *
 * **Gotchas**
 *
 * A failure to give the permits back when the scope closes is only logged.
 *
 * @example
 * ```ts
 * import { Effect } from "effect"
 * import { Semaphore } from "effect-redis-lock"
 *
 * const program = Effect.scoped(Effect.gen(function*() {
 *   yield* Semaphore.scoped(Semaphore.make("uploads", { permits: 4 }), 2, { waitTime: "5 seconds" })
 *   yield* Effect.log("two permits until here")
 * }))
 * ```
 *
 * @category acquiring
 * @since 0.2.0
 */
export const scoped: {
  <WaitTime extends Duration.Input | undefined = undefined>(
    permits: number,
    options?: AcquireOptions<WaitTime>
  ): <S extends SemaphoreOrName>(
    semaphore: S
  ) => Effect.Effect<void, TimeoutOf<WaitTime> | CommandError, Services<S> | Scope.Scope>
  <S extends SemaphoreOrName, WaitTime extends Duration.Input | undefined = undefined>(
    semaphore: S,
    permits: number,
    options?: AcquireOptions<WaitTime>
  ): Effect.Effect<void, TimeoutOf<WaitTime> | CommandError, Services<S> | Scope.Scope>
} = dual(isDataFirstOfPermits, (semaphore: SemaphoreOrName, permits: number, options?: AcquireOptions) =>
  Effect.asVoid(Sections.scoped(anonymousPermits, prepareAnonymous(semaphore, permits, options, true)))
)

/**
 * Acquires permits (default: one) that are not given back automatically: some process has to call {@link release}.
 *
 * Fails with `LockTimeout` when `waitTime` ran out, `LockStoreError` when the request to Redis failed (a possible grant is
 * rolled back), `InvalidLockName` and `InvalidLockOptions` before any command.
 *
 * **When to use**
 *
 * Where a different process gives the permits back.
 *
 * **When not to use**
 *
 * Where {@link withPermits} or {@link scoped} will do.
 *
 * @category acquiring
 * @since 0.2.0
 */
export const acquire: <Arg extends SemaphoreOrName | number, WaitTime extends Duration.Input | undefined = undefined>(
  semaphoreOrPermits: Arg,
  permitsOrOptions?: [Arg] extends [number] ? AcquireOptions<WaitTime> : number,
  options?: AcquireOptions<WaitTime>
) => [Arg] extends [number]
  ? <S extends SemaphoreOrName>(semaphore: S) => Effect.Effect<void, TimeoutOf<WaitTime> | CommandError, Services<S>>
  : Effect.Effect<void, TimeoutOf<WaitTime> | CommandError, Services<Arg>> = dual(
  isDataFirstOfPermits,
  (semaphore: SemaphoreOrName, permits: number = 1, options?: AcquireOptions) =>
    Sections.acquired(anonymousPermits, prepareAnonymous(semaphore, permits, options, false))
)

/**
 * Tries once to acquire permits (default: one), without waiting; otherwise like {@link acquire}. `false` when they are not
 * free.
 *
 * @category acquiring
 * @since 0.2.0
 */
export const tryAcquire: <Arg extends SemaphoreOrName | number>(
  semaphoreOrPermits: Arg,
  permits?: number
) => [Arg] extends [number]
  ? <S extends SemaphoreOrName>(semaphore: S) => Effect.Effect<boolean, CommandError, Services<S>>
  : Effect.Effect<boolean, CommandError, Services<Arg>> = dual(
  isDataFirstOfPermits,
  (semaphore: SemaphoreOrName, permits: number = 1) =>
    Sections.tryAcquired(anonymousPermits, prepareAnonymous(semaphore, permits, undefined, false))
)

/**
 * Gives back permits that were taken with {@link acquire} (default: one), and wakes waiters. Creates a semaphore that does
 * not exist, like Redisson; one made with `permits` is left to its next use, which creates it with exactly that number.
 *
 * Fails with `LockStoreError` when the request to Redis failed, `InvalidLockName` and `InvalidLockOptions` before any
 * command.
 *
 * **Gotchas**
 *
 * Nothing checks that you hold them. After a `LockStoreError` whose `isOutcomeUnknown` is true, and after an interruption,
 * the permits may or may not have been given back, and a second attempt may add too many. {@link withPermits} and
 * {@link scoped} do not have this problem.
 *
 * @category mutations
 * @since 0.2.0
 */
export const release: <Arg extends SemaphoreOrName | number>(
  semaphoreOrPermits: Arg,
  permits?: number
) => [Arg] extends [number]
  ? <S extends SemaphoreOrName>(semaphore: S) => Effect.Effect<void, CommandError, Services<S>>
  : Effect.Effect<void, CommandError, Services<Arg>> = dual(
  isDataFirstOfPermits,
  (semaphore: SemaphoreOrName, permits: number = 1) => {
    const impl = semaphoreOf(semaphore)
    return permits === 0
      ? impl.use(() => Effect.void)
      : Effect.asVoid(add(impl, permits, 0, impl.kind.initial !== undefined))
  }
)

/** Adds at least this many permits; `false` with `onlyIfExists` if there is no semaphore. */
const add = (impl: SemaphoreImpl<unknown>, permits: number, least: number, onlyIfExists: boolean) =>
  impl.run(
    (key, store) => operations.add(key, impl.kind.initial, permits, onlyIfExists, store),
    checkPermits(permits, least)
  )

/**
 * Like {@link release}, but returns `false` and does nothing if the semaphore does not exist.
 *
 * @category mutations
 * @since 0.2.0
 */
export const releaseIfExists: <Arg extends SemaphoreOrName | number>(
  semaphoreOrPermits: Arg,
  permits?: number
) => [Arg] extends [number]
  ? <S extends SemaphoreOrName>(semaphore: S) => Effect.Effect<boolean, CommandError, Services<S>>
  : Effect.Effect<boolean, CommandError, Services<Arg>> = dual(
  isDataFirstOfPermits,
  (semaphore: SemaphoreOrName, permits: number = 1) => add(semaphoreOf(semaphore), permits, 1, true)
)

/**
 * Creates the semaphore with this number of permits, at least 0, permanently or for `timeToLive`, after which it disappears
 * together with all held permits: sections that end later fail with `LockLost`, and give nothing back to a semaphore that
 * has the name by then. Returns `false` and changes nothing if it exists.
 *
 * Fails with `LockStoreError` when the request to Redis failed, `InvalidLockName` and `InvalidLockOptions` before any
 * command.
 *
 * @category mutations
 * @since 0.2.0
 */
export const trySetPermits: {
  (
    permits: number,
    options?: { readonly timeToLive?: Duration.Input | undefined }
  ): <S extends SemaphoreOrName>(semaphore: S) => Effect.Effect<boolean, CommandError, Services<S>>
  <S extends SemaphoreOrName>(
    semaphore: S,
    permits: number,
    options?: { readonly timeToLive?: Duration.Input | undefined }
  ): Effect.Effect<boolean, CommandError, Services<S>>
} = dual(
  isDataFirstOfPermits,
  (semaphore: SemaphoreOrName, permits: number, options?: { readonly timeToLive?: Duration.Input | undefined }) => {
    const life = options?.timeToLive === undefined ? 0 : parsePeriod("timeToLive", options.timeToLive)
    if (typeof life !== "number") return Effect.fail(life)
    return semaphoreOf(semaphore).run(
      (key, store) => operations.set(key, permits, life, store),
      checkPermits(permits, 0)
    )
  }
)

/**
 * Adds permits permanently, or removes some with a negative number: the number of free permits may then be below zero until
 * enough are given back. Leaves the semaphore's time to live unchanged.
 *
 * Fails with `LockStoreError` when the request to Redis failed, `InvalidLockName` and `InvalidLockOptions` before any
 * command.
 *
 * @category mutations
 * @since 0.2.0
 */
export const addPermits: {
  (permits: number): <S extends SemaphoreOrName>(semaphore: S) => Effect.Effect<void, CommandError, Services<S>>
  <S extends SemaphoreOrName>(semaphore: S, permits: number): Effect.Effect<void, CommandError, Services<S>>
} = dual(2, (semaphore: SemaphoreOrName, permits: number) =>
  Effect.asVoid(add(semaphoreOf(semaphore), permits, -maxPermits, false))
)

/**
 * Takes all free permits, without waiting, and returns their number. A number below zero it raises to zero and returns, as
 * in Java. Leaves the semaphore's time to live unchanged.
 *
 * Fails with `LockStoreError` when the request to Redis failed, `InvalidLockName` and `InvalidLockOptions` before any
 * command.
 *
 * @category mutations
 * @since 0.2.0
 */
export const drainPermits = <S extends SemaphoreOrName>(
  semaphore: S
): Effect.Effect<number, CommandError, Services<S>> => {
  const impl = semaphoreOf(semaphore)
  return impl.run((key) => operations.drain(key, impl.kind.initial))
}

/**
 * The number of permits that are free at this moment. It may have changed by the time you see it: to act on it, acquire.
 *
 * Fails with `LockStoreError` when the request to Redis failed, `InvalidLockName` and `InvalidLockOptions` before any
 * command.
 *
 * @category getters
 * @since 0.2.0
 */
export const availablePermits = <S extends SemaphoreOrName>(
  semaphore: S
): Effect.Effect<number, CommandError, Services<S>> => {
  const impl = semaphoreOf(semaphore)
  return Effect.map(impl.run(operations.available), (available) => available ?? impl.kind.initial ?? 0)
}
