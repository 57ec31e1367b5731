/**
 * Locks: exclusive and reentrant, held as resources of a `Scope` or around an effect.
 *
 * A lock is a value. Making one costs nothing and sends no command; the same functions work on every kind of lock. Every
 * function that takes a lock also accepts a name: `Lock.scoped("report")` is `Lock.scoped(Lock.make("report"))`.
 *
 * @since 0.1.0
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { dual } from "effect/Function"
import * as Option from "effect/Option"
import type { Pipeable } from "effect/Pipeable"
import * as Predicate from "effect/Predicate"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type * as Types from "effect/Types"
import type { AcquireOptions, OnlyOptions, TokenOf, TokenOptions } from "./AcquireOptions.ts"
import type { Holding, HoldingOf } from "./Holding.ts"
import * as Sections from "./internal/acquire/sections.ts"
import { clientIn } from "./internal/client/LockClient.ts"
import { CurrentOwner, Owner } from "./internal/hold/Lease.ts"
import { reentrant } from "./internal/kinds/kinds.ts"
import { TypeId } from "./internal/locks/AnyLock.ts"
import { lockOf, locks, makeLock, prepareLock, using } from "./internal/locks/LockImpl.ts"
import { listHeld, watchLocks } from "./internal/locks/looking.ts"
import { isDataFirst, isEffectFirst } from "./internal/options/acquireOptions.ts"
import {
  type CommandError,
  InvalidLockName,
  InvalidLockOptions,
  type LockLost,
  type LockStoreError,
  type LockTimeout,
  NotLockOwner,
  type TimeoutOf,
  type WaitTimeOf
} from "./LockError.ts"
import type { HolderState, LockChange, LockState } from "./LockState.ts"
import type { RedisLock } from "./RedisLock.ts"

/**
 * A lock of any kind. `R` is the services that it requires: {@link RedisLock}, or none once a service is bound with
 * {@link provide}. `E` is the additional failures of acquiring it, which not every lock has: `LockReentered` for a kind that
 * its holder cannot acquire again. `T` is the fencing token of its holdings, `undefined` for a lock without tokens.
 *
 * @category models
 * @since 0.1.0
 */
export interface Lock<out R = RedisLock, out E = never, out T = bigint> extends Pipeable {
  readonly [TypeId]: {
    readonly _R: Types.Covariant<R>
    readonly _E: Types.Covariant<E>
    readonly _T: Types.Covariant<T>
  }
  readonly name: string
}

/**
 * Whether a value is a lock of this library, of any kind.
 *
 * **When to use**
 *
 * To narrow an unknown value, or to tell a lock from its name where either is accepted.
 *
 * @category guards
 * @since 0.3.0
 */
export const isLock = (u: unknown): u is Lock<unknown, unknown, unknown> => Predicate.hasProperty(u, TypeId)

/**
 * A lock, or the name of one.
 *
 * @category type-level
 * @since 0.3.0
 */
export type LockOrName = Lock<unknown, unknown, unknown> | string

/**
 * The services that a lock requires; for a name, {@link RedisLock}.
 *
 * @category type-level
 * @since 0.2.0
 */
export type Services<L> = L extends Lock<infer R, unknown, unknown> ? R : RedisLock

/**
 * The additional failures of acquiring a lock, which not every lock has; for a name, none.
 *
 * @category type-level
 * @since 0.2.0
 */
export type Failures<L> = L extends Lock<unknown, infer E, unknown> ? E : never

/**
 * The type of the fencing token of a lock's holdings; for a name, `bigint`.
 *
 * @category type-level
 * @since 0.2.0
 */
export type Token<L> = L extends Lock<unknown, unknown, infer T> ? T : bigint

export type { AcquireOptions } from "./AcquireOptions.ts"

/**
 * Options of acquiring without waiting.
 *
 * @category options
 * @since 0.3.0
 */
export interface TryOptions extends Pick<AcquireOptions, "leaseTime" | "maxHold" | "minHold"> {}

/**
 * A reentrant lock like Redisson's `RLock`: exclusive among all owners of all processes. A release hands it to the process that has
 * waited longest; a process whose fibers wait may have it for several sections in a row (docs/contention.md).
 *
 * The name is any non-empty string of at most 1 KiB in UTF-8, well-formed and without NUL; with braces (`order:{42}`) the
 * part between them is the hash tag on a cluster. Names that share keys with another name are invalid as well: a name that
 * is only a tag (`{42}` and `42`), or that is itself a key (`redisson_lock_token:{42}`) or begins like one of ours
 * (`effect_redis_lock_`). An invalid name or option is reported when the lock is used, as `InvalidLockName` or
 * `InvalidLockOptions`, before any command is sent. `options` are defaults for every acquisition.
 *
 * **When not to use**
 *
 * As the only protection where two holders at once would cost money: a lock with a lease excludes others as long as clocks
 * and pauses behave, but it cannot stop a stalled process. Have the resource check `Holding.token` as well.
 *
 * @example
 * ```ts
 * import { Lock } from "effect-redis-lock"
 *
 * const ledger = Lock.make("ledger", { waitTime: "5 seconds" })
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = <WaitTime extends Duration.Input | undefined = undefined, Tokens extends "time" | "none" = "time">(
  name: string,
  options?: AcquireOptions<WaitTime> & TokenOptions<Tokens>
): Lock<RedisLock, TimeoutOf<WaitTime>, TokenOf<Tokens>> => makeLock(name, reentrant, options)

/**
 * Binds a lock to one service, so that it requires no other: for locks on several Redis servers in one program.
 *
 * @example
 * ```ts
 * import { Effect } from "effect"
 * import { Lock, RedisLock } from "effect-redis-lock"
 *
 * const bound = Effect.map(RedisLock.RedisLock, (service) => Lock.provide(Lock.make("ledger"), service))
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const provide: {
  (service: RedisLock["Service"]): <R, E, T>(lock: Lock<R, E, T>) => Lock<Exclude<R, RedisLock>, E, T>
  <R, E, T>(lock: Lock<R, E, T>, service: RedisLock["Service"]): Lock<Exclude<R, RedisLock>, E, T>
} = dual(2, <R, E, T>(lock: Lock<R, E, T>, service: RedisLock["Service"]): Lock<Exclude<R, RedisLock>, E, T> =>
  lockOf(lock).provide(service)
)

/**
 * Acquires a lock for as long as the scope is open.
 *
 * Re-enters a lock that the same fiber, the same scope or a surrounding {@link withLock} section holds already; for
 * re-entry across timeouts and forks without `withLock`, see {@link withOwner}.
 *
 * **When to use**
 *
 * To hold the lock across several effects, or to release it early.
 *
 * **Gotchas**
 *
 * A loss does not interrupt your code here: check `ensureHeld` between steps, race `awaitLost`, or use {@link withLock}.
 * When the scope closes, a failed release is only logged; call `Holding.release` to handle the failure. If the layer of the
 * client closes first, it releases the lock, and the holding is lost: `ClientClosed`.
 *
 * Fails with `LockTimeout` when `waitTime` ran out, `LockStoreError` when Redis could not be reached until then or refuses
 * permanently (a possible grant is rolled back), `InvalidLockName` and `InvalidLockOptions` before any command.
 *
 * @example
 * ```ts
 * import { Effect } from "effect"
 * import { Lock } from "effect-redis-lock"
 *
 * const program = Effect.scoped(Effect.gen(function*() {
 *   const holding = yield* Lock.scoped("ledger", { waitTime: "5 seconds" })
 *   yield* Effect.log(`holding it with token ${holding.token}`)
 * }))
 * ```
 *
 * @category acquiring
 * @since 0.1.0
 */
export const scoped: <
  Arg extends LockOrName | OnlyOptions<Arg, AcquireOptions>,
  WaitTime extends Duration.Input | undefined = undefined
>(
  lockOrOptions: Arg,
  options?: AcquireOptions<WaitTime>
) => [Arg] extends [LockOrName]
  ? Effect.Effect<
      HoldingOf<Token<Arg>>,
      TimeoutOf<WaitTime> | CommandError | Failures<Arg>,
      Services<Arg> | Scope.Scope
    >
  : <L extends LockOrName>(
      lock: L
    ) => Effect.Effect<
      HoldingOf<Token<L>>,
      TimeoutOf<WaitTimeOf<Arg>> | CommandError | Failures<L>,
      Services<L> | Scope.Scope
    > = dual(isDataFirst, (lock: LockOrName, options?: AcquireOptions) =>
  Sections.scoped(locks, prepareLock(lock, options))
)

/**
 * Tries once to acquire a lock, without waiting; otherwise like {@link scoped}. `None` when another owner holds it.
 *
 * @example
 * ```ts
 * import { Effect, Option } from "effect"
 * import { Lock } from "effect-redis-lock"
 *
 * const program = Effect.scoped(Effect.gen(function*() {
 *   const holding = yield* Lock.tryScoped("reindex")
 *   if (Option.isNone(holding)) return yield* Effect.log("another instance is reindexing at this moment")
 * }))
 * ```
 *
 * @category acquiring
 * @since 0.1.0
 */
export const tryScoped: <Arg extends LockOrName | OnlyOptions<Arg, TryOptions>>(
  lockOrOptions: Arg,
  options?: TryOptions
) => [Arg] extends [LockOrName]
  ? Effect.Effect<
      Option.Option<HoldingOf<Token<Arg>>>,
      CommandError | Exclude<Failures<Arg>, LockTimeout>,
      Services<Arg> | Scope.Scope
    >
  : <L extends LockOrName>(
      lock: L
    ) => Effect.Effect<
      Option.Option<HoldingOf<Token<L>>>,
      CommandError | Exclude<Failures<L>, LockTimeout>,
      Services<L> | Scope.Scope
    > = dual(isDataFirst, (lock: LockOrName, options?: TryOptions) =>
  Sections.tryScoped(locks, prepareLock(lock, options))
)

/**
 * Runs an effect under a lock.
 *
 * When the lock is lost, the effect is interrupted and the section fails with `LockLost`. The section also fails with
 * `LockLost` when the release finds that the lock is not ours, even if the effect had succeeded: a compromised section
 * never looks successful. The end of an inner section, one that has re-entered the lock, sends no command: a loss that is
 * not known by then is found at the end of the outermost one. A failure of the effect itself takes precedence over problems
 * of the release. Within the effect, in all its fibers, the lock can be re-entered, and {@link currentHolding} gives the token.
 *
 * The effect runs in a fiber of its own, so that a loss interrupts only this fiber. Fibers that it forks with
 * `Effect.forkChild` therefore end with the section: no work started under the lock outlives it. For work that must go on,
 * use `Effect.forkDetach`, or `Effect.forkIn` with a scope from outside.
 *
 * Fails with `LockTimeout` when `waitTime` ran out, `LockLost`, `LockStoreError` when the request to Redis failed or the
 * release could not be confirmed within the release timeout, `InvalidLockName` and `InvalidLockOptions` before any command.
 *
 * **Gotchas**
 *
 * JavaScript cannot interrupt a busy loop: a section that blocks the event loop is only stopped where it yields.
 *
 * @example
 * ```ts
 * import { Effect } from "effect"
 * import { Lock } from "effect-redis-lock"
 *
 * const deposit = Effect.log("read, add, write")
 *
 * const program = deposit.pipe(Lock.withLock("ledger", { waitTime: "5 seconds" }))
 * const same = Lock.withLock(deposit, "ledger", { waitTime: "5 seconds" })
 * ```
 *
 * @category acquiring
 * @since 0.1.0
 */
export const withLock: {
  <A, E, R, L extends LockOrName, WaitTime extends Duration.Input | undefined = undefined>(
    self: Effect.Effect<A, E, R>,
    lock: L,
    options?: AcquireOptions<WaitTime>
  ): Effect.Effect<A, E | TimeoutOf<WaitTime> | CommandError | LockLost | Failures<L>, R | Services<L>>
  <L extends LockOrName, WaitTime extends Duration.Input | undefined = undefined>(
    lock: L,
    options?: AcquireOptions<WaitTime>
  ): <A, E, R>(
    self: Effect.Effect<A, E, R>
  ) => Effect.Effect<A, E | TimeoutOf<WaitTime> | CommandError | LockLost | Failures<L>, R | Services<L>>
} = dual(isEffectFirst, <A, E, R>(self: Effect.Effect<A, E, R>, lock: LockOrName, options?: AcquireOptions) =>
  Sections.section(locks, prepareLock(lock, options), self)
)

/**
 * Runs an effect under a lock if the lock is free at this moment, without waiting; otherwise like {@link withLock}. `None`
 * when somebody else holds it.
 *
 * **When not to use**
 *
 * On its own, for a job that must run once per night or once per event. A lock excludes, it does not deduplicate: an
 * instance whose timer fires after another one has finished finds the lock free and runs the job again. Have the job record
 * that it was done, and check that record under the lock, as below.
 *
 * @example
 * ```ts
 * import { Effect } from "effect"
 * import { Lock } from "effect-redis-lock"
 *
 * // in your database: the last night that has a report; the report is written with its night in one transaction, which
 * // refuses a token that is lower than the last one
 * declare const lastNight: Effect.Effect<string>
 * declare const writeReport: (night: string, token: bigint) => Effect.Effect<void>
 *
 * const report = (night: string) => Effect.gen(function*() {
 *   if ((yield* lastNight) >= night) return yield* Effect.log("another instance has written it")
 *   const { token } = yield* Lock.currentHolding("nightly-report")
 *   yield* writeReport(night, token)
 * })
 *
 * const program = report("2026-11-22").pipe(Lock.withLockIfAvailable("nightly-report"))
 * ```
 *
 * Where a second run is merely a waste, let the lock outlast the work:
 *
 * @example
 * ```ts
 * import { Effect } from "effect"
 * import { Lock } from "effect-redis-lock"
 *
 * const refresh = Effect.log("refreshing the cache").pipe(
 *   Lock.withLockIfAvailable("refresh-cache", { minHold: "30 seconds" })
 * )
 * ```
 *
 * @category acquiring
 * @since 0.1.0
 */
export const withLockIfAvailable: {
  <A, E, R, L extends LockOrName>(
    self: Effect.Effect<A, E, R>,
    lock: L,
    options?: TryOptions
  ): Effect.Effect<Option.Option<A>, E | CommandError | LockLost | Exclude<Failures<L>, LockTimeout>, R | Services<L>>
  <L extends LockOrName>(
    lock: L,
    options?: TryOptions
  ): <A, E, R>(
    self: Effect.Effect<A, E, R>
  ) => Effect.Effect<Option.Option<A>, E | CommandError | LockLost | Exclude<Failures<L>, LockTimeout>, R | Services<L>>
} = dual(isEffectFirst, <A, E, R>(self: Effect.Effect<A, E, R>, lock: LockOrName, options?: TryOptions) =>
  Sections.trySection(locks, prepareLock(lock, options), self)
)

/**
 * Makes all fibers of the effect one owner, like a thread in Redisson: a lock that one of them acquires, the others
 * re-enter. Without it, only the same fiber and the same scope re-enter a lock from {@link scoped}.
 *
 * **When not to use**
 *
 * Around code whose parallel branches rely on a lock to keep each other out: one owner never waits for itself.
 *
 * Within a section whose lock the effect acquires again: its owner is not the section's, so it waits for the section to
 * end.
 *
 * @example
 * ```ts
 * import { Effect } from "effect"
 * import { Lock } from "effect-redis-lock"
 *
 * const program = Effect.scoped(Effect.gen(function*() {
 *   yield* Lock.scoped("ledger")
 *   // another fiber by way of the timeout, yet the same owner
 *   yield* Effect.log("audit").pipe(Lock.withLock("ledger"), Effect.timeout("5 seconds"))
 * })).pipe(Lock.withOwner)
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const withOwner = <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.suspend(() => Effect.provideService(self, CurrentOwner, new Owner({})))

/**
 * Turns `InvalidLockName` and `InvalidLockOptions` into defects: for locks whose name and options are written in the
 * program, where an invalid one is a bug that no caller can handle. Works with the functions of semaphores and latches,
 * too.
 *
 * **When not to use**
 *
 * Where a name or an option comes from outside the program: a user, a request, a configuration.
 *
 * **Gotchas**
 *
 * After `withLock` it also applies to failures of the section itself.
 *
 * @example
 * ```ts
 * import { Effect } from "effect"
 * import { Lock } from "effect-redis-lock"
 *
 * // fails with LockStoreError or LockLost
 * const program = Effect.log("only one of us").pipe(Lock.withLock("report"), Lock.orDieIfInvalid)
 * ```
 *
 * @category combinators
 * @since 0.3.0
 */
export const orDieIfInvalid = <A, E, R>(
  self: Effect.Effect<A, E, R>
): Effect.Effect<A, Exclude<E, InvalidLockName | InvalidLockOptions>, R> =>
  Effect.catchIf(
    self,
    (error: E): boolean => error instanceof InvalidLockName || error instanceof InvalidLockOptions,
    Effect.die
  ) as Effect.Effect<A, Exclude<E, InvalidLockName | InvalidLockOptions>, R>

/**
 * The holding of this lock that the running code has: inside {@link withLock}, that of the section. Fails with `LockLost` in a
 * section that has lost the lock, with `NotLockOwner` if there is no such holding, and with `InvalidLockName` and
 * `InvalidLockOptions` as acquiring does. A holding of {@link scoped} that was lost counts as none: its own `ensureHeld` reports
 * the loss. Sends no command.
 *
 * @example
 * ```ts
 * import { Effect } from "effect"
 * import { Lock } from "effect-redis-lock"
 *
 * const program = Effect.gen(function*() {
 *   const { token } = yield* Lock.currentHolding("ledger")
 *   yield* Effect.log(`write with token ${token}`)
 * }).pipe(Lock.withLock("ledger"))
 * ```
 *
 * @category getters
 * @since 0.1.0
 */
export const currentHolding = <L extends LockOrName>(
  lock: L
): Effect.Effect<HoldingOf<Token<L>>, NotLockOwner | LockLost | InvalidLockName | InvalidLockOptions, Services<L>> =>
  using(lock, (impl) =>
    Effect.flatMap(impl.holding, (held): Effect.Effect<HoldingOf<Token<L>>, NotLockOwner> =>
      held === undefined
        ? Effect.fail(new NotLockOwner({ lock: impl.name }))
        : Effect.succeed(held as Holding<any> as HoldingOf<Token<L>>)
    )
  )

/**
 * Everything that Redis knows at this moment about a lock, or about whatever lies under a name: the kind, the holders and their
 * leases, with the labels of their clients, the last token, the waiters as far as Redis knows them, and the count of a semaphore or
 * latch. It only reads. Of one side of a read-write lock it is the whole lock, and each holder has its `mode`; a `MultiLock` is held when all
 * of its members are. On a quorum it is the lock that a majority agrees on, without waiters.
 *
 * Fails with `LockStoreError` when the request to Redis failed, with `InvalidLockName` and `InvalidLockOptions` before any command.
 *
 * **When to use**
 *
 * As an operator, to see who holds a lock and who waits for it. The keys of all kinds are read: the driver's README has the permissions.
 *
 * **When not to use**
 *
 * To decide whether to go on: the answer may be outdated when you see it. In a program that knows the kind, {@link isLocked} and the
 * getters of the other modules cost less, and fail where something else lies under the name.
 *
 * @example
 * ```ts
 * import { Effect } from "effect"
 * import { Lock } from "effect-redis-lock"
 *
 * const program = Effect.gen(function*() {
 *   const { holders, kind, waiters } = yield* Lock.inspect("ledger")
 *   yield* Effect.log(`${kind}, ${holders.length} holders, ${waiters.length} waiters`)
 * })
 * ```
 *
 * @category getters
 * @since 0.1.0
 */
export const inspect = <L extends LockOrName>(lock: L): Effect.Effect<LockState, CommandError, Services<L>> =>
  using(lock, (impl) => impl.inspect)

/**
 * Whether anybody, in any process, holds the lock at this moment; each side of a read-write lock sees its own holders. The answer may be
 * outdated when you see it: to act on it, acquire the lock.
 *
 * Fails with `LockStoreError` when the request to Redis failed or another kind lies under the name (`WrongType`), with `InvalidLockName` and `InvalidLockOptions` before any command.
 *
 * @category getters
 * @since 0.1.0
 */
export const isLocked = <L extends LockOrName>(lock: L): Effect.Effect<boolean, CommandError, Services<L>> =>
  using(lock, (impl) => Effect.map(impl.holders, ({ length }) => length > 0))

/**
 * How long the lease of the current holder, in any process, still runs: `None` when the lock is free, infinite if the key
 * has no expiry. A watchdog may renew it in the meantime.
 *
 * Fails with `LockStoreError` when the request to Redis failed, with `InvalidLockName` and `InvalidLockOptions` before any command.
 *
 * @category getters
 * @since 0.1.0
 */
export const remainingTime = <L extends LockOrName>(
  lock: L
): Effect.Effect<Option.Option<Duration.Duration>, CommandError, Services<L>> =>
  using(lock, (impl) => Effect.map(impl.holders, remainingOf))

/** Of a `MultiLock` until the first member's lease ends. */
const remainingOf = (holders: ReadonlyArray<HolderState>): Option.Option<Duration.Duration> =>
  holders.length === 0
    ? Option.none()
    : Option.some(
        holders.map(({ remaining }) => remaining ?? Duration.infinity).reduce((one, other) => Duration.min(one, other))
      )

/**
 * How many times the current owner holds the lock, re-entries included; zero when it does not hold it, or its lease is over. Only this process
 * counts them, and no command is sent.
 *
 * Fails with `InvalidLockName` and `InvalidLockOptions`.
 *
 * @category getters
 * @since 0.1.0
 */
export const holdCount = <L extends LockOrName>(
  lock: L
): Effect.Effect<number, InvalidLockName | InvalidLockOptions, Services<L>> => using(lock, (impl) => impl.holdCount)

/**
 * Whether the running code is the holder of the lock, by the deadline of its holding. No command is sent.
 *
 * Fails with `InvalidLockName` and `InvalidLockOptions`.
 *
 * @category getters
 * @since 0.1.0
 */
export const isHeldByCurrentOwner = <L extends LockOrName>(
  lock: L
): Effect.Effect<boolean, InvalidLockName | InvalidLockOptions, Services<L>> =>
  Effect.map(holdCount(lock), (count) => count > 0)

/**
 * Releases the lock, whoever holds it, and wakes a waiter. Returns `false` if it was free. A holder in this client notices at once; so does
 * any other that has held the lock for two seconds, if the server reports the change to it (docs/guarantees.md). The rest notice when they
 * next renew. Until then two owners may believe that they hold the lock.
 *
 * With `owners` it frees the lock from these alone, in one step: `false` if none of them holds it any more; a later holder keeps it.
 *
 * Fails with `LockStoreError` when the request to Redis failed, with `InvalidLockName` and `InvalidLockOptions` before any command.
 * Leaves a key that is not a lock of this kind untouched: reason `WrongType`. A quorum keeps no fair locks: there it fails with
 * `InvalidLockOptions`, as acquiring them does.
 *
 * **When to use**
 *
 * As an operator, from a console.
 *
 * **When not to use**
 *
 * In programs, to get past a holder that takes too long: that holder keeps working until it notices. Give its section a
 * timeout instead.
 *
 * @example
 * ```ts
 * import { Effect } from "effect"
 * import { Lock } from "effect-redis-lock"
 *
 * // the client of a process that is known to be dead
 * const dead = "5a5e04f2-7f7c-4d53-a1a4-4e5b2d0d8c11"
 *
 * // takes it from an owner that was found dead, and never from its successor
 * const program = Effect.gen(function*() {
 *   const { holders } = yield* Lock.inspect("report")
 *   return yield* Lock.forceRelease("report", { owners: holders.map(({ owner }) => owner).filter((owner) => owner.startsWith(dead)) })
 * })
 * ```
 *
 * @category mutations
 * @since 0.1.0
 */
export const forceRelease = <L extends LockOrName>(
  lock: L,
  options?: {
    /** Free it from these owners only, as {@link inspect} shows them. Default: from its holders. */
    readonly owners?: ReadonlyArray<string> | undefined
  }
): Effect.Effect<boolean, CommandError, Services<L>> => using(lock, (impl) => impl.forceRelease(options?.owners))

/**
 * Everything that is held at this moment and whose name matches a Redis glob pattern (default: all): locks of every kind, and
 * semaphores with leased permits, each as {@link inspect} shows it. Found with SCAN, three times through all keys: once for
 * locks, and twice for permits. Locks that are acquired or released meanwhile may or may not be among them. Latches, and
 * semaphores without leases, are not, as they are just a number in Redis. A quorum keeps locks only.
 *
 * Fails with `LockStoreError` when the request to Redis failed, and with `InvalidLockOptions` for a pattern that is not a string, or longer
 * than a name may be.
 *
 * @example
 * ```ts
 * import { Effect, Stream } from "effect"
 * import { Lock } from "effect-redis-lock"
 *
 * const program = Lock.list("partner:*").pipe(
 *   Stream.runForEach(({ held, holders, kind, name }) => Effect.log(`${name} (${kind}): ${holders.length + held} holds`))
 * )
 * ```
 *
 * @category getters
 * @since 0.1.0
 */
export const list = (pattern = "*"): Stream.Stream<LockState, LockStoreError | InvalidLockOptions, RedisLock> =>
  Stream.unwrap(Effect.map(currentClient, (client) => listHeld(client, pattern)))

/** The client of the caller's service. */
const currentClient = Effect.map(Effect.context<RedisLock>(), clientIn)

/**
 * What happens to everything that {@link list} finds by a Redis glob pattern (default: all), locks and semaphores with leased
 * permits: first what is held, then each change. It polls once per `interval` (default: a second), so it misses what begins and
 * ends between two polls. Fails with `LockStoreError` when a poll fails, and with `InvalidLockOptions` for an invalid `interval`,
 * or a pattern as {@link list} does; otherwise it never ends.
 *
 * **When to use**
 *
 * To show an operator or a dashboard who holds what.
 *
 * **When not to use**
 *
 * To wait for a lock: acquire it. With many millions of keys, since each poll is three SCANs through all of them: take a longer
 * interval.
 *
 * @example
 * ```ts
 * import { Effect, Schedule, Stream } from "effect"
 * import { Lock } from "effect-redis-lock"
 *
 * const program = Lock.watch("report:*").pipe(
 *   // poll again after an outage of Redis
 *   Stream.retry(Schedule.spaced("1 second")),
 *   Stream.interruptWhen(Effect.sleep("3 seconds")),
 *   Stream.runForEach(({ _tag, state }) => Effect.log(`${_tag} ${state.name}`))
 * )
 * ```
 *
 * @category getters
 * @since 0.3.0
 */
export const watch = (
  pattern = "*",
  options?: {
    /** How often to poll Redis. Default: 1 second. */
    readonly interval?: Duration.Input | undefined
  }
): Stream.Stream<LockChange, LockStoreError | InvalidLockOptions, RedisLock> =>
  Stream.unwrap(
    Effect.map(currentClient, (client) => watchLocks(client, pattern, options?.interval ?? Duration.seconds(1)))
  )
