import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { Fiber } from "effect/Fiber"
import { identity } from "effect/Function"
import * as Pipeable from "effect/Pipeable"
import type * as Scope from "effect/Scope"
import type { AcquireOptions, Lock } from "../Lock.ts"
import type { InvalidLockName, InvalidLockOptions } from "../LockError.ts"
import { RedisLock } from "../RedisLock.ts"
import type { Acquisition } from "./acquisition.ts"
import { parsePeriod, parseWait } from "./durations.ts"
import { checkName, LockKeys } from "./keys.ts"
import { LockClient } from "./LockClient.ts"
import { reentrant } from "./kinds/exclusive.ts"
import type { LockKind } from "./LockKind.ts"
import { identityOf } from "./owner.ts"

export const TypeId = "~effect-redis-lock/Lock"

/**
 * A lock as a value: checked when made, reported when used.
 */
export class LockImpl<R, E = never> extends Pipeable.Class implements Lock<R, E> {
  declare readonly [TypeId]: { readonly _R: (_: never) => R; readonly _E: (_: never) => E }
  readonly name: string
  readonly kind: LockKind
  readonly options: AcquireOptions | undefined
  readonly client: LockClient | undefined
  readonly invalid: InvalidLockName | undefined
  readonly #keys: LockKeys | undefined

  constructor(name: string, kind: LockKind, options: AcquireOptions | undefined, client: LockClient | undefined) {
    super()
    this.name = name
    this.kind = kind
    this.options = options
    this.client = client
    this.invalid = checkName(name)
    this.#keys = this.invalid === undefined ? new LockKeys(name) : undefined
  }

  keys(client: LockClient): LockKeys {
    const { keyPrefix } = client.options
    return keyPrefix === "" ? this.#keys! : new LockKeys(keyPrefix + this.name)
  }

  clientOf(fiber: Fiber<unknown, unknown>): LockClient {
    return this.client ?? (Context.getUnsafe(fiber.context as Context.Context<RedisLock>, RedisLock) as LockClient)
  }

  /** What an acquisition needs to know, or why it cannot be. */
  acquisition(
    fiber: Fiber<unknown, unknown>,
    scope: Scope.Scope | undefined,
    options: AcquireOptions | undefined
  ): Acquisition | InvalidLockName | InvalidLockOptions {
    if (this.invalid !== undefined) return this.invalid
    const waitTime = options?.waitTime ?? this.options?.waitTime
    const waitMillis = waitTime === undefined ? Number.POSITIVE_INFINITY : parseWait("waitTime", waitTime)
    if (typeof waitMillis !== "number") return waitMillis
    const leaseTime = options?.leaseTime ?? this.options?.leaseTime
    const leaseMillis = leaseTime === undefined ? undefined : parsePeriod("leaseTime", leaseTime)
    if (leaseMillis !== undefined && typeof leaseMillis !== "number") return leaseMillis
    const client = this.clientOf(fiber)
    return {
      client,
      kind: this.kind,
      name: this.name,
      keys: this.keys(client),
      identity: identityOf(fiber, scope),
      waitMillis,
      leaseMillis
    }
  }
}

Object.defineProperty(LockImpl.prototype, TypeId, { value: { _R: identity, _E: identity } })

export const lockOf = <R, E>(lock: Lock<R, E> | string): LockImpl<R, E> =>
  typeof lock === "string" ? new LockImpl<R, E>(lock, reentrant, undefined, undefined) : (lock as LockImpl<R, E>)

/** Runs something with a lock's client and keys, unless its name is not one. */
export const withKeys = <R, A, E, R2>(
  lock: Lock<R, unknown> | string,
  f: (
    client: LockClient,
    keys: LockKeys,
    lock: LockImpl<R, unknown>,
    fiber: Fiber<unknown, unknown>
  ) => Effect.Effect<A, E, R2>
): Effect.Effect<A, E | InvalidLockName, R | R2> =>
  Effect.withFiber<A, E | InvalidLockName, R2>((fiber) => {
    const impl = lockOf(lock)
    if (impl.invalid !== undefined) return Effect.fail(impl.invalid)
    const client = impl.clientOf(fiber)
    return f(client, impl.keys(client), impl, fiber)
  }) as Effect.Effect<A, E | InvalidLockName, R | R2>
