/**
 * The implementation of every `Lock` value, whether it is one lock or composed of several.
 */
import type * as Effect from "effect/Effect"
import type { Fiber } from "effect/Fiber"
import { identity } from "effect/Function"
import * as Pipeable from "effect/Pipeable"
import type * as Scope from "effect/Scope"
import type { AcquireOptions } from "../../AcquireOptions.ts"
import type { LockLost, LockStoreError } from "../../LockError.ts"
import type { HolderState, LockState } from "../../LockState.ts"
import type { RedisLock } from "../../RedisLock.ts"
import type { AcquireRequest } from "../acquire/ask.ts"
import type { Prepared } from "../acquire/sections.ts"
import type { InternalHolding } from "../hold/Hold.ts"
import type { Invalid } from "../options/acquireOptions.ts"
import { printsAs } from "../report/shown.ts"

export const TypeId = "~effect-redis-lock/Lock"

/** A validated request for a lock. */
export interface PreparedAcquire<out E = unknown, out T = unknown> extends Prepared<InternalHolding<T>, E> {
  /** The request for each lock of which it consists. */
  readonly subjects: ReadonlyArray<AcquireRequest>
}

export type PublicLock<R, E, T> = Pick<AnyLock<R, E, T>, typeof TypeId | "name">

export abstract class AnyLock<R, E, T> extends Pipeable.Class {
  declare readonly [TypeId]: {
    readonly _R: (_: never) => R
    readonly _E: (_: never) => E
    readonly _T: (_: never) => T
  }
  abstract readonly name: string
  /** Prepares an acquisition, or fails with the reason why it is invalid. */
  abstract prepare(
    fiber: Fiber<unknown, unknown>,
    scope: Scope.Scope | undefined,
    options: AcquireOptions | undefined
  ): PreparedAcquire<E, T> | Invalid
  /** Whether it is bound and requires no service. */
  abstract readonly isBound: boolean
  abstract provide(service: RedisLock["Service"]): AnyLock<Exclude<R, RedisLock>, E, T>
  /** The holding of this lock that the running code has; fails if a section around it has lost the lock. */
  abstract readonly holding: Effect.Effect<InternalHolding<T> | undefined, LockLost | Invalid>
  /** Everything that Redis has under its name. */
  abstract readonly inspect: Effect.Effect<LockState, LockStoreError | Invalid>
  /** The holders of this lock, or of this side of a read-write lock. */
  abstract readonly holders: Effect.Effect<ReadonlyArray<HolderState>, LockStoreError | Invalid>
  /** How many holds the running code has. */
  abstract readonly holdCount: Effect.Effect<number, Invalid>
  /** Frees the lock from these owners, or without any from its holders. */
  abstract forceRelease(owners: ReadonlyArray<string> | undefined): Effect.Effect<boolean, LockStoreError | Invalid>
}

Object.defineProperty(AnyLock.prototype, TypeId, { value: { _R: identity, _E: identity, _T: identity } })

/** Binds the unbound members of a composed lock. */
export const provideUnbound = <R, E, T>(
  members: ReadonlyArray<AnyLock<R, E, T>>,
  service: RedisLock["Service"]
): ReadonlyArray<AnyLock<Exclude<R, RedisLock>, E, T>> =>
  members.map((member) => (member.isBound ? (member as AnyLock<any, E, T>) : member.provide(service)))

printsAs(AnyLock.prototype, ({ name }) => ({ _id: "effect-redis-lock/Lock", name }))
