import * as Effect from "effect/Effect"
import type { Fiber } from "effect/Fiber"
import type * as Scope from "effect/Scope"
import type { AcquireOptions, QuorumOptions } from "../../AcquireOptions.ts"
import { InvalidLockOptions, LockStoreError, QuorumNotReached } from "../../LockError.ts"
import type { RedisLock } from "../../RedisLock.ts"
import { resolveAt, type Resolved } from "../client/LockClient.ts"
import { type LockProtocol, reentrant } from "../kinds/kinds.ts"
import { type Invalid, isInvalid, refuseMinHold, timesOf } from "../options/acquireOptions.ts"
import { checkQuorum, type QuorumTimes } from "../options/ClientOptions.ts"
import { combined, type NamedMember, quorumClient } from "../quorum/quorumClient.ts"
import { type AnyLock, type PreparedAcquire, provideUnbound } from "./AnyLock.ts"
import { LockImpl, noQuorum } from "./LockImpl.ts"

/**
 * A lock that is held on a majority of servers: a lock of a client whose store is that majority.
 */
export class RedLockImpl<R, E> extends LockImpl<R, E | QuorumNotReached> {
  /** Single locks, unless it is invalid. */
  readonly #members: ReadonlyArray<AnyLock<R, E, bigint>>
  readonly stem: string | undefined
  declare readonly options: (AcquireOptions & QuorumOptions) | undefined
  readonly #times: QuorumTimes | InvalidLockOptions
  /** Whether its client no longer depends on the caller's context. */
  readonly #isBound: boolean

  constructor(members: ReadonlyArray<AnyLock<R, E, bigint>>, options: (AcquireOptions & QuorumOptions) | undefined) {
    const times = checkQuorum(options)
    const invalid = isInvalid(times) ? times : problemOfMembers(members)
    const [first] = members
    const { name, stem } = combined(first === undefined ? ["RedLock"] : members.map(({ name }) => name))
    super(name, first instanceof LockImpl ? first.kind : reentrant, options, undefined, invalid)
    this.#members = members
    this.stem = stem
    this.#times = times
    this.#isBound = members.every((member) => member.isBound)
  }

  override get isBound(): boolean {
    return this.#isBound
  }

  override provide(service: RedisLock["Service"]): RedLockImpl<Exclude<R, RedisLock>, E> {
    return new RedLockImpl(provideUnbound(this.#members, service), this.options)
  }

  override resolve(fiber: Fiber<unknown, unknown>): Resolved | Invalid {
    // a member's client that closes closes that of the quorum; the others may still be a majority
    if (this.#isBound && this.at?.client.isClosing === false) return this.at
    if (this.invalid !== null) return this.invalid
    const members: Array<NamedMember> = []
    for (const member of this.#members as ReadonlyArray<LockImpl<R, E>>) {
      const { name } = member
      const resolved = member.resolve(fiber)
      if (isInvalid(resolved)) return resolved
      const { client } = resolved
      if (members.some((other) => other.client === client && other.name === name)) {
        return problem(`"${name}" of one server is among its members twice, and would have two votes`)
      }
      members.push({ client, name })
    }
    return resolveAt(this, quorumClient(members, this.#times as QuorumTimes))
  }

  override prepare(
    fiber: Fiber<unknown, unknown>,
    scope: Scope.Scope | undefined,
    options: AcquireOptions | undefined
  ): PreparedAcquire<E | QuorumNotReached, bigint> | Invalid {
    const asking = super.prepare(fiber, scope, options)
    if (isInvalid(asking)) return asking
    const { label, name, subjects } = asking
    return {
      name,
      label,
      subjects,
      acquire: (restore) => surfacing(asking.acquire(restore)),
      tryAcquire: (restore) => surfacing(asking.tryAcquire(restore))
    }
  }
}

const problem = (problem: string) => new InvalidLockOptions({ option: "RedLock", problem })

/** Why these members cannot be a quorum. */
const problemOfMembers = (members: ReadonlyArray<unknown>): Invalid | null => {
  if (members.length === 0) return problem("it has no members; give it the locks of three or five servers")
  let first: LockProtocol | undefined
  for (const member of members) {
    if (!(member instanceof LockImpl) || member instanceof RedLockImpl) {
      return problem("its members must be single locks, not composed ones")
    }
    const { invalid, kind, options } = member
    if (invalid !== null) return invalid
    if (kind.queued) return noQuorum(kind)
    const refused = refuseOptions(options)
    if (refused !== undefined) return refused
    first ??= kind
    if (kind.mode !== first.mode) return problem("its members must all be read locks, all write locks, or neither")
    if (kind.hasTokens !== first.hasTokens) return problem("its members must all have tokens, or none of them")
  }
  return null
}

/** The problem with a member's own options: the lock is acquired with those of the `RedLock`. Only its wait can be ignored. */
const refuseOptions = (options: AcquireOptions | undefined): InvalidLockOptions | undefined => {
  const times = timesOf(undefined, options)
  if (isInvalid(times)) return times
  const { acknowledge, leaseMillis, maxHoldMillis } = times
  const own = { leaseTime: leaseMillis, maxHold: maxHoldMillis, acknowledge }
  const option = Object.entries(own).find(([, value]) => value !== undefined)?.[0]
  if (option === undefined) return refuseMinHold(times, "a member of a RedLock")
  const owner = option === "acknowledge" ? "the layer of that member" : "RedLock.make"
  return new InvalidLockOptions({ option, problem: `a member of a RedLock cannot have its own; give it to ${owner}` })
}

/** Turns the store's report on its members into the lock's own failure. */
const surfacing = <A, E>(self: Effect.Effect<A, E | QuorumNotReached>): Effect.Effect<A, E | QuorumNotReached> =>
  Effect.mapError(self, (error) =>
    error instanceof LockStoreError && error.cause instanceof QuorumNotReached ? error.cause : error
  )
