/**
 * Semaphores whose permits are leased: each has an id and an end, as in Redisson's `RPermitExpirableSemaphore`. The permits
 * of a process that dies come back by themselves.
 *
 * A semaphore is a value. Making one costs nothing and talks to nobody; where a function takes a semaphore, a name does as
 * well.
 *
 * **When to use**
 *
 * To limit how many do something at the same time, across processes.
 *
 * **When not to use**
 *
 * With one permit: a lock also has a fencing token. Within one process: Effect's own `Semaphore`.
 *
 * @since 0.2.0
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { dual } from "effect/Function"
import type * as Option from "effect/Option"
import type { Pipeable } from "effect/Pipeable"
import * as Predicate from "effect/Predicate"
import type * as Scope from "effect/Scope"
import type * as Types from "effect/Types"
import * as Sections from "./internal/acquire/sections.ts"
import { leasedPermits, preparePermits } from "./internal/locks/leasedPermits.ts"
import * as commands from "./internal/locks/permitSemaphoreCommands.ts"
import {
  PermitSemaphoreImpl,
  permitSemaphoreOf,
  TypeId as internalTypeId
} from "./internal/locks/PermitSemaphoreImpl.ts"
import { isDataFirst } from "./internal/options/isDataFirst.ts"
import type {
  InvalidLockName,
  InvalidLockOptions,
  LockLost,
  LockStoreError,
  TimeoutOf,
  WaitTimeOf
} from "./LockError.ts"
import type { AcquireOptions, OnlyOptions } from "./AcquireOptions.ts"
import type { RedisLock } from "./RedisLock.ts"

/**
 * Marks the values of this module at run time; see {@link isPermitSemaphore}.
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
export type TypeId = "~effect-redis-lock/PermitSemaphore"

/**
 * A semaphore with leased permits. `R` is what using it requires: {@link RedisLock}, or nothing once a service is bound with
 * {@link provide}.
 *
 * @category models
 * @since 0.2.0
 */
export interface PermitSemaphore<out R = RedisLock> extends Pipeable {
  readonly [TypeId]: { readonly _R: Types.Covariant<R> }
  readonly name: string
}

/**
 * Whether a value is a semaphore with leased permits of this library.
 *
 * **When to use**
 *
 * To narrow an unknown value, or to tell a semaphore from its name where either is accepted.
 *
 * @category guards
 * @since 0.3.0
 */
export const isPermitSemaphore = (u: unknown): u is PermitSemaphore<unknown> => Predicate.hasProperty(u, TypeId)

/**
 * What using a semaphore requires; of a name, {@link RedisLock}.
 *
 * @category type-level
 * @since 0.3.0
 */
export type Services<S> = S extends PermitSemaphore<infer R> ? R : RedisLock

/**
 * What you have while you hold permits. Its validity is computed whenever you ask, from a deadline on the monotonic clock:
 * after a stopped process, a blocked event loop or a cut network the very first check says that the permits are lost,
 * without asking Redis.
 *
 * @category models
 * @since 0.2.0
 */
export interface Permit {
  /** The semaphore's name. */
  readonly name: string
  /** One for each permit, 32 hexadecimal digits: what Redisson calls permit ids. */
  readonly ids: ReadonlyArray<string>
  /** Whether the permits are still held. Asks nobody. */
  readonly isHeld: Effect.Effect<boolean>
  /** Fails with `LockLost` once the permits are no longer held, also after they were released. Asks nobody. */
  readonly ensureHeld: Effect.Effect<void, LockLost>
  /** How long the permits are certainly held without another renewal; zero when they are not. */
  readonly remaining: Effect.Effect<Duration.Duration>
  /** Waits until the permits are lost, then fails: for racing against your work. Never ends once they are released. */
  readonly awaitLost: Effect.Effect<never, LockLost>
  /**
   * Extends the lease to `leaseTime` from now (default: the watchdog's lease, 30 seconds), unless it runs longer anyway.
   * Only permits with a fixed `leaseTime` need it.
   */
  readonly renew: (leaseTime?: Duration.Input) => Effect.Effect<void, LockLost | LockStoreError | InvalidLockOptions>
  /**
   * Gives the permits back early; the scope's finalizer then has nothing left to do. Safe to call again. Fails with `LockLost`
   * when they turned out to be no longer held, with `LockStoreError` when Redis could not be told within the release timeout:
   * the attempts then go on in the background until the lease is over.
   */
  readonly release: Effect.Effect<void, LockLost | LockStoreError>
}

export type { AcquireOptions } from "./AcquireOptions.ts"

/**
 * How to acquire for a scope.
 *
 * @category options
 * @since 0.2.0
 */
export interface ScopedOptions<
  out WaitTime extends Duration.Input | undefined = Duration.Input | undefined
> extends AcquireOptions<WaitTime> {
  /** How many permits, all or none; from 1 to 10000. Default: 1. */
  readonly permits?: number | undefined
}

/**
 * A semaphore. With `permits`, its first use creates it with that many permits where it does not exist; without, it has none
 * until {@link trySetPermits}, {@link setPermits} or {@link addPermits} gives it some, here or in Java.
 *
 * By the server's clock, no more permits are ever held at once than there are in all. The name follows the rules of
 * `Lock.make`; `permits` is a whole number from 1 to 2147483647. A bad name or number is reported when the semaphore is used,
 * before any command is sent.
 *
 * **Gotchas**
 *
 * A semaphore that exists keeps the number of permits it has, also after a deployment with another one: to change it,
 * {@link setPermits}. A client that is denied permits logs one warning where the two differ.
 *
 * The counter stays in Redis until somebody deletes it: see docs/memory.md.
 *
 * **When not to use**
 *
 * For one permit: a lock also has a fencing token. Within one process: Effect's own `Semaphore`.
 *
 * @example
 * ```ts
 * import { Effect } from "effect"
 * import { PermitSemaphore } from "effect-redis-lock"
 *
 * const partner = PermitSemaphore.make("partner-api", { permits: 5 })
 *
 * const program = Effect.log("call the partner").pipe(PermitSemaphore.withPermit(partner, { waitTime: "10 seconds" }))
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const make = (name: string, options?: { readonly permits?: number | undefined }): PermitSemaphore =>
  new PermitSemaphoreImpl(name, options?.permits, undefined)

/**
 * Binds a semaphore to one service, so that using it requires nothing.
 *
 * @category combinators
 * @since 0.2.0
 */
export const provide: {
  (service: RedisLock["Service"]): <R>(semaphore: PermitSemaphore<R>) => PermitSemaphore<Exclude<R, RedisLock>>
  <R>(semaphore: PermitSemaphore<R>, service: RedisLock["Service"]): PermitSemaphore<Exclude<R, RedisLock>>
} = dual(
  2,
  <R>(semaphore: PermitSemaphore<R>, service: RedisLock["Service"]): PermitSemaphore<Exclude<R, RedisLock>> => {
    const { invalid, name, permits } = permitSemaphoreOf(semaphore)
    return new PermitSemaphoreImpl(name, permits, service, invalid)
  }
)

/**
 * Acquires permits, one unless `permits` says otherwise, for as long as the scope is open.
 *
 * **Details**
 *
 * Waiters of one process are served first come, first served as far as their demands fit into what is free: a waiter for many
 * permits does not keep others from the few that are there, and can be passed by them again and again.
 *
 * Fails with `LockTimeout` when `waitTime` ran out, `LockStoreError` when Redis could not be asked (what may have been
 * acquired is undone), `InvalidLockName` and `InvalidLockOptions` before any command.
 *
 * **Gotchas**
 *
 * A loss does not interrupt you here: check `ensureHeld` between steps, race `awaitLost`, or use {@link withPermit}. A failure
 * to give the permits back when the scope closes can only be logged; call `Permit.release` to have it as a value.
 *
 * @example
 * ```ts
 * import { Effect } from "effect"
 * import { PermitSemaphore } from "effect-redis-lock"
 *
 * const program = Effect.scoped(Effect.gen(function*() {
 *   const permit = yield* PermitSemaphore.scoped(PermitSemaphore.make("gpu", { permits: 8 }), { permits: 2 })
 *   yield* Effect.log(`computing with ${permit.ids.length} permits`)
 * }))
 * ```
 *
 * @category acquiring
 * @since 0.2.0
 */
export const scoped: <
  Arg extends PermitSemaphore<unknown> | string | OnlyOptions<Arg, ScopedOptions>,
  WaitTime extends Duration.Input | undefined = undefined
>(
  semaphoreOrOptions: Arg,
  options?: ScopedOptions<WaitTime>
) => [Arg] extends [PermitSemaphore<unknown> | string]
  ? Effect.Effect<
      Permit,
      TimeoutOf<WaitTime> | LockStoreError | InvalidLockName | InvalidLockOptions,
      Services<Arg> | Scope.Scope
    >
  : <S extends PermitSemaphore<unknown> | string>(
      semaphore: S
    ) => Effect.Effect<
      Permit,
      TimeoutOf<WaitTimeOf<Arg>> | LockStoreError | InvalidLockName | InvalidLockOptions,
      Services<S> | Scope.Scope
    > = dual(isDataFirst, (semaphore: PermitSemaphore<unknown> | string, options?: ScopedOptions) =>
  Sections.scoped(leasedPermits, preparePermits(semaphore, options?.permits ?? 1, options))
)

/**
 * Asks once for permits, without waiting; otherwise as {@link scoped}. `None` when they are not free.
 *
 * @example
 * ```ts
 * import { Effect, Option } from "effect"
 * import { PermitSemaphore } from "effect-redis-lock"
 *
 * const program = Effect.scoped(Effect.gen(function*() {
 *   const permit = yield* PermitSemaphore.tryScoped("spare-capacity")
 *   if (Option.isNone(permit)) return yield* Effect.log("too busy for that now")
 * }))
 * ```
 *
 * @category acquiring
 * @since 0.2.0
 */
export const tryScoped: <
  Arg extends PermitSemaphore<unknown> | string | OnlyOptions<Arg, Omit<ScopedOptions, "waitTime">>
>(
  semaphoreOrOptions: Arg,
  options?: Omit<ScopedOptions, "waitTime">
) => [Arg] extends [PermitSemaphore<unknown> | string]
  ? Effect.Effect<
      Option.Option<Permit>,
      LockStoreError | InvalidLockName | InvalidLockOptions,
      Services<Arg> | Scope.Scope
    >
  : <S extends PermitSemaphore<unknown> | string>(
      semaphore: S
    ) => Effect.Effect<
      Option.Option<Permit>,
      LockStoreError | InvalidLockName | InvalidLockOptions,
      Services<S> | Scope.Scope
    > = dual(isDataFirst, (semaphore: PermitSemaphore<unknown> | string, options?: Omit<ScopedOptions, "waitTime">) =>
  Sections.tryScoped(leasedPermits, preparePermits(semaphore, options?.permits ?? 1, options))
)

/**
 * Runs an effect with permits, and gives them back however it ends.
 *
 * When the permits are lost the effect is interrupted and the whole fails with `LockLost`; so it does when Redis no longer has
 * them when they are given back, even if the effect had succeeded. A failure of the effect itself wins over problems of giving
 * back. The effect runs in a fiber of its own: fibers that it forks with `Effect.forkChild` end with it.
 *
 * Fails with `LockTimeout` when `waitTime` ran out, `LockLost`, `LockStoreError` when Redis could not be asked or the permits
 * could not be given back within the release timeout, `InvalidLockName` and `InvalidLockOptions` before any command.
 *
 * **Gotchas**
 *
 * JavaScript cannot interrupt a busy loop: an effect that blocks the event loop is only stopped where it yields.
 *
 * @example
 * ```ts
 * import { Effect } from "effect"
 * import { PermitSemaphore } from "effect-redis-lock"
 *
 * const gpus = PermitSemaphore.make("gpu", { permits: 8 })
 *
 * const program = Effect.log("train").pipe(PermitSemaphore.withPermits(gpus, 4, { waitTime: "1 hour" }))
 * const same = PermitSemaphore.withPermits(Effect.log("train"), gpus, 4, { waitTime: "1 hour" })
 * ```
 *
 * @category acquiring
 * @since 0.2.0
 */
export const withPermits: {
  <A, E, R, S extends PermitSemaphore<unknown> | string, WaitTime extends Duration.Input | undefined = undefined>(
    self: Effect.Effect<A, E, R>,
    semaphore: S,
    permits: number,
    options?: AcquireOptions<WaitTime>
  ): Effect.Effect<
    A,
    E | TimeoutOf<WaitTime> | LockStoreError | InvalidLockName | InvalidLockOptions | LockLost,
    R | Services<S>
  >
  <S extends PermitSemaphore<unknown> | string, WaitTime extends Duration.Input | undefined = undefined>(
    semaphore: S,
    permits: number,
    options?: AcquireOptions<WaitTime>
  ): <A, E, R>(
    self: Effect.Effect<A, E, R>
  ) => Effect.Effect<
    A,
    E | TimeoutOf<WaitTime> | LockStoreError | InvalidLockName | InvalidLockOptions | LockLost,
    R | Services<S>
  >
} = dual(
  (args) => Effect.isEffect(args[0]),
  <A, E, R>(
    self: Effect.Effect<A, E, R>,
    semaphore: PermitSemaphore<unknown> | string,
    permits: number,
    options?: AcquireOptions
  ) => Sections.section(leasedPermits, preparePermits(semaphore, permits, options), self)
)

/**
 * {@link withPermits} with one.
 *
 * @category acquiring
 * @since 0.2.0
 */
export const withPermit: {
  <A, E, R, S extends PermitSemaphore<unknown> | string, WaitTime extends Duration.Input | undefined = undefined>(
    self: Effect.Effect<A, E, R>,
    semaphore: S,
    options?: AcquireOptions<WaitTime>
  ): Effect.Effect<
    A,
    E | TimeoutOf<WaitTime> | LockStoreError | InvalidLockName | InvalidLockOptions | LockLost,
    R | Services<S>
  >
  <S extends PermitSemaphore<unknown> | string, WaitTime extends Duration.Input | undefined = undefined>(
    semaphore: S,
    options?: AcquireOptions<WaitTime>
  ): <A, E, R>(
    self: Effect.Effect<A, E, R>
  ) => Effect.Effect<
    A,
    E | TimeoutOf<WaitTime> | LockStoreError | InvalidLockName | InvalidLockOptions | LockLost,
    R | Services<S>
  >
} = dual(
  (args) => Effect.isEffect(args[0]),
  <A, E, R>(self: Effect.Effect<A, E, R>, semaphore: PermitSemaphore<unknown> | string, options?: AcquireOptions) =>
    withPermits(self, semaphore, 1, options)
)

/**
 * Runs an effect with one permit if there is one at this moment, without waiting; otherwise as {@link withPermit}. `None` when
 * there is none.
 *
 * @category acquiring
 * @since 0.2.0
 */
export const withPermitIfAvailable: {
  <A, E, R, S extends PermitSemaphore<unknown> | string>(
    self: Effect.Effect<A, E, R>,
    semaphore: S,
    options?: Pick<AcquireOptions, "leaseTime">
  ): Effect.Effect<
    Option.Option<A>,
    E | LockStoreError | InvalidLockName | InvalidLockOptions | LockLost,
    R | Services<S>
  >
  <S extends PermitSemaphore<unknown> | string>(
    semaphore: S,
    options?: Pick<AcquireOptions, "leaseTime">
  ): <A, E, R>(
    self: Effect.Effect<A, E, R>
  ) => Effect.Effect<
    Option.Option<A>,
    E | LockStoreError | InvalidLockName | InvalidLockOptions | LockLost,
    R | Services<S>
  >
} = dual(
  (args) => Effect.isEffect(args[0]),
  <A, E, R>(
    self: Effect.Effect<A, E, R>,
    semaphore: PermitSemaphore<unknown> | string,
    options?: Pick<AcquireOptions, "leaseTime">
  ) => Sections.trySection(leasedPermits, preparePermits(semaphore, 1, options), self)
)

/**
 * Creates the semaphore with `permits` permits in all, from 0. `false`, and nothing changed, where it exists. Permits that
 * are still held although their semaphore was removed count towards `permits`, as in {@link setPermits}.
 *
 * Fails with `LockStoreError` when Redis could not be asked, `InvalidLockName` and `InvalidLockOptions` before any command.
 *
 * @category mutations
 * @since 0.2.0
 */
export const trySetPermits: {
  (
    permits: number
  ): <S extends PermitSemaphore<unknown> | string>(
    semaphore: S
  ) => Effect.Effect<boolean, LockStoreError | InvalidLockName | InvalidLockOptions, Services<S>>
  <S extends PermitSemaphore<unknown> | string>(
    semaphore: S,
    permits: number
  ): Effect.Effect<boolean, LockStoreError | InvalidLockName | InvalidLockOptions, Services<S>>
} = dual(2, (semaphore: PermitSemaphore<unknown> | string, permits: number) =>
  commands.setPermits(semaphore, permits, false)
)

/**
 * Sets how many permits the semaphore has in all, held ones included, from 0; creates it where it does not exist.
 *
 * **Gotchas**
 *
 * Nobody loses a permit. Where more are held than there are to be, the new limit does not hold yet when this returns: all
 * current holders go on, and nobody is let in until enough of them have given their permits back or their leases have ended.
 * `availablePermits` is negative until then. If your work must not go beyond the new limit at once, wait until
 * `acquiredPermits` is no larger than it.
 *
 * Fails with `LockStoreError` when Redis could not be asked, `InvalidLockName` and `InvalidLockOptions` before any command.
 *
 * @category mutations
 * @since 0.2.0
 */
export const setPermits: {
  (
    permits: number
  ): <S extends PermitSemaphore<unknown> | string>(
    semaphore: S
  ) => Effect.Effect<void, LockStoreError | InvalidLockName | InvalidLockOptions, Services<S>>
  <S extends PermitSemaphore<unknown> | string>(
    semaphore: S,
    permits: number
  ): Effect.Effect<void, LockStoreError | InvalidLockName | InvalidLockOptions, Services<S>>
} = dual(2, (semaphore: PermitSemaphore<unknown> | string, permits: number) =>
  Effect.asVoid(commands.setPermits(semaphore, permits, true))
)

/**
 * Adds permits for good, or takes some away with a negative number: the number that is free may then be below zero until
 * enough are given back. A time to live of the semaphore stays as it is.
 *
 * Fails with `LockStoreError` when Redis could not be asked, `InvalidLockName` and `InvalidLockOptions` before any command.
 *
 * @category mutations
 * @since 0.2.0
 */
export const addPermits: {
  (
    permits: number
  ): <S extends PermitSemaphore<unknown> | string>(
    semaphore: S
  ) => Effect.Effect<void, LockStoreError | InvalidLockName | InvalidLockOptions, Services<S>>
  <S extends PermitSemaphore<unknown> | string>(
    semaphore: S,
    permits: number
  ): Effect.Effect<void, LockStoreError | InvalidLockName | InvalidLockOptions, Services<S>>
} = dual(2, commands.addPermits)

/**
 * The number of permits that are free at this moment. It may have changed by the time you see it: to act on it, acquire.
 *
 * Fails with `LockStoreError` when Redis could not be asked, `InvalidLockName` and `InvalidLockOptions` before any command.
 *
 * @category getters
 * @since 0.2.0
 */
export const availablePermits = <S extends PermitSemaphore<unknown> | string>(
  semaphore: S
): Effect.Effect<number, LockStoreError | InvalidLockName | InvalidLockOptions, Services<S>> =>
  commands.countPermits(semaphore, (available) => available)

/**
 * The number of permits that are held at this moment, by anybody.
 *
 * Fails with `LockStoreError` when Redis could not be asked, `InvalidLockName` and `InvalidLockOptions` before any command.
 *
 * @category getters
 * @since 0.2.0
 */
export const acquiredPermits = <S extends PermitSemaphore<unknown> | string>(
  semaphore: S
): Effect.Effect<number, LockStoreError | InvalidLockName | InvalidLockOptions, Services<S>> =>
  commands.countPermits(semaphore, (_available, held) => held)

/**
 * The number of permits in all, free and held.
 *
 * Fails with `LockStoreError` when Redis could not be asked, `InvalidLockName` and `InvalidLockOptions` before any command.
 *
 * @category getters
 * @since 0.2.0
 */
export const totalPermits = <S extends PermitSemaphore<unknown> | string>(
  semaphore: S
): Effect.Effect<number, LockStoreError | InvalidLockName | InvalidLockOptions, Services<S>> =>
  commands.countPermits(semaphore, (available, held) => available + held)

/**
 * Gives back permits that are known by their ids, such as ids that a Java service has passed on: all of them, or none where
 * one is not held (unknown, given back already, or its lease has ended). `true` when they were given back.
 *
 * Fails with `LockStoreError` when Redis could not be asked, `InvalidLockName` and `InvalidLockOptions` before any command.
 *
 * @category mutations
 * @since 0.2.0
 */
export const tryRelease: {
  (
    ids: ReadonlyArray<string>
  ): <S extends PermitSemaphore<unknown> | string>(
    semaphore: S
  ) => Effect.Effect<boolean, LockStoreError | InvalidLockName | InvalidLockOptions, Services<S>>
  <S extends PermitSemaphore<unknown> | string>(
    semaphore: S,
    ids: ReadonlyArray<string>
  ): Effect.Effect<boolean, LockStoreError | InvalidLockName | InvalidLockOptions, Services<S>>
} = dual(2, commands.tryRelease)

/**
 * Gives back one permit that is known by its id; see {@link tryRelease}. Fails with `LockLost` where it is not held.
 *
 * @category mutations
 * @since 0.2.0
 */
export const release: {
  (
    id: string
  ): <S extends PermitSemaphore<unknown> | string>(
    semaphore: S
  ) => Effect.Effect<void, LockLost | LockStoreError | InvalidLockName | InvalidLockOptions, Services<S>>
  <S extends PermitSemaphore<unknown> | string>(
    semaphore: S,
    id: string
  ): Effect.Effect<void, LockLost | LockStoreError | InvalidLockName | InvalidLockOptions, Services<S>>
} = dual(2, commands.release)

/**
 * Gives a permit that is known by its id another lease, from now, longer or shorter; an infinite one never ends. `false`
 * where the permit is not held. What this process holds as a {@link Permit} is renewed by `Permit.renew`.
 *
 * Fails with `LockStoreError` when Redis could not be asked, `InvalidLockName` and `InvalidLockOptions` before any command.
 *
 * @category mutations
 * @since 0.2.0
 */
export const updateLeaseTime: {
  (
    id: string,
    leaseTime: Duration.Input
  ): <S extends PermitSemaphore<unknown> | string>(
    semaphore: S
  ) => Effect.Effect<boolean, LockStoreError | InvalidLockName | InvalidLockOptions, Services<S>>
  <S extends PermitSemaphore<unknown> | string>(
    semaphore: S,
    id: string,
    leaseTime: Duration.Input
  ): Effect.Effect<boolean, LockStoreError | InvalidLockName | InvalidLockOptions, Services<S>>
} = dual(3, commands.updateLeaseTime)

/**
 * How long the lease of a permit that is known by its id still runs, infinite where it never ends; `None` where the permit
 * is not held.
 *
 * Fails with `LockStoreError` when Redis could not be asked, `InvalidLockName` and `InvalidLockOptions` before any command.
 *
 * @category getters
 * @since 0.2.0
 */
export const leaseTime: {
  (
    id: string
  ): <S extends PermitSemaphore<unknown> | string>(
    semaphore: S
  ) => Effect.Effect<
    Option.Option<Duration.Duration>,
    LockStoreError | InvalidLockName | InvalidLockOptions,
    Services<S>
  >
  <S extends PermitSemaphore<unknown> | string>(
    semaphore: S,
    id: string
  ): Effect.Effect<Option.Option<Duration.Duration>, LockStoreError | InvalidLockName | InvalidLockOptions, Services<S>>
} = dual(2, commands.leaseTime)
