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
import { type Invalid, isInvalid } from "../options/acquireOptions.ts"
import { printsAs, shown } from "../report/shown.ts"
import { runOrDescribe } from "../store/failures.ts"
import { checkName, checkSlot, latchChannel, type LockKeys } from "../store/keys.ts"
import type { StoreCommand } from "../store/operations/StoreOperation.ts"

/**
 * A semaphore or a latch as a value: checked when made, reported when used.
 */
export abstract class Synchronizer extends Pipeable.Class {
  /** Name used in messages. */
  abstract readonly title: string
  readonly name: string
  readonly client: LockClient | undefined
  readonly invalid: Invalid | undefined
  at: Resolved | undefined = undefined
  /** The problem that keeps its keys from sharing a slot. */
  readonly checkSlot: typeof checkSlot = checkSlot

  constructor(name: string, service: Service | undefined, invalid?: Invalid) {
    super()
    this.name = typeof name === "string" ? name : shown(name)
    this.client = boundClient(service)
    this.invalid =
      invalid?._tag === "InvalidLockName"
        ? invalid
        : (checkName(name) ?? invalid ?? (service === undefined ? undefined : checkService(service)))
  }

  /** Runs a command; if its name holds something else, the error says what. */
  run<A>(
    command: (key: string, store: LockClient["store"]) => StoreCommand<A>
  ): Effect.Effect<A, LockStoreError | Invalid> {
    return use(this, (client, key) => runOrDescribe(client, this.title, command(key, client.store)))
  }
}

/** The client and the keys of a synchronizer, or the problem with it. */
export const resolve = (self: Synchronizer, fiber: Fiber<unknown, unknown>): Resolved | Invalid => {
  if (self.invalid !== undefined) return self.invalid
  const client = self.client ?? clientIn(fiber.context)
  return client.isQuorum
    ? new InvalidLockOptions({ option: self.title, problem: "a quorum of servers cannot keep it; use one server" })
    : resolveAt(self, client, self.checkSlot)
}

/** Runs `f` with the client and the key of a synchronizer, unless the synchronizer is invalid. */
export const use = <A, E, R>(
  self: Synchronizer,
  f: (client: LockClient, key: string, fiber: Fiber<unknown, unknown>) => Effect.Effect<A, E, R>
): Effect.Effect<A, E | Invalid, R> =>
  Effect.withFiber<A, E | Invalid, R>((fiber) => {
    const at = resolve(self, fiber)
    return isInvalid(at) ? Effect.fail(at) : f(at.client, at.keys.lock, fiber)
  })

printsAs(Synchronizer.prototype, ({ name, title }) => ({ _id: `effect-redis-lock/${title}`, name }))

export const LatchTypeId = "~effect-redis-lock/CountDownLatch"

export type PublicCountDownLatch<R> = Pick<LatchImpl<R>, typeof LatchTypeId | "name">

export class LatchImpl<R> extends Synchronizer {
  declare readonly [LatchTypeId]: { readonly _R: (_: never) => R }
  readonly title = latchTitle
  override readonly checkSlot = checkChannelSlot
}

const checkChannelSlot = (
  name: string,
  { lock }: LockKeys,
  slot: (key: string) => number
): InvalidLockName | undefined =>
  slot(lock) === slot(latchChannel(lock))
    ? undefined
    : new InvalidLockName({
        lock: name,
        problem: "on a Redis Cluster, Redisson keeps the channel of a latch with braces in its name in another slot"
      })

Object.defineProperty(LatchImpl.prototype, LatchTypeId, { value: { _R: identity } })

export const latchOf = <R>(latch: PublicCountDownLatch<R> | string): LatchImpl<R> =>
  Predicate.hasProperty(latch, LatchTypeId) ? (latch as LatchImpl<R>) : new LatchImpl<R>(latch as string, undefined)
