/**
 * Leader elections: of all the processes that campaign, one leads at a time.
 *
 * An election is a value: making one costs nothing and sends no command. The leader is the holder of the lock of the election's name, so
 * a leadership behaves like a lock: it is renewed while it lasts, losing it interrupts the work it guards, and it has a fencing token,
 * called its term.
 *
 * @since 0.3.0
 */
import * as Effect from "effect/Effect"
import { dual } from "effect/Function"
import type * as Option from "effect/Option"
import type { Pipeable } from "effect/Pipeable"
import * as Predicate from "effect/Predicate"
import type * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import type * as Types from "effect/Types"
import * as Sections from "./internal/acquire/sections.ts"
import { jsonText, type ValueSchema } from "./internal/coordination/jsonText.ts"
import type { HeldLeadership } from "./internal/coordination/Leadership.ts"
import {
  currentTerm,
  leaderChanges,
  LeaderElectionImpl,
  leaderOf,
  leaderships,
  makeElection,
  prepareCampaign,
  TypeId as internalTypeId
} from "./internal/coordination/LeaderElectionImpl.ts"
import { leadUntilEnd } from "./internal/coordination/whileLeader.ts"
import { isInvalid } from "./internal/options/invalid.ts"
import {
  type InvalidLockName,
  type InvalidLockOptions,
  type LockLost,
  type LockStoreError,
  NotLockOwner
} from "./LockError.ts"
import type { RedisLock } from "./RedisLock.ts"

/**
 * Marks the values of this module at run time; see {@link isLeaderElection}.
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
export type TypeId = "~effect-redis-lock/LeaderElection"

/**
 * An election. `A` is the type of the value that its leaders proclaim, `never` if they proclaim nothing. `R` is the services it requires:
 * {@link RedisLock}, or none once a service is bound with {@link provide}.
 *
 * @category models
 * @since 0.3.0
 */
export interface LeaderElection<in out A = never, out R = RedisLock> extends Pipeable {
  readonly [TypeId]: {
    readonly _A: Types.Invariant<A>
    readonly _R: Types.Covariant<R>
  }
  readonly name: string
}

/**
 * The leadership of one term, as seen by the leader. Like that of a `Holding`, its validity is computed at every check from a deadline on
 * the monotonic clock.
 *
 * @category models
 * @since 0.3.0
 */
export interface Leadership<in A = never> {
  /** The election's name. */
  readonly name: string
  /** `<client uuid>:<owner id>`, as others see the leader. */
  readonly owner: string
  /** The fencing token, higher than that of every earlier leader. Pass it to whatever you write to, and have it reject lower ones. */
  readonly term: bigint
  /** Whether this process still leads. Sends no command. */
  readonly isLeading: Effect.Effect<boolean>
  /** Fails with `LockLost` once this process no longer leads, including after it has resigned. Sends no command. */
  readonly ensureLeading: Effect.Effect<void, LockLost>
  /** Waits until the leadership is lost, then fails. After resigning it never completes. */
  readonly awaitLost: Effect.Effect<never, LockLost>
  /**
   * Replaces the value that every process can read. Redis accepts it only from the current leader. Transient failures are retried for as long
   * as the leadership lasts.
   */
  readonly proclaim: (value: A) => Effect.Effect<void, LockLost | LockStoreError | Schema.SchemaError>
  /** Hands over immediately; closing the scope then does nothing more. Safe to call again. */
  readonly resign: Effect.Effect<void, LockLost | LockStoreError>
}

/**
 * The current leader, as every process sees it.
 *
 * @category models
 * @since 0.3.0
 */
export interface Leader<out A = never> {
  /** `<client uuid>:<owner id>`. */
  readonly owner: string
  /** The fencing token of its leadership. */
  readonly term: bigint
  /** The value it proclaimed; `None` if there is none, or if the Schema of this election cannot decode it, which is logged as a warning. */
  readonly value: Option.Option<A>
}

/**
 * Whether a value is an election of this library.
 *
 * **When to use**
 *
 * To narrow an unknown value.
 *
 * @category guards
 * @since 0.3.0
 */
export const isLeaderElection = (u: unknown): u is LeaderElection<unknown, unknown> => Predicate.hasProperty(u, TypeId)

/**
 * Options of {@link make}.
 *
 * @category options
 * @since 0.3.0
 */
export interface LeaderElectionOptions<in out A = never> {
  /** The value that leaders proclaim, such as an address. It is stored as JSON. Default: none. */
  readonly value?: Schema.Codec<A, unknown> | undefined
  /**
   * Whether candidates are elected in the order in which they started to campaign, so that one that resigns goes to the back of the queue.
   * Default: true, except on a quorum of servers, which keeps no order.
   */
  readonly fair?: boolean | undefined
}

/**
 * An election under a name. The leader holds the lock of that name: `Lock.inspect(name)` shows it, and while somebody else holds that lock
 * nobody is elected. The name follows the rules of `Lock.make`; an invalid one is reported when the election is used.
 *
 * **When to use**
 *
 * When one process of several does something for as long as it lives: a scheduler, the consumer of a partition, a primary whose address
 * the others need.
 *
 * **When not to use**
 *
 * For a short piece of work that any process may do, take a `Lock`. For work that should happen only once, use `RunOnce`.
 *
 * @example
 * ```ts
 * import { Schema } from "effect"
 * import { LeaderElection } from "effect-redis-lock"
 *
 * const primary = LeaderElection.make("primary", { value: Schema.Struct({ host: Schema.String, port: Schema.Number }) })
 * ```
 *
 * @category constructors
 * @since 0.3.0
 */
export const make = <A = never>(name: string, options?: LeaderElectionOptions<A>): LeaderElection<A> =>
  makeElection<A, RedisLock>(
    name,
    jsonText((options?.value ?? Schema.Never) as ValueSchema<A>),
    options?.fair !== false
  )

/**
 * Binds an election to one service, so that it no longer requires one.
 *
 * @category combinators
 * @since 0.3.0
 */
export const provide: {
  (service: RedisLock["Service"]): <A, R>(election: LeaderElection<A, R>) => LeaderElection<A, Exclude<R, RedisLock>>
  <A, R>(election: LeaderElection<A, R>, service: RedisLock["Service"]): LeaderElection<A, Exclude<R, RedisLock>>
} = dual(2, <A, R>(election: LeaderElection<A, R>, service: RedisLock["Service"]) => implOf(election).provide(service))

const implOf = <A, R>(election: LeaderElection<A, R>): LeaderElectionImpl<A, R> =>
  election as unknown as LeaderElectionImpl<A, R>

/**
 * Options of {@link campaign}.
 *
 * @category options
 * @since 0.3.0
 */
export interface CampaignOptions<out A = never> {
  /** Proclaimed together with the election: nobody sees this leader without it. */
  readonly proclaim?: A | undefined
}

/**
 * Waits until elected, then leads for as long as the scope is open. Closing the scope resigns and hands over immediately.
 *
 * Every campaign is a separate candidate, even within one fiber: a leader that campaigns again waits for itself. Waiting survives
 * restarts, failovers and lost connections of Redis.
 *
 * **When to use**
 *
 * To do several things as the leader, to proclaim something new, or to resign early. For one effect: {@link whileLeader}.
 *
 * **Gotchas**
 *
 * Losing the leadership does not interrupt your code here: check `ensureLeading` between steps, or race your work with `awaitLost`.
 *
 * Fails with `LockStoreError` when Redis refuses permanently, `SchemaError` when the value cannot be encoded, `InvalidLockName` and
 * `InvalidLockOptions` before any command.
 *
 * @example
 * ```ts
 * import { Effect, Schema } from "effect"
 * import { LeaderElection } from "effect-redis-lock"
 *
 * const primary = LeaderElection.make("primary", { value: Schema.String })
 *
 * const program = Effect.scoped(Effect.gen(function*() {
 *   const leadership = yield* LeaderElection.campaign(primary, { proclaim: "10.0.0.7:8080" })
 *   yield* Effect.log(`leading with term ${leadership.term}`)
 *   yield* leadership.proclaim("10.0.0.7:8081")
 *   yield* leadership.ensureLeading
 *   yield* leadership.resign
 * }))
 * ```
 *
 * @category leading
 * @since 0.3.0
 */
export const campaign = <A, R>(
  election: LeaderElection<A, R>,
  options?: CampaignOptions<NoInfer<A>>
): Effect.Effect<
  Leadership<A>,
  LockStoreError | InvalidLockName | InvalidLockOptions | Schema.SchemaError,
  R | Scope.Scope
> => {
  const impl = implOf(election)
  return Effect.flatMap(textOf(impl, options), (text) =>
    Effect.map(Sections.scoped(leaderships, prepareCampaign(impl, text)), (held) => shownTo(impl, held))
  ) as Effect.Effect<Leadership<A>, LockStoreError | InvalidLockName | InvalidLockOptions | Schema.SchemaError, never>
}

const shownTo = <A>({ json }: LeaderElectionImpl<A, any>, held: HeldLeadership): Leadership<A> => ({
  name: held.name,
  owner: held.owner,
  term: held.term,
  isLeading: held.isLeading,
  ensureLeading: held.ensureLeading,
  awaitLost: held.awaitLost,
  proclaim: (value) => Effect.flatMap(json.encode(value), (text) => held.write(text)),
  resign: held.release
})

const textOf = <A>(
  { json }: LeaderElectionImpl<A, unknown>,
  options: CampaignOptions<A> | undefined
): Effect.Effect<string, Schema.SchemaError> =>
  options?.proclaim === undefined ? Effect.succeed("") : json.encode(options.proclaim)

/**
 * Options of {@link whileLeader}.
 *
 * @category options
 * @since 0.3.0
 */
export interface WhileLeaderOptions<out A = never> extends CampaignOptions<A> {
  /** When to campaign again after the effect has failed. Default: never; its failure is then the result. */
  readonly restart?: Schedule.Schedule<unknown> | undefined
}

/**
 * Campaigns, and runs an effect as the leader. Losing the leadership interrupts the effect and starts a new campaign, until the effect
 * ends by itself; so does an effect that fails with the `LockLost` of this election, as it noticed the loss first. However it ends, this process resigns first: after a failure another candidate gets its turn while this one waits for
 * its `restart`.
 *
 * **When to use**
 *
 * For something that exactly one process does all the time. As a `Layer`, use `Singleton.layer`.
 *
 * Fails as the effect does, with `LockStoreError` when Redis refuses permanently, `SchemaError` when the value cannot be encoded,
 * `InvalidLockName` and `InvalidLockOptions` before any command.
 *
 * @example
 * ```ts
 * import { Effect, Schedule } from "effect"
 * import { LeaderElection } from "effect-redis-lock"
 *
 * const scheduler = LeaderElection.make("scheduler")
 *
 * const program = Effect.log("scheduling").pipe(
 *   LeaderElection.whileLeader(scheduler, { restart: Schedule.spaced("10 seconds") })
 * )
 * ```
 *
 * @category leading
 * @since 0.3.0
 */
export const whileLeader: {
  <A, R>(
    election: LeaderElection<A, R>,
    options?: WhileLeaderOptions<NoInfer<A>>
  ): <B, E, R2>(
    self: Effect.Effect<B, E, R2>
  ) => Effect.Effect<B, E | LockStoreError | InvalidLockName | InvalidLockOptions | Schema.SchemaError, R | R2>
  <B, E, R2, A, R>(
    self: Effect.Effect<B, E, R2>,
    election: LeaderElection<A, R>,
    options?: WhileLeaderOptions<NoInfer<A>>
  ): Effect.Effect<B, E | LockStoreError | InvalidLockName | InvalidLockOptions | Schema.SchemaError, R | R2>
} = dual(
  (args) => Effect.isEffect(args[0]),
  <B, E, R2, A, R>(self: Effect.Effect<B, E, R2>, election: LeaderElection<A, R>, options?: WhileLeaderOptions<A>) => {
    const impl = implOf(election)
    return Effect.flatMap(textOf(impl, options), (text) =>
      leadUntilEnd(self, impl.name, prepareCampaign(impl, text), options?.restart)
    )
  }
)

/**
 * The leadership that {@link whileLeader} gave to the running code. Fails with `NotLockOwner` outside of it. Sends no command.
 *
 * Its `resign` does not interrupt the code, which goes on without leading: end the effect instead, or use {@link campaign}.
 *
 * @example
 * ```ts
 * import { Effect } from "effect"
 * import { LeaderElection } from "effect-redis-lock"
 *
 * const scheduler = LeaderElection.make("scheduler")
 *
 * const program = Effect.gen(function*() {
 *   const { term } = yield* LeaderElection.currentLeadership(scheduler)
 *   yield* Effect.log(`write with fencing token ${term}`)
 * }).pipe(LeaderElection.whileLeader(scheduler))
 * ```
 *
 * @category getters
 * @since 0.3.0
 */
export const currentLeadership = <A, R>(
  election: LeaderElection<A, R>
): Effect.Effect<Leadership<A>, NotLockOwner | InvalidLockName | InvalidLockOptions, R> =>
  Effect.withFiber<Leadership<A>, NotLockOwner | InvalidLockName | InvalidLockOptions, R>((fiber) => {
    const impl = implOf(election)
    const term = currentTerm(impl, fiber)
    if (term === undefined) return Effect.fail(new NotLockOwner({ lock: impl.name }))
    return isInvalid(term) ? Effect.fail(term) : Effect.succeed(shownTo(impl, term))
  })

/**
 * The current leader, its term and the value it proclaimed; `None` while nobody leads. The answer may be out of date by the time you use
 * it, so never rely on it for exclusion: that is what the term is for.
 *
 * Fails with `LockStoreError` when the request to Redis failed, with `InvalidLockName` and `InvalidLockOptions` before any command.
 *
 * @example
 * ```ts
 * import { Effect, Option, Schema } from "effect"
 * import { LeaderElection } from "effect-redis-lock"
 *
 * const primary = LeaderElection.make("primary", { value: Schema.String })
 *
 * const address = Effect.map(LeaderElection.leader(primary), Option.flatMap(({ value }) => value))
 * ```
 *
 * @category getters
 * @since 0.3.0
 */
export const leader = <A, R>(
  election: LeaderElection<A, R>
): Effect.Effect<Option.Option<Leader<A>>, LockStoreError | InvalidLockName | InvalidLockOptions, R> =>
  leaderOf(implOf(election) as LeaderElectionImpl<A, unknown>)

/**
 * The current leader, then every change: another leader, another value, nobody. It never repeats itself, never ends, and survives
 * restarts, failovers and lost connections of Redis.
 *
 * Changes arrive by pub/sub, and are also looked for once per `fallbackInterval` (1 second), which is how a crashed leader is missed once its
 * lease has expired. Several changes in quick succession may be seen as one.
 *
 * Fails with `LockStoreError` when Redis refuses permanently, with `InvalidLockName` and `InvalidLockOptions` before any command.
 *
 * @example
 * ```ts
 * import { Effect, Option, Stream } from "effect"
 * import { LeaderElection } from "effect-redis-lock"
 *
 * const scheduler = LeaderElection.make("scheduler")
 *
 * const program = LeaderElection.changes(scheduler).pipe(
 *   Stream.take(1),
 *   Stream.runForEach((leader) =>
 *     Effect.log(Option.match(leader, { onNone: () => "nobody leads", onSome: ({ term }) => `term ${term}` }))
 *   )
 * )
 * ```
 *
 * @category getters
 * @since 0.3.0
 */
export const changes = <A, R>(
  election: LeaderElection<A, R>
): Stream.Stream<Option.Option<Leader<A>>, LockStoreError | InvalidLockName | InvalidLockOptions, R> =>
  leaderChanges(implOf(election) as LeaderElectionImpl<A, unknown>)
