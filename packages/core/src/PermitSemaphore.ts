/**
 * Semaphores whose permits are leased: each has an id and an expiry, as in Redisson's `RPermitExpirableSemaphore`. The
 * permits of a process that dies come back by themselves.
 *
 * A semaphore is a value. Making one costs nothing and sends no command; every function that takes a semaphore also accepts
 * a name.
 *
 * **When to use**
 *
 * To limit how many fibers do something at the same time, across processes.
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
import type { GrantOptions, OnlyOptions } from "./AcquireOptions.ts"
import type { HoldingWithoutToken } from "./Holding.ts"
import * as Sections from "./internal/acquire/sections.ts"
import { permit } from "./internal/kinds/kinds.ts"
import {
  leasedPermits,
  PermitSemaphoreImpl,
  permitSemaphoreOf,
  preparePermits,
  PermitSemaphoreTypeId as TypeId
} from "./internal/locks/semaphores.ts"
import { checkPermits, isDataFirst, isEffectFirst, maxPermits } from "./internal/options/acquireOptions.ts"
import * as operations from "./internal/store/operations/permitSemaphore.ts"
import type { CommandError, LockLost, TimeoutOf, WaitTimeOf } from "./LockError.ts"
import type { RedisLock } from "./RedisLock.ts"

/**
 * A semaphore with leased permits. `R` is the services that it requires: {@link RedisLock}, or none once a service is bound
 * with {@link provide}.
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
 * A semaphore, or the name of one.
 *
 * @category type-level
 * @since 0.3.0
 */
export type SemaphoreOrName = PermitSemaphore<unknown> | string

/**
 * The services that a semaphore requires; for a name, {@link RedisLock}.
 *
 * @category type-level
 * @since 0.3.0
 */
export type Services<S> = S extends PermitSemaphore<infer R> ? R : RedisLock

/**
 * A hold of permits. Its validity is computed at every check, from a deadline on the monotonic clock: after a stopped
 * process, a blocked event loop or a cut network the very first check says that the permits are lost, without asking Redis.
 *
 * @category models
 * @since 0.2.0
 */
export interface Permit extends Omit<HoldingWithoutToken, "owner"> {
  /** The ids of the permits, 32 hexadecimal digits each, as in Redisson. */
  readonly ids: ReadonlyArray<string>
}

/**
 * Options of acquiring for a scope.
 *
 * @category options
 * @since 0.2.0
 */
export interface ScopedOptions<
  out WaitTime extends Duration.Input | undefined = Duration.Input | undefined
> extends GrantOptions<WaitTime> {
  /** The number of permits, acquired all or none; from 1 to 10000. Default: 1. */
  readonly permits?: number | undefined
}

/**
 * A semaphore. With `permits`, its first use creates it with that many permits if it does not exist; without, it has none
 * until {@link trySetPermits}, {@link setPermits} or {@link addPermits} gives it some, here or in Java.
 *
 * By the server's clock, the permits held at once never exceed the total. The name follows the rules of `Lock.make`;
 * `permits` is a whole number from 1 to 2147483647. An invalid name or number is reported when the semaphore is used,
 * before any command is sent.
 *
 * **Gotchas**
 *
 * A semaphore that exists keeps its number of permits, even after a deployment with a different one: use {@link setPermits}
 * to change it. A client that is denied permits logs one warning if the two numbers differ.
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
  new PermitSemaphoreImpl(name, permit(options?.permits))

/**
 * Binds a semaphore to one service, so that it requires no other.
 *
 * @category combinators
 * @since 0.2.0
 */
export const provide: {
  (service: RedisLock["Service"]): <R>(semaphore: PermitSemaphore<R>) => PermitSemaphore<Exclude<R, RedisLock>>
  <R>(semaphore: PermitSemaphore<R>, service: RedisLock["Service"]): PermitSemaphore<Exclude<R, RedisLock>>
} = dual(2, <R>(semaphore: PermitSemaphore<R>, service: RedisLock["Service"]) => {
  const { invalid, kind, name } = permitSemaphoreOf(semaphore)
  return new PermitSemaphoreImpl<Exclude<R, RedisLock>>(name, kind, service, invalid)
})

/**
 * Acquires permits (default: one) for as long as the scope is open.
 *
 * **Details**
 *
 * Waiters of one process are served first come, first served, as far as enough permits are free. A waiter for many permits
 * is overtaken by others that want fewer, but from time to time permits are kept for it: docs/contention.md has the bounds.
 *
 * Fails with `LockTimeout` when `waitTime` ran out, `LockStoreError` when the request to Redis failed (a possible grant is
 * rolled back), `InvalidLockName` and `InvalidLockOptions` before any command.
 *
 * **Gotchas**
 *
 * A loss does not interrupt your code here: check `ensureHeld` between steps, race `awaitLost`, or use {@link withPermit}.
 * A failure to give the permits back when the scope closes is only logged; call `Permit.release` to handle it.
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
  Arg extends SemaphoreOrName | OnlyOptions<Arg, ScopedOptions>,
  WaitTime extends Duration.Input | undefined = undefined
>(
  semaphoreOrOptions: Arg,
  options?: ScopedOptions<WaitTime>
) => [Arg] extends [SemaphoreOrName]
  ? Effect.Effect<Permit, TimeoutOf<WaitTime> | CommandError, Services<Arg> | Scope.Scope>
  : <S extends SemaphoreOrName>(
      semaphore: S
    ) => Effect.Effect<Permit, TimeoutOf<WaitTimeOf<Arg>> | CommandError, Services<S> | Scope.Scope> = dual(
  isDataFirst,
  (semaphore: SemaphoreOrName, options?: ScopedOptions) =>
    Sections.scoped(leasedPermits, preparePermits(semaphore, options?.permits ?? 1, options))
)

/**
 * Tries once to acquire permits, without waiting; otherwise like {@link scoped}. `None` when they are not free.
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
export const tryScoped: <Arg extends SemaphoreOrName | OnlyOptions<Arg, Omit<ScopedOptions, "waitTime">>>(
  semaphoreOrOptions: Arg,
  options?: Omit<ScopedOptions, "waitTime">
) => [Arg] extends [SemaphoreOrName]
  ? Effect.Effect<Option.Option<Permit>, CommandError, Services<Arg> | Scope.Scope>
  : <S extends SemaphoreOrName>(
      semaphore: S
    ) => Effect.Effect<Option.Option<Permit>, CommandError, Services<S> | Scope.Scope> = dual(
  isDataFirst,
  (semaphore: SemaphoreOrName, options?: Omit<ScopedOptions, "waitTime">) =>
    Sections.tryScoped(leasedPermits, preparePermits(semaphore, options?.permits ?? 1, options))
)

/**
 * Runs an effect with permits, and gives them back however it ends.
 *
 * When the permits are lost, the effect is interrupted and the section fails with `LockLost`. The section also fails with
 * `LockLost` when Redis no longer has the permits at the end, even if the effect had succeeded. A failure of the effect
 * itself takes precedence over problems of giving the permits back. The effect runs in a fiber of its own: fibers that it
 * forks with `Effect.forkChild` end with it.
 *
 * Fails with `LockTimeout` when `waitTime` ran out, `LockLost`, `LockStoreError` when the request to Redis failed or the
 * permits could not be given back within the release timeout, `InvalidLockName` and `InvalidLockOptions` before any
 * command.
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
  <A, E, R, S extends SemaphoreOrName, WaitTime extends Duration.Input | undefined = undefined>(
    self: Effect.Effect<A, E, R>,
    semaphore: S,
    permits: number,
    options?: GrantOptions<WaitTime>
  ): Effect.Effect<A, E | TimeoutOf<WaitTime> | CommandError | LockLost, R | Services<S>>
  <S extends SemaphoreOrName, WaitTime extends Duration.Input | undefined = undefined>(
    semaphore: S,
    permits: number,
    options?: GrantOptions<WaitTime>
  ): <A, E, R>(
    self: Effect.Effect<A, E, R>
  ) => Effect.Effect<A, E | TimeoutOf<WaitTime> | CommandError | LockLost, R | Services<S>>
} = dual(
  isEffectFirst,
  <A, E, R>(self: Effect.Effect<A, E, R>, semaphore: SemaphoreOrName, permits: number, options?: GrantOptions) =>
    Sections.section(leasedPermits, preparePermits(semaphore, permits, options), self)
)

/**
 * {@link withPermits} with one permit.
 *
 * @category acquiring
 * @since 0.2.0
 */
export const withPermit: {
  <A, E, R, S extends SemaphoreOrName, WaitTime extends Duration.Input | undefined = undefined>(
    self: Effect.Effect<A, E, R>,
    semaphore: S,
    options?: GrantOptions<WaitTime>
  ): Effect.Effect<A, E | TimeoutOf<WaitTime> | CommandError | LockLost, R | Services<S>>
  <S extends SemaphoreOrName, WaitTime extends Duration.Input | undefined = undefined>(
    semaphore: S,
    options?: GrantOptions<WaitTime>
  ): <A, E, R>(
    self: Effect.Effect<A, E, R>
  ) => Effect.Effect<A, E | TimeoutOf<WaitTime> | CommandError | LockLost, R | Services<S>>
} = dual(isEffectFirst, <A, E, R>(self: Effect.Effect<A, E, R>, semaphore: SemaphoreOrName, options?: GrantOptions) =>
  withPermits(self, semaphore, 1, options)
)

/**
 * Runs an effect with one permit if one is free at this moment, without waiting; otherwise like {@link withPermit}. `None`
 * when none is free.
 *
 * @category acquiring
 * @since 0.2.0
 */
export const withPermitIfAvailable: {
  <A, E, R, S extends SemaphoreOrName>(
    self: Effect.Effect<A, E, R>,
    semaphore: S,
    options?: Omit<GrantOptions, "waitTime">
  ): Effect.Effect<Option.Option<A>, E | CommandError | LockLost, R | Services<S>>
  <S extends SemaphoreOrName>(
    semaphore: S,
    options?: Omit<GrantOptions, "waitTime">
  ): <A, E, R>(
    self: Effect.Effect<A, E, R>
  ) => Effect.Effect<Option.Option<A>, E | CommandError | LockLost, R | Services<S>>
} = dual(
  isEffectFirst,
  <A, E, R>(self: Effect.Effect<A, E, R>, semaphore: SemaphoreOrName, options?: Omit<GrantOptions, "waitTime">) =>
    Sections.trySection(leasedPermits, preparePermits(semaphore, 1, options), self)
)

/**
 * Creates the semaphore with `permits` permits in total, at least 0. Returns `false` and changes nothing if it exists.
 * Permits that are still held although their semaphore was removed count towards `permits`, as in {@link setPermits}.
 *
 * Fails with `LockStoreError` when the request to Redis failed, `InvalidLockName` and `InvalidLockOptions` before any
 * command.
 *
 * @category mutations
 * @since 0.2.0
 */
export const trySetPermits: {
  (permits: number): <S extends SemaphoreOrName>(semaphore: S) => Effect.Effect<boolean, CommandError, Services<S>>
  <S extends SemaphoreOrName>(semaphore: S, permits: number): Effect.Effect<boolean, CommandError, Services<S>>
} = dual(2, (semaphore: SemaphoreOrName, permits: number) => set(semaphore, permits, false))

/** Sets the total; `false` if the semaphore exists and must not change. */
const set = (semaphore: SemaphoreOrName, permits: number, ifExists: boolean) =>
  permitSemaphoreOf(semaphore).run(
    (key, store) => operations.set(key, permits, ifExists, store),
    checkPermits(permits, 0)
  )

/**
 * Sets the total number of permits, including held ones, at least 0; creates the semaphore if it does not exist.
 *
 * **Gotchas**
 *
 * Nobody loses a permit. If more permits are held than the new total, the new limit does not hold yet when this returns:
 * all current holders continue, and nobody else gets a permit until enough of them have given theirs back or their leases
 * have ended. `availablePermits` is negative until then. If your work must not exceed the new limit from now on, wait until
 * `acquiredPermits` is no larger than it.
 *
 * Fails with `LockStoreError` when the request to Redis failed, `InvalidLockName` and `InvalidLockOptions` before any
 * command.
 *
 * @category mutations
 * @since 0.2.0
 */
export const setPermits: {
  (permits: number): <S extends SemaphoreOrName>(semaphore: S) => Effect.Effect<void, CommandError, Services<S>>
  <S extends SemaphoreOrName>(semaphore: S, permits: number): Effect.Effect<void, CommandError, Services<S>>
} = dual(2, (semaphore: SemaphoreOrName, permits: number) => Effect.asVoid(set(semaphore, permits, true)))

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
} = dual(2, (semaphore: SemaphoreOrName, permits: number) => {
  const impl = permitSemaphoreOf(semaphore)
  return Effect.asVoid(
    impl.run((key, store) => operations.add(key, impl.kind.initial, permits, store), checkPermits(permits, -maxPermits))
  )
})

/**
 * The number of permits that are free at this moment. The answer may be outdated when you see it: to act on it, acquire.
 *
 * Fails with `LockStoreError` when the request to Redis failed, `InvalidLockName` and `InvalidLockOptions` before any
 * command.
 *
 * @category getters
 * @since 0.2.0
 */
export const availablePermits = <S extends SemaphoreOrName>(
  semaphore: S
): Effect.Effect<number, CommandError, Services<S>> => count(semaphore, (available) => available)

/**
 * The number of permits that are held at this moment, by all processes.
 *
 * Fails with `LockStoreError` when the request to Redis failed, `InvalidLockName` and `InvalidLockOptions` before any
 * command.
 *
 * @category getters
 * @since 0.2.0
 */
export const acquiredPermits = <S extends SemaphoreOrName>(
  semaphore: S
): Effect.Effect<number, CommandError, Services<S>> => count(semaphore, (_available, held) => held)

/**
 * The total number of permits, free and held.
 *
 * Fails with `LockStoreError` when the request to Redis failed, `InvalidLockName` and `InvalidLockOptions` before any
 * command.
 *
 * @category getters
 * @since 0.2.0
 */
export const totalPermits = <S extends SemaphoreOrName>(
  semaphore: S
): Effect.Effect<number, CommandError, Services<S>> => count(semaphore, (available, held) => available + held)

/** Applies `f` to the numbers of free and of held permits. */
const count = (semaphore: SemaphoreOrName, f: (available: number, held: number) => number) => {
  const impl = permitSemaphoreOf(semaphore)
  const { initial } = impl.kind
  return Effect.map(impl.run(operations.count), ({ available, held }) =>
    f(available ?? (initial === undefined ? 0 : initial - held), held)
  )
}
