import * as Effect from "effect/Effect"
import type { Fiber } from "effect/Fiber"
import type * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import type { AcquireOptions } from "../../AcquireOptions.ts"
import {
  type AcquireError,
  InvalidLockOptions,
  type LockLost,
  type LockStoreError,
  QuorumNotReached
} from "../../LockError.ts"
import type { HolderState, LockState } from "../../LockState.ts"
import type { RedisLock } from "../../RedisLock.ts"
import type { LockClient } from "../client/LockClient.ts"
import type { NamedMember } from "../client/QuorumClients.ts"
import type { InternalHolding } from "../hold/Hold.ts"
import { type Invalid, isInvalid } from "../options/acquireOptions.ts"
import type { QuorumTimes } from "../options/ClientOptions.ts"
import { combinedName, quorumClient } from "../quorum/quorumClient.ts"
import { AnyLock, type PreparedAcquire, provideUnbound } from "./AnyLock.ts"
import { LockImpl, noQuorum } from "./LockImpl.ts"

/**
 * A lock that is held on a majority of servers.
 */
export class RedLockImpl<R, E> extends AnyLock<R, E | QuorumNotReached, bigint> {
  readonly name: string
  readonly #members: ReadonlyArray<LockImpl<R, E>>
  readonly #options: AcquireOptions | undefined
  readonly #times: QuorumTimes | InvalidLockOptions
  readonly #invalid: Invalid | undefined
  /** The lock itself, once it no longer depends on the caller's context. */
  #known: LockImpl<R, E> | Invalid | undefined = undefined

  constructor(
    members: ReadonlyArray<AnyLock<R, E, bigint>>,
    options: AcquireOptions | undefined,
    times: QuorumTimes | InvalidLockOptions
  ) {
    super()
    this.name = members.length === 0 ? "RedLock" : combinedName(members.map(({ name }) => name))
    this.#options = options
    this.#times = times
    this.#members = members.filter((member) => member instanceof LockImpl)
    this.#invalid = isInvalid(times) ? times : this.#check(members)
  }

  #check(members: ReadonlyArray<unknown>): Invalid | undefined {
    const problem = (problem: string) => new InvalidLockOptions({ option: "RedLock", problem })
    if (members.length === 0) return problem("it has no members; give it the locks of three or five servers")
    if (this.#members.length < members.length) return problem("its members must be single locks, not composed ones")
    const [first] = this.#members
    for (const { invalid, kind } of this.#members) {
      if (invalid !== null) return invalid
      if (kind.queued) return noQuorum(kind)
      if (kind.mode !== first!.kind.mode)
        return problem("its members must all be read locks, all write locks, or neither")
      if (kind.hasTokens !== first!.kind.hasTokens) return problem("its members must all have tokens, or none of them")
    }
    return undefined
  }

  get isBound(): boolean {
    return this.#members.every((member) => member.isBound)
  }

  provide(service: RedisLock["Service"]): RedLockImpl<Exclude<R, RedisLock>, E> {
    return new RedLockImpl(provideUnbound(this.#members, service), this.#options, this.#times)
  }

  /** The quorum's lock: an ordinary lock of a client whose store is the quorum. */
  #joint(fiber: Fiber<unknown, unknown>): LockImpl<R, E> | Invalid {
    if (this.#known !== undefined) return this.#known
    const joint = this.#invalid ?? this.#join(fiber)
    if (this.isBound) this.#known = joint
    return joint
  }

  #join(fiber: Fiber<unknown, unknown>): LockImpl<R, E> | Invalid {
    const members: Array<NamedMember<LockClient>> = []
    for (const member of this.#members) {
      const { name } = member
      const client = member.clientOf(fiber)
      const keys = member.keys(client)
      if (isInvalid(keys)) return keys
      for (const other of members) {
        if (other.client !== client || other.name !== name) continue
        return new InvalidLockOptions({
          option: "RedLock",
          problem: `"${name}" of one server is among its members twice, and would have two votes`
        })
      }
      members.push({ client, name })
    }
    const client = quorumClient(members, this.#times as QuorumTimes, fiber)
    return new LockImpl<R, E>(this.name, this.#members[0]!.kind, this.#options, client, null)
  }

  prepare(
    fiber: Fiber<unknown, unknown>,
    scope: Scope.Scope | undefined,
    options: AcquireOptions | undefined
  ): PreparedAcquire<E | QuorumNotReached, bigint> | Invalid {
    const joint = this.#joint(fiber)
    if (isInvalid(joint)) return joint
    const asking = joint.prepare(fiber, scope, options)
    if (isInvalid(asking)) return asking
    return {
      name: this.name,
      label: asking.label,
      subjects: asking.subjects,
      acquire: (restore): Effect.Effect<InternalHolding<bigint>, AcquireError | E | QuorumNotReached> =>
        surfacing(asking.acquire(restore)),
      tryAcquire: (
        restore
      ): Effect.Effect<Option.Option<InternalHolding<bigint>>, LockStoreError | E | QuorumNotReached> =>
        surfacing(asking.tryAcquire(restore))
    }
  }

  holding(fiber: Fiber<unknown, unknown>): Effect.Effect<InternalHolding<bigint> | undefined, LockLost | Invalid> {
    return this.#with(fiber, (joint) => joint.holding(fiber))
  }

  inspect(fiber: Fiber<unknown, unknown>): Effect.Effect<LockState, LockStoreError | Invalid> {
    return this.#with(fiber, (joint) => joint.inspect(fiber))
  }

  holders(fiber: Fiber<unknown, unknown>): Effect.Effect<ReadonlyArray<HolderState>, LockStoreError | Invalid> {
    return this.#with(fiber, (joint) => joint.holders(fiber))
  }

  holdCount(fiber: Fiber<unknown, unknown>): Effect.Effect<number, LockStoreError | Invalid> {
    return this.#with(fiber, (joint) => joint.holdCount(fiber))
  }

  forceRelease(
    fiber: Fiber<unknown, unknown>,
    owners: ReadonlyArray<string> | undefined
  ): Effect.Effect<boolean, LockStoreError | Invalid> {
    return this.#with(fiber, (joint) => joint.forceRelease(fiber, owners))
  }

  #with<A, E2>(
    fiber: Fiber<unknown, unknown>,
    f: (joint: LockImpl<R, E>) => Effect.Effect<A, E2>
  ): Effect.Effect<A, E2 | Invalid> {
    const joint = this.#joint(fiber)
    return isInvalid(joint) ? Effect.fail(joint) : f(joint)
  }
}

/** Turns the store's report on its members into the lock's own failure. */
const surfacing = <A, E>(self: Effect.Effect<A, E>): Effect.Effect<A, E | QuorumNotReached> =>
  Effect.catchCause(self, (cause): Effect.Effect<never, E | QuorumNotReached> => {
    for (const reason of cause.reasons) {
      if (reason._tag !== "Fail") continue
      const { error } = reason
      const within = typeof error === "object" && error !== null && "cause" in error ? error.cause : undefined
      if (within instanceof QuorumNotReached) return Effect.fail(within)
    }
    return Effect.failCause(cause)
  })
