/**
 * The record beside a lock: what its holder publishes, and every process can read. Who leads, the result of work that is done
 * once, and the last tick of a schedule are such records; Redis accepts them from the current holder alone.
 *
 * It looks behind the public modules, since a record takes the store, the keys and the subscriptions of the lock's client, which
 * users cannot have.
 */
import * as Deferred from "effect/Deferred"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import * as Hash from "effect/Hash"
import * as Queue from "effect/Queue"
import * as RcMap from "effect/RcMap"
import * as Schedule from "effect/Schedule"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Holding } from "../../Holding.ts"
import * as Lock from "../../Lock.ts"
import type { LockLost, LockStoreError } from "../../LockError.ts"
import type { LockClient, Resolved } from "../client/LockClient.ts"
import type { Hold } from "../hold/Hold.ts"
import type { LockImpl } from "../locks/LockImpl.ts"
import { type Invalid, isInvalid, parsePeriod } from "../options/acquireOptions.ts"
import { afterWork, isFinal } from "../store/failures.ts"
import type { LockKeys } from "../store/keys.ts"
import { clear, type LockRecord, read, type RecordState, type RecordUse, write } from "../store/operations/record.ts"
import { growing, jittered, reconnecting } from "../time/clock.ts"

export { afterWork, type RecordState }

/** The record of one use beside one lock. */
export class HolderRecord {
  readonly #client: LockClient
  readonly #keys: LockKeys
  readonly #use: RecordUse
  readonly #key: string

  constructor({ client, keys }: Resolved, use: RecordUse) {
    this.#client = client
    this.#keys = keys
    this.#use = use
    this.#key = keys.record(use)
  }

  /** Whether the lock is kept by a majority of servers, which keeps no order of waiters. */
  get isOnQuorum(): boolean {
    return this.#client.isQuorum
  }

  /** The longest pause between two looks, as messages are hints. */
  get #intervalMillis(): number {
    return this.#client.options.fallbackIntervalMillis
  }

  /** The record, and the lock's holder at the same moment. */
  get read(): Effect.Effect<RecordState, LockStoreError> {
    return Effect.suspend(() => this.#client.run(read(this.#keys, this.#use)))
  }

  /** {@link read}, again after pauses while failures are transient: no longer than an interval, and than others that reconnect. */
  get readPatiently(): Effect.Effect<RecordState, LockStoreError> {
    return Effect.retry(this.read, {
      while: ({ isTransient }) => isTransient,
      schedule: Schedule.min([reconnecting, Schedule.spaced(this.#intervalMillis)])
    })
  }

  /** Reads after every message and in every interval, whether anything has changed or not. It never ends. */
  get looks(): Stream.Stream<RecordState, LockStoreError> {
    const { subscriptions } = this.#client
    return Stream.unwrap(
      Effect.gen({ self: this }, function* () {
        // however many messages arrive during a read, one more read follows; the first waits for none
        const signals = yield* Queue.sliding<void>(1)
        Queue.offerUnsafe(signals, undefined)
        yield* Effect.acquireRelease(
          Effect.sync(() => subscriptions.subscribe(this.#key, () => Queue.offerUnsafe(signals, undefined))),
          (stop) => Effect.sync(stop)
        )
        const next = Effect.suspend(() => Effect.timeoutOption(Queue.take(signals), jittered(this.#intervalMillis)))
        return Stream.fromEffectRepeat(Effect.andThen(next, this.readPatiently))
      })
    )
  }

  /**
   * Waits until there is a record. However many fibers of this process wait, one looks for all of them. It never ends if the
   * store fails for good: what else the caller has asked for reports that.
   */
  get written(): Effect.Effect<LockRecord> {
    return Effect.scoped(Effect.flatMap(RcMap.get(watches, this), Deferred.await))
  }

  /** Looks until there is a record, in a fiber of the client. */
  get watch(): Effect.Effect<Deferred.Deferred<LockRecord>, never, Scope.Scope> {
    const written = Deferred.makeUnsafe<LockRecord>()
    const look = Stream.runForEachWhile(this.looks, ({ record }) =>
      record === undefined ? Effect.succeed(true) : Effect.as(Deferred.succeed(written, record), false)
    )
    return Effect.as(
      Effect.acquireRelease(
        Effect.sync(() => this.#client.fork(Effect.ignore(look))),
        (fiber) => Effect.sync(() => fiber.interruptUnsafe())
      ),
      written
    )
  }

  /**
   * Writes as the holder of the lock. Transient failures are retried while it holds the lock; refusals that may pass, such as that of a full
   * memory, only for the length of a lease, as others wait meanwhile. What is written stays there for as long as the lock is held:
   * see `Lease.record`.
   */
  write(
    holding: Holding,
    {
      lifeMillis = 0,
      value,
      version
    }: { readonly value: string; readonly version: number; readonly lifeMillis?: number }
  ): Effect.Effect<void, LockLost | LockStoreError> {
    const { owner, token } = holding
    const { lease } = holding as Hold
    const { now, options, run, store } = this.#client
    const until = now() + options.watchdogLeaseMillis
    const command = write(this.#keys, this.#use, { owner, token, version, value }, lifeMillis, store.publish)
    const attempt = Effect.flatMap(
      Effect.flatMap(holding.ensureHeld, () => run(command)),
      (reply): Effect.Effect<void, LockLost> => {
        if (reply !== 1) return Effect.fail(lease.lose("NotOwner"))
        // not before it is confirmed: what has failed must not take effect later
        if (version > (lease.record?.version ?? 0)) lease.record = { version, command }
        return Effect.void
      }
    )
    return Effect.retry(attempt, {
      while: (error) => error._tag === "LockStoreError" && (error.isTransient || (!isFinal(error) && now() < until)),
      // short pauses, as the lease ends soon, and others wait for the record
      schedule: growing("50 millis", "1 second")
    })
  }

  /** Removes what this owner has written, in the background: readers ignore the record of an owner that does not hold the lock. */
  clear(holding: Holding): Effect.Effect<void> {
    return Effect.sync(() => {
      const { run, store } = this.#client
      const { lease, owner } = holding as Hold
      // another hold may keep the lock
      lease.record = { version: Number.POSITIVE_INFINITY, command: undefined }
      this.#client.background(Effect.ignore(run(clear(this.#keys, this.#use, owner, store.publish))))
    })
  }

  [Equal.symbol](that: unknown): boolean {
    return that instanceof HolderRecord && this.#client === that.#client && this.#key === that.#key
  }

  [Hash.symbol](): number {
    return Hash.string(this.#key)
  }
}

/** The record of one use beside the lock, at the client that serves the running code. */
export const recordOf = <R>(lock: Lock.Lock<R, unknown>, use: RecordUse): Effect.Effect<HolderRecord, Invalid, R> =>
  Effect.withFiber<HolderRecord, Invalid, R>((fiber) => {
    const at = (lock as unknown as LockImpl<R>).resolve(fiber)
    return isInvalid(at) ? Effect.fail(at) : Effect.succeed(new HolderRecord(at, use))
  })

/** The record of a result beside the lock, and how long it is kept, in milliseconds. */
export const resultOf = <R>(lock: Lock.Lock<R, unknown>, timeToLive: Duration.Input) => {
  const lifeMillis = parsePeriod("timeToLive", timeToLive)
  return Effect.flatMap(recordOf(lock, "result"), (record) =>
    typeof lifeMillis === "number" ? Effect.succeed({ record, lifeMillis }) : Effect.fail(lifeMillis)
  )
}

/** The records that fibers wait for. Nothing closes them all: a watch ends with the last fiber that waits, or with its client. */
const watches = Effect.runSync(
  Effect.provideService(RcMap.make({ lookup: ({ watch }: HolderRecord) => watch }), Scope.Scope, Scope.makeUnsafe())
)

/** The holding of the section that the code runs in directly. */
export const holdingOf = <R>(lock: Lock.Lock<R, unknown>): Effect.Effect<Holding, LockLost, R> =>
  Effect.catchTag(Lock.currentHolding(lock), ["NotLockOwner", "InvalidLockName", "InvalidLockOptions"], Effect.die)

/** Counts the client's `maxHold` from now on. */
export const restartMaxHold = (holding: Holding): void => {
  const { lease } = holding as Hold
  if (lease.heldUntil !== undefined) lease.heldUntil = lease.client.now() + lease.client.options.maxHoldMillis
}
