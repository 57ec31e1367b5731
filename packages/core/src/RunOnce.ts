/**
 * Work that many callers share: one of them does it, and all receive its result. It is done again only if that result is lost (at least
 * once).
 *
 * A `RunOnce` is a value: a name and the Schema of its result. Making one costs nothing and sends no command.
 *
 * @since 0.3.0
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { dual, identity } from "effect/Function"
import * as Option from "effect/Option"
import * as Pipeable from "effect/Pipeable"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import type * as Types from "effect/Types"
import { afterWork, holdingOf, resultOf } from "./internal/coordination/record.ts"
import { printsAs } from "./internal/report/shown.ts"
import { reconnecting } from "./internal/time/clock.ts"
import * as Lock from "./Lock.ts"
import { type CommandError, LockLost, type LockReentered, LockStoreError } from "./LockError.ts"
import * as NonReentrantLock from "./NonReentrantLock.ts"
import type { RedisLock } from "./RedisLock.ts"

const TypeId = "~effect-redis-lock/RunOnce"

/**
 * Work whose callers share one result, of type `A`. `R` is the services it requires: {@link RedisLock}, or none once a service is bound
 * with {@link provide}.
 *
 * @category models
 * @since 0.3.0
 */
export interface RunOnce<in out A, out R = RedisLock> extends Pipeable.Pipeable {
  readonly [TypeId]: {
    readonly _A: Types.Invariant<A>
    readonly _R: Types.Covariant<R>
  }
  readonly name: string
}

/**
 * Whether a value is a `RunOnce` of this library.
 *
 * **When to use**
 *
 * To narrow an unknown value.
 *
 * @category guards
 * @since 0.3.0
 */
export const isRunOnce = (u: unknown): u is RunOnce<unknown, unknown> => Predicate.hasProperty(u, TypeId)

/**
 * Options of {@link make}.
 *
 * @category options
 * @since 0.3.0
 */
export interface RunOnceOptions<in out A> {
  /** How long the result is kept; the first caller after that does the work again. Greater than zero, and finite. */
  readonly timeToLive: Duration.Input
  /** The Schema of the result, which is stored as JSON. */
  readonly result: Schema.Codec<A, unknown>
}

/**
 * Work that is done once per `timeToLive`, and again if its result is lost: at least once, not at most once. The name follows the rules of
 * `Lock.make`, and the lock of that name is held while the work runs. An invalid name or option is reported by {@link run}, before any
 * command is sent.
 *
 * **When to use**
 *
 * As a cache: one process computes an entry while the others wait for it, instead of all of them computing it. For requests that are
 * sent more than once and may be carried out twice without harm: the name identifies a request, and the result is its response.
 *
 * **When not to use**
 *
 * When doing the work twice would cost money, and you can record that it was done in the same database transaction as the work: do that
 * instead. The result here is stored after the work, so a process that dies in between leaves no trace, and the next one does the work
 * again.
 *
 * @example
 * ```ts
 * import { Effect, Schema } from "effect"
 * import { RunOnce } from "effect-redis-lock"
 *
 * const rates = RunOnce.make("exchange-rates", {
 *   timeToLive: "10 minutes",
 *   result: Schema.Record(Schema.String, Schema.Number)
 * })
 *
 * const program = Effect.succeed({ EUR: 1, USD: 1.1 }).pipe(RunOnce.run(rates))
 * ```
 *
 * @category constructors
 * @since 0.3.0
 */
export const make = <A>(name: string, options: RunOnceOptions<A>): RunOnce<A> =>
  new Once(NonReentrantLock.make(name), Schema.fromJsonString(Schema.toCodecJson(options.result)), options.timeToLive)

class Once<A, R> extends Pipeable.Class implements RunOnce<A, R> {
  declare readonly [TypeId]: RunOnce<A, R>[typeof TypeId]
  readonly lock: Lock.Lock<R, LockReentered>
  readonly json: Schema.Codec<A, string>
  readonly timeToLive: Duration.Input

  constructor(lock: Lock.Lock<R, LockReentered>, json: Schema.Codec<A, string>, timeToLive: Duration.Input) {
    super()
    this.lock = lock
    this.json = json
    this.timeToLive = timeToLive
  }

  get name(): string {
    return this.lock.name
  }
}

Object.defineProperty(Once.prototype, TypeId, { value: { _A: identity, _R: identity } })

printsAs(Once.prototype, ({ name }) => ({ _id: "effect-redis-lock/RunOnce", name }))

/**
 * Binds it to one service, so that it no longer requires one.
 *
 * @category combinators
 * @since 0.3.0
 */
export const provide: {
  (service: RedisLock["Service"]): <A, R>(once: RunOnce<A, R>) => RunOnce<A, Exclude<R, RedisLock>>
  <A, R>(once: RunOnce<A, R>, service: RedisLock["Service"]): RunOnce<A, Exclude<R, RedisLock>>
} = dual(2, <A, R>(once: RunOnce<A, R>, service: RedisLock["Service"]): RunOnce<A, Exclude<R, RedisLock>> => {
  const { json, lock, timeToLive } = once as Once<A, R>
  return new Once(Lock.provide(lock, service), json, timeToLive)
})

/**
 * Returns the stored result if there is one. Otherwise the first caller runs its effect, and everyone who calls in the meantime, in any
 * process, waits for that result. Failures are not shared: only the caller whose effect failed sees the failure, and the next waiter
 * runs its own effect. A waiter also takes over when the process that runs the effect crashes, once its lease has expired.
 *
 * The effect runs while holding the lock of that name: losing the lock interrupts it, and `Lock.currentHolding(name)` has the fencing token.
 * Nesting a `RunOnce` in itself fails with `LockReentered`.
 *
 * **Gotchas**
 *
 * The work can happen twice: if the process dies before the result is stored, or if Redis loses its data. A `LockLost` means that the work
 * may have been done. A `LockStoreError` whose `workDone` is true means that it was done, but Redis has not confirmed that its result is
 * stored: while the lock is held, the write is retried after transient failures, and for the length of a lease, 30 seconds by default, after refusals
 * that may be temporary (`OutOfMemory`, `PersistenceFailed`, ...). Once it is stored, the caller gets the result: a release that then fails or finds the lock lost is only logged.
 *
 * Fails as the effect does, with `LockLost` when the lock was lost after the effect had begun, `LockStoreError` when Redis refuses a command permanently, or the
 * result for longer than a lease,
 * `SchemaError` when the result cannot be encoded or a stored one cannot be decoded, and with `InvalidLockName` and
 * `InvalidLockOptions` before any command.
 *
 * @example
 * ```ts
 * import { Effect, Schema } from "effect"
 * import { RunOnce } from "effect-redis-lock"
 *
 * const thumbnail = (image: string) =>
 *   Effect.as(Effect.log("rendering"), { url: `https://cdn.example.org/${image}.png` }).pipe(
 *     RunOnce.run(
 *       RunOnce.make(`thumbnail:${image}`, { timeToLive: "1 day", result: Schema.Struct({ url: Schema.String }) })
 *     )
 *   )
 *
 * const program = Effect.all([thumbnail("a1"), thumbnail("a1")], { concurrency: "unbounded" })
 * ```
 *
 * @category running
 * @since 0.3.0
 */
export const run: {
  <A, R>(
    once: RunOnce<A, R>
  ): <E, R2>(
    self: Effect.Effect<A, E, R2>
  ) => Effect.Effect<A, E | LockLost | LockReentered | CommandError | Schema.SchemaError, R | R2>
  <A, E, R2, R>(
    self: Effect.Effect<A, E, R2>,
    once: RunOnce<A, R>
  ): Effect.Effect<A, E | LockLost | LockReentered | CommandError | Schema.SchemaError, R | R2>
} = dual(2, <A, E, R2, R>(self: Effect.Effect<A, E, R2>, once: RunOnce<A, R>) =>
  Effect.gen(function* () {
    const { json, lock, timeToLive } = once as Once<A, R>
    const { lifeMillis, record } = yield* resultOf(lock, timeToLive)
    const decode = Schema.decodeEffect(json)
    const earlier = (yield* record.readPatiently).record
    if (earlier !== undefined) return yield* decode(earlier.value)

    let isRunning = false
    let stored = Option.none<A>()
    const underLock = Effect.gen(function* () {
      // the previous holder may have done the work
      const done = (yield* record.read).record
      if (done !== undefined) return (stored = Option.some(yield* decode(done.value)))
      isRunning = true
      const result = yield* self
      const value = yield* Schema.encodeEffect(json)(result)
      const written = record.write(yield* holdingOf(lock), { value, version: 1, lifeMillis })
      yield* Effect.mapError(written, afterWork)
      return (stored = Option.some(result))
    })
    /** The stored result, whatever becomes of the release. */
    const answerOf = <E2, R3>(section: Effect.Effect<unknown, E2, R3>) =>
      section.pipe(
        Effect.catchIf(
          () => Option.isSome(stored),
          (error) => Effect.logWarning("The result of a RunOnce is stored, but its lock's release went wrong.", error)
        ),
        Effect.annotateLogs({ lock: lock.name }),
        Effect.map(() => stored)
      )
    // before anything has run, a transient failure or a loss is no worse than a lock that somebody holds
    const isHarmless = (error: unknown) =>
      !isRunning && (error instanceof LockLost || (error instanceof LockStoreError && error.isTransient))
    // the lock is mostly free, and then nobody listens for the result
    const answer = yield* Effect.catchIf(
      answerOf(Lock.withLockIfAvailable(underLock, lock)),
      isHarmless,
      () => Effect.succeedNone
    )
    if (Option.isSome(answer)) return answer.value
    // the record that this fiber writes itself must not interrupt its section
    const byOthers = Effect.flatMap(record.written, ({ value }) => (isRunning ? Effect.never : decode(value)))
    const inTurn = Effect.retry(answerOf(Lock.withLock(underLock, lock)), { while: isHarmless, schedule: reconnecting })
    return Option.getOrThrow(yield* Effect.raceFirst(inTurn, Effect.asSome(byOthers)))
  })
)

/**
 * The stored result, if there is one. Runs nothing, and does not wait.
 *
 * Fails with `LockStoreError` when the request to Redis failed, `SchemaError` when the stored result cannot be decoded, and with
 * `InvalidLockName` and `InvalidLockOptions` before any command.
 *
 * @category getters
 * @since 0.3.0
 */
export const result = <A, R>(
  once: RunOnce<A, R>
): Effect.Effect<Option.Option<A>, CommandError | Schema.SchemaError, R> =>
  Effect.gen(function* () {
    const { json, lock, timeToLive } = once as Once<A, R>
    const { record } = yield* resultOf(lock, timeToLive)
    const found = (yield* record.read).record
    return found === undefined ? Option.none() : Option.some(yield* Schema.decodeEffect(json)(found.value))
  })
