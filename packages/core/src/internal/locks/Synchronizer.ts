/**
 * What semaphores and latches have in common; and the latch.
 */
import * as Effect from "effect/Effect"
import type { Fiber } from "effect/Fiber"
import { identity } from "effect/Function"
import * as Pipeable from "effect/Pipeable"
import * as Predicate from "effect/Predicate"
import { InvalidLockName, InvalidLockOptions, type LockStoreError } from "../../LockError.ts"
import {
  boundClient,
  checkService,
  clientIn,
  type LockClient,
  resolveAt,
  type Resolved,
  type Service
} from "../client/LockClient.ts"
import { latchTitle } from "../kinds/kinds.ts"
import { checkPermits, type Invalid, isInvalid } from "../options/acquireOptions.ts"
import { printsAs, shown } from "../report/shown.ts"
import { runOrDescribe } from "../store/failures.ts"
import { checkName, type checkSlot, latchChannel } from "../store/keys.ts"
import type { StoreCommand } from "../store/operations/StoreOperation.ts"

/** What says in its type which services a value requires. */
export interface Requires<out R> {
  readonly _R: (_: never) => R
}

export const requires: Requires<never> = { _R: identity }

/** What differs between both kinds of semaphore and latches. */
interface SynchronizerKind {
  /** Name used in messages. */
  readonly title: string
  /** The permits with which a missing semaphore is created; undefined not to create it. */
  readonly initial?: number | undefined
  /** The problem that keeps its keys from sharing a slot, if not that of most. */
  readonly checkSlot?: typeof checkSlot
}

/**
 * A semaphore or a latch as a value: checked when made, reported when used.
 */
export abstract class Synchronizer<Kind extends SynchronizerKind> extends Pipeable.Class {
  readonly name: string
  readonly kind: Kind
  readonly client: LockClient | undefined
  readonly invalid: Invalid | undefined
  at: Resolved | undefined = undefined

  /** With the problem of the value from which it is made, if there is one. */
  constructor(name: string, kind: Kind, service?: Service, invalid?: Invalid) {
    super()
    const { initial } = kind
    this.name = typeof name === "string" ? name : shown(name)
    this.kind = kind
    this.client = boundClient(service)
    this.invalid =
      invalid ??
      checkName(name) ??
      (initial === undefined ? undefined : checkPermits(initial, 1)) ??
      (service === undefined ? undefined : checkService(service))
  }

  /** Its client and keys, or the problem with it. */
  resolve(fiber: Fiber<unknown, unknown>): Resolved | Invalid {
    if (this.invalid !== undefined) return this.invalid
    const client = this.client ?? clientIn(fiber.context)
    const { checkSlot, title } = this.kind
    return client.isQuorum
      ? new InvalidLockOptions({ option: title, problem: "a quorum of servers cannot keep it; use one server" })
      : resolveAt(this, client, checkSlot)
  }

  /** Runs `f` with its client and key, unless it is invalid or there is a problem with what the caller has passed. */
  use<A, E>(
    f: (client: LockClient, key: string) => Effect.Effect<A, E>,
    problem?: Invalid
  ): Effect.Effect<A, E | Invalid> {
    if (problem !== undefined) return Effect.fail(this.invalid ?? problem)
    return Effect.withFiber<A, E | Invalid>((fiber) => {
      const at = this.resolve(fiber)
      return isInvalid(at) ? Effect.fail(at) : f(at.client, at.keys.lock)
    })
  }

  /** {@link use} with a command; if its name holds something else, the error says what. */
  run<A>(
    command: (key: string, store: LockClient["store"]) => StoreCommand<A>,
    problem?: Invalid
  ): Effect.Effect<A, LockStoreError | Invalid> {
    return this.use((client, key) => runOrDescribe(client, this.kind.title, command(key, client.store)), problem)
  }
}

printsAs(Synchronizer.prototype, ({ kind, name }) => ({ _id: `effect-redis-lock/${kind.title}`, name }))

const checkChannelSlot: typeof checkSlot = (name, { lock }, slot) =>
  slot(lock) === slot(latchChannel(lock))
    ? undefined
    : new InvalidLockName({
        lock: name,
        problem: "on a Redis Cluster, Redisson keeps the channel of a latch with braces in its name in another slot"
      })

export const latchKind: SynchronizerKind = { title: latchTitle, checkSlot: checkChannelSlot }

export const LatchTypeId = "~effect-redis-lock/CountDownLatch"

export type PublicCountDownLatch<R> = Pick<LatchImpl<R>, typeof LatchTypeId | "name">

export class LatchImpl<R> extends Synchronizer<SynchronizerKind> {
  readonly [LatchTypeId]: Requires<R> = requires
}

export const latchOf = <R>(latch: PublicCountDownLatch<R> | string): LatchImpl<R> =>
  Predicate.hasProperty(latch, LatchTypeId) ? (latch as LatchImpl<R>) : new LatchImpl<R>(latch as string, latchKind)
