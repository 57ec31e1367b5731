/**
 * Semaphores whose permits are leased: each has an id and an end, as in Redisson's `RPermitExpirableSemaphore`. The permits
 * of a process that dies come back by themselves.
 *
 * A semaphore is a value. Making one costs nothing and talks to nobody; where a function takes a semaphore, a name does as
 * well.
 *
 * @since 0.2.0
 */
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { Fiber } from "effect/Fiber"
import { dual } from "effect/Function"
import * as Option from "effect/Option"
import type { Pipeable } from "effect/Pipeable"
import * as Predicate from "effect/Predicate"
import * as Scope from "effect/Scope"
import type * as Types from "effect/Types"
import type { AcquireRequest, Restore } from "./internal/acquire/acquire.ts"
import { parsePeriod, parseWait } from "./internal/options/durations.ts"
import { guard, isClosed } from "./internal/hold/guard.ts"
import { permitIds, semaphoreChannel } from "./internal/store/keys.ts"
import { checkLeaseOf } from "./internal/locks/LockImpl.ts"
import type { LockClient } from "./internal/client/LockClient.ts"
import { identityOf } from "./internal/hold/owner.ts"
import { ownerText } from "./internal/report/ownerText.ts"
import { checkPermits, maxPermits } from "./internal/options/permitCount.ts"
import {
  acquire,
  ask,
  type PermitHold,
  PermitSemaphoreImpl,
  permitSemaphoreOf,
  TypeId as internalTypeId
} from "./internal/locks/PermitSemaphoreImpl.ts"
import { release as releaseHold } from "./internal/hold/release.ts"
import { shown } from "./internal/report/shown.ts"
import { type Invalid, keysOf, run, use } from "./internal/locks/Synchronizer.ts"
import { traced } from "./internal/report/telemetry.ts"
import { type AcquireError, InvalidLockOptions, LockLost, type LockStoreError, type LockTimeout } from "./LockError.ts"
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
  /** Fails with `LockLost` when the permits are held no more, also after they were released. Asks nobody. */
  readonly ensureHeld: Effect.Effect<void, LockLost>
  /** How long the permits are surely still held without another renewal; zero when they are not. */
  readonly remaining: Effect.Effect<Duration.Duration>
  /** Waits until the permits are lost, then fails: for racing against your work. Never ends for those that are released. */
  readonly awaitLost: Effect.Effect<never, LockLost>
  /**
   * Extends the lease to `leaseTime` from now (default: the watchdog's lease, 30 seconds), unless it runs longer anyway.
   * Only permits with a fixed `leaseTime` need it.
   */
  readonly renew: (leaseTime?: Duration.Input) => Effect.Effect<void, LockLost | LockStoreError | InvalidLockOptions>
  /**
   * Gives the permits back early; the scope's finalizer then has nothing left to do. Safe to call again. Fails with `LockLost`
   * when they turned out to be held no more, with `LockStoreError` when Redis could not be told within the release timeout:
   * the attempts then go on in the background until the lease is over.
   */
  readonly release: Effect.Effect<void, LockLost | LockStoreError>
}

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
  /**
   * A fixed lease: the permits go back to the semaphore when it has run out, and are never renewed. Default: a lease of 30
   * seconds (`watchdogLeaseTime`), renewed every third of it until released.
   */
  readonly leaseTime?: Duration.Input | undefined
}

/**
 * How to acquire for a scope.
 *
 * @category options
 * @since 0.2.0
 */
export interface ScopedOptions extends AcquireOptions {
  /** How many permits, all or none; from 1 to 10000. Default: 1. */
  readonly permits?: number | undefined
}

/**
 * A semaphore. With `permits` it begins with so many as soon as somebody uses it and it does not exist; without, it has none
 * until {@link trySetPermits}, {@link setPermits} or {@link addPermits} gives it some, here or in Java.
 *
 * Never more permits than there are in all are held at once, by the server's clock. The name follows the rules of
 * `Lock.make`; `permits` is a whole number from 1 to 2147483647. What is wrong with them is reported when the semaphore is
 * used, before any command is sent. A semaphore that exists already keeps the number it has, also after a deployment with another
 * one: to change it, {@link setPermits}. A client that is denied permits logs one warning where the two differ.
 *
 * The counter stays in Redis until somebody deletes it: see docs/memory.md.
 *
 * **When not to use**
 *
 * With one permit: a lock also has a fencing token. Within one process: Effect's own `Semaphore`.
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
    return new PermitSemaphoreImpl(name, permits, service as LockClient, invalid)
  }
)

/** What can be asked for in one command. */
const mostAtOnce = 10_000

/** What an acquisition needs to know, or why it cannot be. */
const acquisitionOf = (
  impl: PermitSemaphoreImpl<unknown>,
  fiber: Fiber<unknown, unknown>,
  permits: number,
  options: AcquireOptions | undefined
): AcquireRequest | Invalid => {
  const client = impl.clientOf(fiber)
  if ("_tag" in client) return client
  const invalid =
    checkPermits("permits", permits, 1) ??
    (permits > mostAtOnce
      ? new InvalidLockOptions({ option: "permits", problem: `it is more than ${mostAtOnce} at once` })
      : undefined)
  if (invalid !== undefined) return invalid
  const waitMillis =
    options?.waitTime === undefined ? Number.POSITIVE_INFINITY : parseWait("waitTime", options.waitTime)
  if (typeof waitMillis !== "number") return waitMillis
  const leaseMillis = options?.leaseTime === undefined ? undefined : parsePeriod("leaseTime", options.leaseTime)
  if (leaseMillis !== undefined && typeof leaseMillis !== "number") return leaseMillis
  const shortLease = checkLeaseOf(client, leaseMillis)
  if (shortLease !== undefined) return shortLease
  const keys = keysOf(impl, client)
  if ("_tag" in keys) return keys
  return {
    client,
    kind: impl.kind,
    name: impl.name,
    keys,
    identity: identityOf(fiber, undefined),
    waitMillis,
    leaseMillis
  }
}

/** Acquires and goes on with `f`. */
const acquireWith = <R, A, E, R2>(
  semaphore: PermitSemaphore<R> | string,
  permits: number,
  options: AcquireOptions | undefined,
  f: (hold: PermitHold, restore: Restore) => Effect.Effect<A, E, R2>
): Effect.Effect<A, E | AcquireError, R | R2> =>
  Effect.withFiber<A, E | AcquireError, R2>((fiber) => {
    const acquisition = acquisitionOf(permitSemaphoreOf(semaphore), fiber, permits, options)
    if ("_tag" in acquisition) return Effect.fail(acquisition)
    return Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(
        traced(
          fiber,
          "PermitSemaphore.acquire",
          { name: acquisition.name, label: acquisition.kind.name },
          acquire(acquisition, permits, restore)
        ),
        (hold): Effect.Effect<A, E | LockTimeout | LockStoreError, R2> => f(hold, restore)
      )
    )
  }) as Effect.Effect<A, E | AcquireError, R | R2>

/** Asks once; `f` is for what was granted. */
const tryWith = <R, A, E, R2>(
  semaphore: PermitSemaphore<R> | string,
  permits: number,
  options: Pick<AcquireOptions, "leaseTime"> | undefined,
  f: (hold: PermitHold, restore: Restore) => Effect.Effect<A, E, R2>
): Effect.Effect<Option.Option<A>, E | LockStoreError | Invalid, R | R2> =>
  Effect.withFiber<Option.Option<A>, E | LockStoreError | Invalid, R2>((fiber) => {
    const asking = { leaseTime: options?.leaseTime, waitTime: 0 }
    const acquisition = acquisitionOf(permitSemaphoreOf(semaphore), fiber, permits, asking)
    if ("_tag" in acquisition) return Effect.fail(acquisition)
    return Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(
        ask(acquisition, permits, restore, acquisition.client.now()),
        ({ granted }): Effect.Effect<Option.Option<A>, E | LockStoreError, R2> =>
          granted === undefined ? Effect.succeedNone : Effect.asSome(f(granted, restore))
      )
    )
  }) as Effect.Effect<Option.Option<A>, E | LockStoreError | Invalid, R | R2>

/** Keeps permits until the scope closes. */
const keep = (hold: PermitHold): Effect.Effect<Permit, never, Scope.Scope> =>
  Effect.withFiber((fiber) =>
    Effect.as(
      Scope.addFinalizer(
        Context.getUnsafe(fiber.context as Context.Context<Scope.Scope>, Scope.Scope),
        Effect.catchCause(releaseHold(hold), (problems) =>
          isClosed(problems)
            ? Effect.void
            : Effect.annotateLogs(
                Effect.logWarning("The scope of permits has closed, but giving them back went wrong.", problems),
                { semaphore: hold.name, ids: ownerText(hold.owner) }
              )
        )
      ),
      hold
    )
  )

/**
 * Acquires permits, one unless `permits` says otherwise, for as long as the scope is open.
 *
 * Waiters of one process are served first come, first served as far as their demands fit into what is free: one who wants
 * many permits does not keep others from those that are there, and can be passed by them again and again.
 *
 * Fails with `LockTimeout` when `waitTime` ran out, `LockStoreError` when Redis could not be asked (what may have been
 * acquired is undone), `InvalidLockName` and `InvalidLockOptions` before any command.
 *
 * **Gotchas**
 *
 * A loss does not interrupt you here: check `ensureHeld` between steps, race `awaitLost`, or use {@link withPermit}. Where
 * giving back goes wrong when the scope closes, that can only be logged; call `Permit.release` to have it as a value.
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
export const scoped = <R = RedisLock>(
  semaphore: PermitSemaphore<R> | string,
  options?: ScopedOptions
): Effect.Effect<Permit, AcquireError, R | Scope.Scope> => acquireWith(semaphore, options?.permits ?? 1, options, keep)

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
export const tryScoped = <R = RedisLock>(
  semaphore: PermitSemaphore<R> | string,
  options?: Omit<ScopedOptions, "waitTime">
): Effect.Effect<Option.Option<Permit>, LockStoreError | Invalid, R | Scope.Scope> =>
  tryWith(semaphore, options?.permits ?? 1, options, keep)

/**
 * Runs an effect with permits, and gives them back, however it ends.
 *
 * When the permits are lost the effect is interrupted and the whole fails with `LockLost`; so it does when Redis has them no
 * more when they are given back, even if the effect had succeeded. A failure of the effect itself wins over problems of
 * giving back. The effect runs in a fiber of its own: fibers that it forks with `Effect.forkChild` end with it.
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
  <R2 = RedisLock>(
    semaphore: PermitSemaphore<R2> | string,
    permits: number,
    options?: AcquireOptions
  ): <A, E, R>(self: Effect.Effect<A, E, R>) => Effect.Effect<A, E | AcquireError | LockLost, R | R2>
  <A, E, R, R2 = RedisLock>(
    self: Effect.Effect<A, E, R>,
    semaphore: PermitSemaphore<R2> | string,
    permits: number,
    options?: AcquireOptions
  ): Effect.Effect<A, E | AcquireError | LockLost, R | R2>
} = dual(
  (args) => Effect.isEffect(args[0]),
  <A, E, R, R2 = RedisLock>(
    self: Effect.Effect<A, E, R>,
    semaphore: PermitSemaphore<R2> | string,
    permits: number,
    options?: AcquireOptions
  ) => acquireWith(semaphore, permits, options, (hold, restore) => guard(hold, self, restore))
)

/**
 * {@link withPermits} with one.
 *
 * @category acquiring
 * @since 0.2.0
 */
export const withPermit: {
  <R2 = RedisLock>(
    semaphore: PermitSemaphore<R2> | string,
    options?: AcquireOptions
  ): <A, E, R>(self: Effect.Effect<A, E, R>) => Effect.Effect<A, E | AcquireError | LockLost, R | R2>
  <A, E, R, R2 = RedisLock>(
    self: Effect.Effect<A, E, R>,
    semaphore: PermitSemaphore<R2> | string,
    options?: AcquireOptions
  ): Effect.Effect<A, E | AcquireError | LockLost, R | R2>
} = dual(
  (args) => Effect.isEffect(args[0]),
  <A, E, R, R2 = RedisLock>(
    self: Effect.Effect<A, E, R>,
    semaphore: PermitSemaphore<R2> | string,
    options?: AcquireOptions
  ) => withPermits(self, semaphore, 1, options)
)

/**
 * Runs an effect with one permit if there is one at this moment, without waiting; otherwise as {@link withPermit}. `None` when
 * there is none.
 *
 * @category acquiring
 * @since 0.2.0
 */
export const withPermitIfAvailable: {
  <R2 = RedisLock>(
    semaphore: PermitSemaphore<R2> | string,
    options?: Pick<AcquireOptions, "leaseTime">
  ): <A, E, R>(
    self: Effect.Effect<A, E, R>
  ) => Effect.Effect<Option.Option<A>, E | LockStoreError | LockLost | Invalid, R | R2>
  <A, E, R, R2 = RedisLock>(
    self: Effect.Effect<A, E, R>,
    semaphore: PermitSemaphore<R2> | string,
    options?: Pick<AcquireOptions, "leaseTime">
  ): Effect.Effect<Option.Option<A>, E | LockStoreError | LockLost | Invalid, R | R2>
} = dual(
  (args) => Effect.isEffect(args[0]),
  <A, E, R, R2 = RedisLock>(
    self: Effect.Effect<A, E, R>,
    semaphore: PermitSemaphore<R2> | string,
    options?: Pick<AcquireOptions, "leaseTime">
  ) => tryWith(semaphore, 1, options, (hold, restore) => guard(hold, self, restore))
)

/** The keys of every operation on a semaphore: the counter, the ids, the channel. */
const keysAt = (key: string) => [key, permitIds(key), semaphoreChannel(key)]

const set = <R>(
  semaphore: PermitSemaphore<R> | string,
  permits: number,
  ifExists: boolean
): Effect.Effect<boolean, LockStoreError | Invalid, R> => {
  const impl = permitSemaphoreOf(semaphore)
  const invalid = checkPermits("permits", permits, 0)
  if (invalid !== undefined) return Effect.fail(impl.invalid ?? invalid)
  return use(impl, (client, key) =>
    Effect.map(
      run(client, impl.title, {
        operation: "permit_semaphore/set",
        keys: keysAt(key),
        args: [permits, ifExists ? 1 : 0, client.store.publish]
      }),
      (reply) => reply === 1
    )
  )
}

/**
 * Creates the semaphore with `permits` permits in all, from 0. `false`, and nothing changed, where it exists. Permits that
 * are still held although their semaphore was removed count towards `permits`, as in {@link setPermits}.
 *
 * Fails with `LockStoreError` when Redis could not be asked, `InvalidLockName` and `InvalidLockOptions` before any command.
 *
 * @category mutations
 * @since 0.2.0
 */
export const trySetPermits = <R = RedisLock>(
  semaphore: PermitSemaphore<R> | string,
  permits: number
): Effect.Effect<boolean, LockStoreError | Invalid, R> => set(semaphore, permits, false)

/**
 * Sets how many permits the semaphore has in all, held ones included, from 0; creates it where it does not exist.
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
export const setPermits = <R = RedisLock>(
  semaphore: PermitSemaphore<R> | string,
  permits: number
): Effect.Effect<void, LockStoreError | Invalid, R> => Effect.asVoid(set(semaphore, permits, true))

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
  semaphore: PermitSemaphore<R> | string,
  permits: number
): Effect.Effect<void, LockStoreError | Invalid, R> => {
  const impl = permitSemaphoreOf(semaphore)
  const invalid = checkPermits("permits", permits, -maxPermits)
  if (invalid !== undefined) return Effect.fail(impl.invalid ?? invalid)
  return use(impl, (client, key) =>
    Effect.asVoid(
      run(client, impl.title, {
        operation: "permit_semaphore/add",
        keys: keysAt(key),
        args: [impl.permits ?? "", permits, client.store.publish]
      })
    )
  )
}

const counted = <R>(
  semaphore: PermitSemaphore<R> | string,
  f: (available: number, held: number) => number
): Effect.Effect<number, LockStoreError | Invalid, R> => {
  const impl = permitSemaphoreOf(semaphore)
  return use(impl, (client, key) =>
    Effect.map(
      run(client, impl.title, { operation: "permit_semaphore/count", keys: keysAt(key), args: [client.store.publish] }),
      (reply) => {
        const [available, held] = reply as readonly [number | null, number]
        return f(available ?? (impl.permits === undefined ? 0 : impl.permits - held), held)
      }
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
  semaphore: PermitSemaphore<R> | string
): Effect.Effect<number, LockStoreError | Invalid, R> => counted(semaphore, (available) => available)

/**
 * How many permits are held at this moment, by anybody.
 *
 * Fails with `LockStoreError` when Redis could not be asked, `InvalidLockName` and `InvalidLockOptions` before any command.
 *
 * @category getters
 * @since 0.2.0
 */
export const acquiredPermits = <R = RedisLock>(
  semaphore: PermitSemaphore<R> | string
): Effect.Effect<number, LockStoreError | Invalid, R> => counted(semaphore, (_available, held) => held)

/**
 * How many permits there are in all, free and held.
 *
 * Fails with `LockStoreError` when Redis could not be asked, `InvalidLockName` and `InvalidLockOptions` before any command.
 *
 * @category getters
 * @since 0.2.0
 */
export const totalPermits = <R = RedisLock>(
  semaphore: PermitSemaphore<R> | string
): Effect.Effect<number, LockStoreError | Invalid, R> => counted(semaphore, (available, held) => available + held)

const problemOfIds = (ids: ReadonlyArray<unknown>): string | undefined => {
  if (!Array.isArray(ids)) return `${shown(ids)} is not an array of ids`
  if (ids.length > mostAtOnce) return `there are more than ${mostAtOnce}`
  const bad = ids.findIndex((id) => typeof id !== "string" || !/^[0-9a-f]{32}$/i.test(id))
  return bad === -1 ? undefined : `${shown(ids[bad])} is not an id of 32 hexadecimal digits`
}

/** Runs something with ids that came from elsewhere, as they stand in Redis. */
const withIds = <R, A, E>(
  semaphore: PermitSemaphore<R> | string,
  ids: ReadonlyArray<string>,
  f: (client: LockClient, key: string, ids: ReadonlyArray<string>, impl: PermitSemaphoreImpl<R>) => Effect.Effect<A, E>
): Effect.Effect<A, E | Invalid, R> => {
  const impl = permitSemaphoreOf(semaphore)
  const problem = problemOfIds(ids)
  if (problem !== undefined) {
    return Effect.fail(impl.invalid ?? new InvalidLockOptions({ option: "ids", problem }))
  }
  return use(impl, (client, key) => f(client, key, [...new Set(ids.map((id) => id.toLowerCase()))], impl))
}

/**
 * Gives back permits that are known by their ids, such as ids that a Java service has passed on: all of them, or none where
 * one is not held (unknown, given back already, or its lease has ended). `true` when they were given back.
 *
 * Fails with `LockStoreError` when Redis could not be asked, `InvalidLockName` and `InvalidLockOptions` before any command.
 *
 * @category mutations
 * @since 0.2.0
 */
export const tryRelease = <R = RedisLock>(
  semaphore: PermitSemaphore<R> | string,
  ids: ReadonlyArray<string>
): Effect.Effect<boolean, LockStoreError | Invalid, R> =>
  withIds(semaphore, ids, (client, key, ids, impl) =>
    ids.length === 0
      ? Effect.succeed(true)
      : Effect.map(
          run(client, impl.title, {
            operation: "permit_semaphore/try_release",
            keys: keysAt(key),
            args: [client.store.publish, ...ids]
          }),
          (reply) => reply === ids.length
        )
  )

/**
 * Gives back one permit that is known by its id; see {@link tryRelease}. Fails with `LockLost` where it is not held.
 *
 * @category mutations
 * @since 0.2.0
 */
export const release = <R = RedisLock>(
  semaphore: PermitSemaphore<R> | string,
  id: string
): Effect.Effect<void, LockLost | LockStoreError | Invalid, R> =>
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

/**
 * Gives a permit that is known by its id another lease, from now, longer or shorter; an infinite one never ends. `false`
 * where the permit is not held. What this process holds as a {@link Permit} is renewed by `Permit.renew`.
 *
 * Fails with `LockStoreError` when Redis could not be asked, `InvalidLockName` and `InvalidLockOptions` before any command.
 *
 * @category mutations
 * @since 0.2.0
 */
export const updateLeaseTime = <R = RedisLock>(
  semaphore: PermitSemaphore<R> | string,
  id: string,
  leaseTime: Duration.Input
): Effect.Effect<boolean, LockStoreError | Invalid, R> => {
  const isEndless = parseWait("leaseTime", leaseTime) === Number.POSITIVE_INFINITY
  const lease = isEndless ? -1 : parsePeriod("leaseTime", leaseTime)
  if (typeof lease !== "number") return Effect.fail(lease)
  return withIds(semaphore, [id], (client, key, ids, impl) =>
    Effect.map(
      run(client, impl.title, {
        operation: "permit_semaphore/update_lease",
        keys: [permitIds(key)],
        args: [ids[0]!, lease]
      }),
      (reply) => reply === 1
    )
  )
}

/**
 * How long the lease of a permit that is known by its id still runs, infinite where it never ends; `None` where the permit
 * is not held.
 *
 * Fails with `LockStoreError` when Redis could not be asked, `InvalidLockName` and `InvalidLockOptions` before any command.
 *
 * @category getters
 * @since 0.2.0
 */
export const leaseTime = <R = RedisLock>(
  semaphore: PermitSemaphore<R> | string,
  id: string
): Effect.Effect<Option.Option<Duration.Duration>, LockStoreError | Invalid, R> =>
  withIds(semaphore, [id], (client, key, ids, impl) =>
    Effect.map(
      run(client, impl.title, { operation: "permit_semaphore/lease", keys: [permitIds(key)], args: ids }),
      (reply) => {
        const left = reply as number
        return left === -2 ? Option.none() : Option.some(left === -1 ? Duration.infinity : Duration.millis(left))
      }
    )
  )
