import * as Effect from "effect/Effect"
import type { Fiber } from "effect/Fiber"
import type * as Scope from "effect/Scope"
import type { AcquireOptions } from "../../AcquireOptions.ts"
import { InvalidLockOptions, type LockLost, LockStoreError } from "../../LockError.ts"
import type { HolderState, LockState } from "../../LockState.ts"
import type { RedisLock } from "../../RedisLock.ts"
import type { InternalHolding } from "../hold/Hold.ts"
import { nothingUnder } from "../kinds/inspect.ts"
import { type Invalid, isInvalid, refuseMinHold, timesOf } from "../options/acquireOptions.ts"
import { AnyLock, type PreparedAcquire, provideUnbound } from "./AnyLock.ts"
import { PreparedMultiAcquire } from "./MultiAcquire.ts"
import { MultiHold, type Tokens } from "./MultiHold.ts"

/**
 * Several locks as one.
 */
export class MultiLockImpl<R, E, T> extends AnyLock<R, E, Tokens<T>> {
  readonly name: string
  readonly #members: ReadonlyArray<AnyLock<R, E, T>>
  readonly #options: AcquireOptions | undefined

  constructor(members: ReadonlyArray<AnyLock<R, E, T>>, options: AcquireOptions | undefined) {
    super()
    this.name = members.map(({ name }) => name).join(", ")
    this.#members = members
    this.#options = options
  }

  get isBound(): boolean {
    return this.#members.every((member) => member.isBound)
  }

  provide(service: RedisLock["Service"]): MultiLockImpl<Exclude<R, RedisLock>, E, T> {
    return new MultiLockImpl(provideUnbound(this.#members, service), this.#options)
  }

  prepare(
    fiber: Fiber<unknown, unknown>,
    scope: Scope.Scope | undefined,
    options: AcquireOptions | undefined
  ): PreparedAcquire<E, Tokens<T>> | Invalid {
    if (this.#members.length === 0) return problem("it has no members")
    const times = timesOf(options, this.#options)
    if (isInvalid(times)) return times
    const kept = refuseMinHold(times, "a MultiLock")
    if (kept !== undefined) return kept
    const lease = {
      leaseTime: times.leaseMillis,
      maxHold: options?.maxHold ?? this.#options?.maxHold,
      acknowledge: options?.acknowledge ?? this.#options?.acknowledge
    }
    const prepared: Array<PreparedAcquire<E, T>> = []
    const subjects = new Set<string>()
    for (const member of this.#members) {
      const request = member.prepare(fiber, scope, lease)
      if (isInvalid(request)) return request
      for (const subject of request.subjects) {
        const keptMember = refuseMinHold(subject, "a member of a MultiLock")
        if (keptMember !== undefined) return keptMember
        // the same lock, or the other side of it
        const key = `${subject.client.clientId} ${subject.keys.lock}`
        if (subjects.has(key)) return problem(`"${request.name}" is among its members twice`)
        subjects.add(key)
      }
      prepared.push(request)
    }
    const waiting = (index: number, waitTime: number) =>
      this.#members[index]!.prepare(fiber, scope, { ...lease, waitTime }) as PreparedAcquire<E, T>
    return new PreparedMultiAcquire(this.name, prepared, waiting, times.waitMillis)
  }

  get holding(): Effect.Effect<InternalHolding<Tokens<T>> | undefined, LockLost | Invalid> {
    return Effect.map(Effect.all(this.#members.map((member) => member.holding)), (all) => {
      const held = all.filter((member) => member !== undefined)
      return held.length === 0 || held.length < all.length ? undefined : new MultiHold(this.name, held)
    })
  }

  /** Held when every member is. */
  get inspect(): Effect.Effect<LockState, LockStoreError | Invalid> {
    return Effect.map(
      this.#each((member) => member.inspect),
      (states): LockState => {
        const holders = ofAll(states.map((state) => state.holders))
        const waiters = states.flatMap((state) => state.waiters)
        return {
          ...nothingUnder(this.name),
          kind: holders.length + waiters.length === 0 ? "none" : "lock",
          holders,
          waiters,
          waiting: states.reduce((sum, { waiting }) => sum + waiting, 0)
        }
      }
    )
  }

  get holders(): Effect.Effect<ReadonlyArray<HolderState>, LockStoreError | Invalid> {
    return Effect.map(
      this.#each((member) => member.holders),
      ofAll
    )
  }

  get holdCount(): Effect.Effect<number, Invalid> {
    // one after the other: concurrent effects run in fibers of their own, which hold nothing
    return Effect.map(Effect.all(this.#members.map((member) => member.holdCount)), (all) =>
      all.length === 0 ? 0 : Math.min(...all)
    )
  }

  forceRelease(owners: ReadonlyArray<string> | undefined): Effect.Effect<boolean, LockStoreError | Invalid> {
    return Effect.map(
      this.#each((member) => member.forceRelease(owners)),
      (all) => all.some((released) => released)
    )
  }

  #each<A, E2>(f: (member: AnyLock<R, E, T>) => Effect.Effect<A, E2>): Effect.Effect<Array<A>, E2> {
    return Effect.forEach(this.#members, f, { concurrency: "unbounded" })
  }
}

const problem = (problem: string) => new InvalidLockOptions({ option: "MultiLock", problem })

/** The holders of all members; none, if a member is free. */
const ofAll = (holders: ReadonlyArray<ReadonlyArray<HolderState>>): ReadonlyArray<HolderState> =>
  holders.every(({ length }) => length > 0) ? holders.flat() : []
