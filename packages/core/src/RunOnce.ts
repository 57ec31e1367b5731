/**
 * Work that is done once however many ask for it, and whose result all of them get.
 *
 * A value of this module is a name and what its result looks like. Making one costs nothing and sends no command.
 *
 * @since 0.3.0
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { dual } from "effect/Function"
import type * as Option from "effect/Option"
import type { Pipeable } from "effect/Pipeable"
import * as Predicate from "effect/Predicate"
import type * as Schema from "effect/Schema"
import type * as Types from "effect/Types"
import { jsonText } from "./internal/coordination/jsonText.ts"
import {
  makeRunOnce,
  resultOf,
  runOnce,
  type RunOnceImpl,
  TypeId as internalTypeId
} from "./internal/coordination/RunOnceImpl.ts"
import type { InvalidLockName, InvalidLockOptions, LockLost, LockReentered, LockStoreError } from "./LockError.ts"
import type { RedisLock } from "./RedisLock.ts"

/**
 * Marks the values of this module at run time; see {@link isRunOnce}.
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
export type TypeId = "~effect-redis-lock/RunOnce"

/**
 * Work that is done once, with a result of type `A`. `R` is the services that it requires: {@link RedisLock}, or none once a service
 * is bound with {@link provide}.
 *
 * @category models
 * @since 0.3.0
 */
export interface RunOnce<in out A, out R = RedisLock> extends Pipeable {
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
  /** How long the result is kept; the work is done again when it is asked for later. Longer than zero, and finite. */
  readonly ttl: Duration.Input
  /** What the result looks like. It is kept as JSON. */
  readonly result: Schema.Codec<A, unknown>
}

/**
 * Work under a name that is done once in every `ttl`. The name follows the rules of `Lock.make`; it is also that of the lock under
 * which the work is done. An invalid name or option is reported when it is run, before any command is sent.
 *
 * **When to use**
 *
 * As an idempotency key: the name is that of a request, the result is its answer. As a cache whose entries are computed by one
 * process while the others wait, and not by all of them.
 *
 * **When not to use**
 *
 * Where doing it twice would cost money and the record that it was done can be written with the work: write it in the same
 * transaction, in your database. The result here is written after the work, so that a process which dies in between leaves no trace
 * of what it has done, and the next one does it again.
 *
 * @example
 * ```ts
 * import { Effect, Schema } from "effect"
 * import { RunOnce } from "effect-redis-lock"
 *
 * const rates = RunOnce.make("exchange-rates", {
 *   ttl: "10 minutes",
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
  makeRunOnce<A, RedisLock>(name, jsonText(options.result), options.ttl)

/**
 * Binds it to one service, so that it requires no other.
 *
 * @category combinators
 * @since 0.3.0
 */
export const provide: {
  (service: RedisLock["Service"]): <A, R>(once: RunOnce<A, R>) => RunOnce<A, Exclude<R, RedisLock>>
  <A, R>(once: RunOnce<A, R>, service: RedisLock["Service"]): RunOnce<A, Exclude<R, RedisLock>>
} = dual(2, <A, R>(once: RunOnce<A, R>, service: RedisLock["Service"]) => implOf(once).provide(service))

const implOf = <A, R>(once: RunOnce<A, R>): RunOnceImpl<A, R> => once as unknown as RunOnceImpl<A, R>

/**
 * Runs the effect, unless there is a result already: then that is the result. Whoever comes while it runs, in any process, waits and
 * gets its result. A failure is the caller's alone: it is not kept, and the next one that waits runs its own effect. So it is when the
 * process that runs it dies, once its lease is over.
 *
 * The effect runs under the lock of the name: losing it interrupts the effect, and `Lock.currentHolding(name)` has the fencing token.
 * Running it within itself fails with `LockReentered`.
 *
 * **Gotchas**
 *
 * The work may be done again although it was done: when the process dies before its result is written, or when Redis loses its data.
 * After `LockLost`, and after a `LockStoreError` that came when the effect had ended, it was done and its result was not kept.
 *
 * Fails as the effect does, with `LockLost` when the lock was lost meanwhile, `LockStoreError` when Redis refuses permanently,
 * `SchemaError` when the result cannot be encoded, or when what is kept under the name is no such result, `InvalidLockName` and
 * `InvalidLockOptions` before any command.
 *
 * @example
 * ```ts
 * import { Effect, Schema } from "effect"
 * import { RunOnce } from "effect-redis-lock"
 *
 * const charge = (request: string) =>
 *   Effect.as(Effect.log("charging the card"), { receipt: "r-17" }).pipe(
 *     RunOnce.run(
 *       RunOnce.make(`charge:${request}`, { ttl: "1 day", result: Schema.Struct({ receipt: Schema.String }) })
 *     )
 *   )
 *
 * const program = Effect.all([charge("a1"), charge("a1")], { concurrency: "unbounded" })
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
  ) => Effect.Effect<
    A,
    E | LockLost | LockReentered | LockStoreError | InvalidLockName | InvalidLockOptions | Schema.SchemaError,
    R | R2
  >
  <A, E, R2, R>(
    self: Effect.Effect<A, E, R2>,
    once: RunOnce<A, R>
  ): Effect.Effect<
    A,
    E | LockLost | LockReentered | LockStoreError | InvalidLockName | InvalidLockOptions | Schema.SchemaError,
    R | R2
  >
} = dual(2, <A, E, R2, R>(self: Effect.Effect<A, E, R2>, once: RunOnce<A, R>) =>
  runOnce(implOf(once) as RunOnceImpl<A, unknown>, self)
)

/**
 * The result, if there is one now. Neither runs anything nor waits.
 *
 * Fails with `LockStoreError` when the request to Redis failed, `SchemaError` when what is kept under the name is no such result,
 * `InvalidLockName` and `InvalidLockOptions` before any command.
 *
 * @category getters
 * @since 0.3.0
 */
export const result = <A, R>(
  once: RunOnce<A, R>
): Effect.Effect<Option.Option<A>, LockStoreError | InvalidLockName | InvalidLockOptions | Schema.SchemaError, R> =>
  resultOf(implOf(once) as RunOnceImpl<A, unknown>)
