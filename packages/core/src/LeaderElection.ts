/**
 * Leader elections: of all the processes that campaign, one leads at a time.
 *
 * An election is a value: making one costs nothing and sends no command. The leader is the holder of the lock of the election's name, so
 * a leadership behaves like a lock: it is renewed while it lasts, losing it interrupts the work it guards, and it has a fencing token,
 * called its term.
 *
 * @since 0.3.0
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import type * as Exit from "effect/Exit"
import { dual, identity } from "effect/Function"
import * as Option from "effect/Option"
import * as Pipeable from "effect/Pipeable"
import * as Predicate from "effect/Predicate"
import type * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type * as Types from "effect/Types"
import * as FairLock from "./FairLock.ts"
import type { Holding } from "./Holding.ts"
import { giveUpCandidacy, scopedAsCandidate, withCandidate } from "./internal/coordination/candidate.ts"
import { type HolderRecord, recordOf, type RecordState } from "./internal/coordination/record.ts"
import { printsAs } from "./internal/report/shown.ts"
import * as Lock from "./Lock.ts"
import {
  type CommandError,
  type InvalidLockName,
  type InvalidLockOptions,
  LockLost,
  type LockStoreError,
  NotLockOwner
} from "./LockError.ts"
import type { RedisLock } from "./RedisLock.ts"

const TypeId = "~effect-redis-lock/LeaderElection"

/**
 * An election. `A` is the type of the value that its leaders proclaim, `never` if they proclaim nothing. `R` is the services it requires:
 * {@link RedisLock}, or none once a service is bound with {@link provide}.
 *
 * @category models
 * @since 0.3.0
 */
export interface LeaderElection<in out A = never, out R = RedisLock> extends Pipeable.Pipeable {
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
   * as the leadership lasts; refusals that may pass, such as `OutOfMemory`, for the length of a lease.
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
 * nobody is elected. Inside the leader's own work, `Lock.withLock(name)` re-enters it. The name follows the rules of `Lock.make`; an invalid
 * one is reported when the election is used.
 *
 * **When to use**
 *
 * When one process of several does something for as long as it lives: a scheduler, the consumer of a partition, a primary whose address
 * the others need.
 *
 * **When not to use**
 *
 * For a short piece of work that any process may do, take a `Lock`. For work that one process does for all, use
 * `RunOnce`.
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
  new Election(
    options?.fair === false ? Lock.make(name) : FairLock.make(name),
    Lock.make(name),
    Schema.fromJsonString(Schema.toCodecJson((options?.value ?? Schema.Never) as Schema.Codec<A, unknown>))
  )

class Election<A, R> extends Pipeable.Class implements LeaderElection<A, R> {
  declare readonly [TypeId]: LeaderElection<A, R>[typeof TypeId]
  readonly lock: Lock.Lock<R>
  /** Stands in for it on a quorum of servers, which keeps no order. */
  readonly onQuorum: Lock.Lock<R>
  readonly json: Schema.Codec<A, string>

  constructor(lock: Lock.Lock<R>, onQuorum: Lock.Lock<R>, json: Schema.Codec<A, string>) {
    super()
    this.lock = lock
    this.onQuorum = onQuorum
    this.json = json
  }

  get name(): string {
    return this.lock.name
  }

  /** The record in which leaders announce themselves. */
  get record() {
    return recordOf(this.lock, "leader")
  }
}

Object.defineProperty(Election.prototype, TypeId, { value: { _A: identity, _R: identity } })

printsAs(Election.prototype, ({ name }) => ({ _id: "effect-redis-lock/LeaderElection", name }))

const implOf = <A, R>(election: LeaderElection<A, R>): Election<A, R> => election as Election<A, R>

/**
 * Binds an election to one service, so that it no longer requires one.
 *
 * @category combinators
 * @since 0.3.0
 */
export const provide: {
  (service: RedisLock["Service"]): <A, R>(election: LeaderElection<A, R>) => LeaderElection<A, Exclude<R, RedisLock>>
  <A, R>(election: LeaderElection<A, R>, service: RedisLock["Service"]): LeaderElection<A, Exclude<R, RedisLock>>
} = dual(2, <A, R>(election: LeaderElection<A, R>, service: RedisLock["Service"]) => {
  const { json, lock, onQuorum } = implOf(election)
  return new Election(Lock.provide(lock, service), Lock.provide(onQuorum, service), json)
})

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
): Effect.Effect<Leadership<A>, CommandError | Schema.SchemaError, R | Scope.Scope> =>
  Effect.gen(function* () {
    const { announce, clear, lock } = yield* candidacy(election, options)
    // registered first, so run last: until the lock is released, its holder leads
    yield* Effect.addFinalizer(() => clear)
    const attempt = Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(restore(scopedAsCandidate(lock)), (holding) =>
        // nobody leads who could not announce it
        Effect.onError(restore(announce(holding)), () => giveUpCandidacy(holding))
      )
    )
    // a term that ended before it was announced does not count
    const elected = Effect.retry(attempt, { while: ({ _tag }) => _tag === "LockLost" })
    return leadershipOf(election, yield* Effect.catchTag(elected, "LockLost", Effect.die))
  })

/** What a candidate needs: its lock, and how it begins a term and clears the last one. */
const candidacy = <A, R>(election: LeaderElection<A, R>, options: CampaignOptions<A> | undefined) =>
  Effect.gen(function* () {
    const impl = implOf(election)
    const record = yield* impl.record
    const text = options?.proclaim === undefined ? "" : yield* Schema.encodeEffect(impl.json)(options.proclaim)
    let term: Term | undefined
    return {
      lock: record.isOnQuorum ? impl.onQuorum : impl.lock,
      announce: (holding: Holding) =>
        Effect.suspend(() => {
          const begun = (term = new Term(record, holding))
          return Effect.as(begun.write(text), begun)
        }),
      clear: Effect.suspend(() => term?.clear ?? Effect.void)
    }
  })

/** The leader's side of a term: the holding of the election's lock, and the record beside it. */
class Term {
  readonly record: HolderRecord
  readonly holding: Holding
  isOver = false
  #version = 0

  constructor(record: HolderRecord, holding: Holding) {
    this.record = record
    this.holding = holding
  }

  /** The text is empty for a leader that proclaims nothing. */
  write(value: string): Effect.Effect<void, LockLost | LockStoreError> {
    return Effect.suspend(() => this.record.write(this.holding, { value, version: ++this.#version }))
  }

  /** Ends it, and takes back what was written. */
  get clear(): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (this.isOver) return Effect.void
      this.isOver = true
      return this.record.clear(this.holding)
    })
  }
}

const leadershipOf = <A>(election: LeaderElection<A, unknown>, term: Term): Leadership<A> => {
  const { json } = implOf(election)
  const { awaitLost, ensureHeld, isHeld, name, owner, release, token } = term.holding
  return {
    name,
    owner,
    term: token,
    isLeading: isHeld,
    ensureLeading: ensureHeld,
    awaitLost,
    proclaim: (value) => Effect.flatMap(Schema.encodeEffect(json)(value), (text) => term.write(text)),
    resign: Effect.ensuring(release, term.clear)
  }
}

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
 * Campaigns, and runs an effect as the leader. Losing the leadership interrupts the effect and starts a new campaign. So does an
 * effect that fails with this election's own `LockLost`, because it noticed the loss first. Otherwise this ends when the effect
 * does. However it ends, this process resigns first: after a failure another candidate gets its turn while this one waits for its
 * `restart`.
 *
 * An effect that has succeeded is not run again. If its resignation finds the leadership lost, somebody else may have led meanwhile, and
 * the result is `LockLost`, as in `Lock.withLock`; if Redis does not confirm the resignation, it is a `LockStoreError` whose
 * `workDone` is true. A caller that retries these failures runs the effect a second time.
 *
 * **When to use**
 *
 * For something that exactly one process does all the time. As a `Layer`, use `Singleton.layer`.
 *
 * Fails as the effect does, as described above after it has succeeded, with `LockStoreError` when Redis refuses permanently, `SchemaError`
 * when the value cannot be encoded, `InvalidLockName` and `InvalidLockOptions` before any command.
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
  ) => Effect.Effect<B, E | LockLost | CommandError | Schema.SchemaError, R | R2>
  <B, E, R2, A, R>(
    self: Effect.Effect<B, E, R2>,
    election: LeaderElection<A, R>,
    options?: WhileLeaderOptions<NoInfer<A>>
  ): Effect.Effect<B, E | LockLost | CommandError | Schema.SchemaError, R | R2>
} = dual(
  (args) => Effect.isEffect(args[0]),
  <B, E, R2, A, R>(self: Effect.Effect<B, E, R2>, election: LeaderElection<A, R>, options?: WhileLeaderOptions<A>) =>
    Effect.flatMap(candidacy(election, options), ({ announce, clear, lock }) => {
      const { name } = election
      /** How the effect has ended in this term, if it has. */
      let exit: Exit.Exit<B, E> | undefined
      const work = Effect.onExit(self, (ended) => Effect.sync(() => (exit = ended)))
      const led = withCandidate(lock, (holding) =>
        Effect.flatMap(announce(holding), (term) =>
          work.pipe(
            Effect.updateService(CurrentTerms, (terms) => [term, ...terms.filter(({ isOver }) => !isOver)]),
            Effect.annotateLogs({ election: name })
          )
        )
      )
      const lead = Effect.suspend(() => {
        exit = undefined
        return Effect.ensuring(led, clear)
      })
      const hasFailed = () => exit?._tag === "Failure" && !Cause.hasInterruptsOnly(exit.cause)
      const untilEnd = Effect.retry(Effect.sandbox(lead), {
        // the effect may notice the loss before it is interrupted, and only the release where it has succeeded
        while: (cause) => exit?._tag !== "Success" && isLossOf(name, cause)
      })
      const restart = options?.restart
      return Effect.catch(
        restart === undefined ? untilEnd : Effect.retry(untilEnd, { while: hasFailed, schedule: restart }),
        (cause) => Effect.failCause(cause as Cause.Cause<E | LockLost | CommandError>)
      )
    })
)

const isLossOf = (name: string, { reasons }: Cause.Cause<unknown>): boolean =>
  reasons.some((reason) => reason._tag === "Fail" && reason.error instanceof LockLost && reason.error.lock === name)

/** The terms under which the running code leads, innermost first. */
const CurrentTerms = Context.Reference<ReadonlyArray<Term>>("effect-redis-lock/CurrentTerms", {
  defaultValue: () => []
})

/**
 * The leadership that {@link whileLeader} gave to the running code. Fails with `NotLockOwner` outside of it, also
 * under {@link campaign}, whose own result is the leadership. Sends no command.
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
  Effect.gen(function* () {
    const record = yield* implOf(election).record
    const term = (yield* CurrentTerms).find((term) => Equal.equals(term.record, record))
    return term === undefined
      ? yield* new NotLockOwner({ lock: election.name, isElection: true })
      : leadershipOf(election, term)
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
): Effect.Effect<Option.Option<Leader<A>>, CommandError, R> =>
  Effect.gen(function* () {
    const { read } = yield* implOf(election).record
    return yield* leaderIn(election, yield* read)
  })

/** The leader is the holder of the lock, once it has announced its term. */
const leaderIn = <A>(
  election: LeaderElection<A, unknown>,
  state: RecordState
): Effect.Effect<Option.Option<Leader<A>>> => {
  if (!isAnnounced(state)) return Effect.succeedNone
  const { owner, token: term, value: text } = state.record
  const value = text === "" ? Effect.succeedNone : Effect.asSome(Schema.decodeEffect(implOf(election).json)(text))
  return value.pipe(
    Effect.catch((error) =>
      Effect.as(
        Effect.logWarning("The leader has proclaimed a value that this process's Schema cannot decode.", error),
        Option.none<A>()
      )
    ),
    Effect.annotateLogs({ election: election.name }),
    Effect.map((value) => Option.some({ owner, term, value }))
  )
}

const isAnnounced = (state: RecordState): state is RecordState & { readonly record: object } =>
  state.record !== undefined && state.record.owner === state.holder

/**
 * The current leader, then every change: another leader, another value, nobody. It never repeats itself, never ends, and survives
 * restarts, failovers and lost connections of Redis.
 *
 * Changes arrive by pub/sub; in case one is lost, it also polls once per `fallbackInterval` (1 second), which is how it notices
 * that a crashed leader's lease has expired. Several changes in quick succession may be seen as one.
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
): Stream.Stream<Option.Option<Leader<A>>, CommandError, R> =>
  Stream.unwrap(Effect.map(implOf(election).record, ({ looks }) => looks)).pipe(
    Stream.changesWith((before, now) => signOf(before) === signOf(now)),
    Stream.mapEffect((state) => leaderIn(election, state))
  )

/** While this stays the same, nothing has changed. */
const signOf = (state: RecordState): string =>
  isAnnounced(state) ? `${state.record.owner} ${state.record.version}` : ""
