/**
 * What stands behind every `Lock` value, whether it is one lock or composed of several.
 */
import type * as Effect from "effect/Effect"
import type { Fiber } from "effect/Fiber"
import { identity } from "effect/Function"
import type * as Option from "effect/Option"
import * as Pipeable from "effect/Pipeable"
import type * as Scope from "effect/Scope"
import type { AcquireOptions } from "../../AcquireOptions.ts"
import type { Lock, LockState } from "../../Lock.ts"
import type { AcquireError, InvalidLockName, InvalidLockOptions, LockStoreError } from "../../LockError.ts"
import type { RedisLock } from "../../RedisLock.ts"
import type { InternalHolding } from "../hold/Hold.ts"
import type { LockKeys } from "../store/keys.ts"
import type { LockClient } from "../client/LockClient.ts"
import type { LockProtocol } from "../protocol/LockProtocol.ts"
import type { Restore } from "../hold/guard.ts"

export const TypeId = "~effect-redis-lock/Lock"

/** One lock of one client. */
export interface Subject {
  readonly client: LockClient
  readonly kind: LockProtocol
  readonly keys: LockKeys
}

export const isSame = (a: Subject, b: Subject): boolean =>
  a.client === b.client && a.kind.mode === b.kind.mode && a.keys.lock === b.keys.lock

/**
 * An acquisition that may be made: who asks for what is known, and checked.
 */
export interface PreparedAcquire<out E = unknown, out T = unknown> {
  /** The lock's. */
  readonly name: string
  /** The kind's, in spans. */
  readonly label: string
  /** What it asks for, of which client. */
  readonly subjects: ReadonlyArray<Subject>
  /** Waits as long as allowed. To be run uninterruptibly. */
  readonly acquire: (restore: Restore) => Effect.Effect<InternalHolding<T>, AcquireError | E>
  /** Asks once. To be run uninterruptibly. */
  readonly tryAcquire: (restore: Restore) => Effect.Effect<Option.Option<InternalHolding<T>>, LockStoreError | E>
}

export type Invalid = InvalidLockName | InvalidLockOptions

export const isInvalid = <A extends object>(asking: A | Invalid): asking is Invalid => "_tag" in asking

type Running = Fiber<unknown, unknown>

export abstract class AnyLock<R, E, T> extends Pipeable.Class implements Lock<R, E, T> {
  declare readonly [TypeId]: {
    readonly _R: (_: never) => R
    readonly _E: (_: never) => E
    readonly _T: (_: never) => T
  }
  abstract readonly name: string
  /** What an acquisition needs to know, or why it cannot be. */
  abstract prepare(
    fiber: Running,
    scope: Scope.Scope | undefined,
    options: AcquireOptions | undefined
  ): PreparedAcquire<E, T> | Invalid
  /** Whether it requires no service. */
  abstract readonly isBound: boolean
  abstract provide(service: RedisLock["Service"]): AnyLock<Exclude<R, RedisLock>, E, T>
  /** What the running code holds of it. */
  abstract holding(fiber: Running): Effect.Effect<InternalHolding<T> | undefined, InvalidLockName>
  abstract inspect(fiber: Running): Effect.Effect<LockState | undefined, LockStoreError | InvalidLockName>
  abstract holdCount(fiber: Running): Effect.Effect<number, LockStoreError | InvalidLockName>
  abstract forceRelease(fiber: Running): Effect.Effect<boolean, LockStoreError | InvalidLockName>
}

Object.defineProperty(AnyLock.prototype, TypeId, { value: { _R: identity, _E: identity, _T: identity } })

/** Binds those members of a composed lock that are not bound yet. */
export const provideUnbound = <R, E, T>(
  members: ReadonlyArray<AnyLock<R, E, T>>,
  service: RedisLock["Service"]
): ReadonlyArray<AnyLock<Exclude<R, RedisLock>, E, T>> =>
  members.map((member) => (member.isBound ? (member as AnyLock<any, E, T>) : member.provide(service)))
