/**
 * What the holder of a lock has: one hold of a lease, to look at, to renew and to release.
 */
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Holding } from "../../Holding.ts"
import type { InvalidLockOptions, LockLost, LockStoreError } from "../../LockError.ts"
import type { LockRef } from "../kinds/kinds.ts"
import { parseLease } from "../options/acquireOptions.ts"
import { printsAs } from "../report/shown.ts"
import { afterWork } from "../store/failures.ts"
import { type Identity, isSameLock, type Lease, type LeaseEntry } from "./Lease.ts"
import { checkHeld, failIfLost, free } from "./release.ts"

/**
 * The result of an acquisition: one hold, or the holds of all members. A body can run under it.
 */
export abstract class InternalHolding<out T = unknown> implements Holding<T> {
  /** The name of the lock or semaphore. */
  abstract readonly name: string
  abstract readonly owner: string
  abstract readonly token: T
  /** The holds in Redis of which it consists. */
  abstract readonly holds: ReadonlyArray<Hold>
  abstract readonly awaitLost: Effect.Effect<never, LockLost>
  abstract renew(leaseTime?: Duration.Input): Effect.Effect<void, LockLost | LockStoreError | InvalidLockOptions>
  /** The loss, if it is lost; its release counts as one. */
  abstract checkLost(): LockLost | undefined
  /** Whether its lease is over or lost: its section must not go on. A loss that only the clock can tell is declared by that. */
  abstract isOver(): boolean
  /** Calls back once, on a call stack of its own, when it is lost or if it already is; the result unsubscribes. */
  abstract onLost(listener: () => void): () => void
  /** Releases, for a caller that is uninterruptible already and runs the result at once. Does nothing the second time. */
  abstract releaseNow(): Effect.Effect<void, LockLost | LockStoreError>

  get isHeld(): Effect.Effect<boolean> {
    return look(this, () => Effect.succeed(this.checkLost() === undefined))
  }

  get ensureHeld(): Effect.Effect<void, LockLost> {
    return look(this, () => failIfLost(this.checkLost()))
  }

  get remaining(): Effect.Effect<Duration.Duration> {
    return look(this, () => {
      if (this.checkLost() !== undefined) return Effect.succeed(Duration.zero)
      const left = this.holds.map(({ lease }) => lease.deadline - lease.client.now())
      return Effect.succeed(Duration.millis(Math.max(0, Math.floor(Math.min(...left)))))
    })
  }

  get renewalFailure(): Effect.Effect<Option.Option<LockStoreError>> {
    return Effect.sync(() => {
      for (const { lease } of this.holds) {
        const failure = lease.whyNotRenewed()
        if (failure !== undefined) return Option.some(failure)
      }
      return Option.none()
    })
  }

  get release(): Effect.Effect<void, LockLost | LockStoreError> {
    return Effect.uninterruptible(
      Effect.catchCause(
        Effect.suspend(() => this.releaseNow()),
        (problems) => Effect.failCause(Cause.map(problems, afterWork))
      )
    )
  }
}

/** Looks at a holding once it can be told whether it is lost. */
const look = <A, E>(holding: InternalHolding, f: () => Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.suspend(() => {
    for (const { lease } of holding.holds) {
      const { listening } = lease
      if (listening !== undefined) return Effect.flatMap(listening, () => look(holding, f))
    }
    return f()
  })

/**
 * One hold within a lease: the outermost acquisition or a re-entry.
 */
export class Hold extends InternalHolding<bigint> implements LeaseEntry {
  readonly lease: Lease
  readonly renewed: boolean
  by: Identity
  released = false
  /** Whether its release left the lock to other holds: a loss after that is none of its own. */
  outlived = false

  constructor(lease: Lease, { identity, isRenewed }: { readonly identity: Identity; readonly isRenewed: boolean }) {
    super()
    this.lease = lease
    this.renewed = isRenewed
    this.by = identity
  }

  get holds(): ReadonlyArray<Hold> {
    return [this]
  }

  get name(): string {
    return this.lease.name
  }

  get owner(): string {
    return this.lease.owner
  }

  get token(): bigint {
    // the type of a lock without tokens does not have this property
    return (this.lease.kind.hasTokens ? BigInt(this.lease.token) : undefined) as bigint
  }

  get awaitLost(): Effect.Effect<never, LockLost> {
    return Effect.callback<never, LockLost>((resume) => {
      if (this.outlived) return
      const lost = this.lease.checkLost()
      if (lost !== undefined) {
        resume(Effect.fail(lost))
        return
      }
      const withdraw = this.lease.onLost(() => {
        withdraw()
        if (!this.outlived) resume(Effect.fail(this.lease.lost!))
      })
      return Effect.sync(withdraw)
    })
  }

  renew(leaseTime?: Duration.Input): Effect.Effect<void, LockLost | LockStoreError | InvalidLockOptions> {
    return Effect.suspend((): Effect.Effect<void, LockLost | LockStoreError | InvalidLockOptions> => {
      const { lease } = this
      const { client } = lease
      const endless = "it must be finite; to have the lock renewed until its release, acquire it without a leaseTime"
      const leaseMillis =
        leaseTime === undefined ? client.options.watchdogLeaseMillis : parseLease("leaseTime", leaseTime, endless)
      if (typeof leaseMillis !== "number") return Effect.fail(leaseMillis)
      const lost = this.checkLost()
      if (lost !== undefined) return Effect.fail(lost)
      return Effect.andThen(client.watchdog.renew(lease, leaseMillis, this.renewed), this.ensureHeld)
    })
  }

  /**
   * Ends it. The last one frees the lock; of any other Redis need not know, but the outermost, which ends before others where these outlive its
   * section, asks whether the lock is still held.
   */
  releaseNow(): Effect.Effect<void, LockLost | LockStoreError> {
    if (this.released) return Effect.void
    this.released = true
    const { lease } = this
    const since = lease.client.now()
    if (lease.holds === 1) return this.#end(since)
    const lost = lease.checkLost(since)
    if (lost !== undefined || lease.outermost !== this) return this.#end(since, lost)
    // until the answer it counts, so that no release comes before
    return Effect.matchCauseEffect(checkHeld(lease), {
      // a loss that has come meanwhile is none of its own
      onSuccess: () => (lease.checkLost() === undefined ? this.#end(since) : Effect.ignore(this.#end(since))),
      onFailure: (cause) => Effect.andThen(Effect.ignore(this.#end(since, lease.lost)), Effect.failCause(cause))
    })
  }

  #end(since: number, lost?: LockLost): Effect.Effect<void, LockLost | LockStoreError> {
    const { lease } = this
    lease.remove(this)
    if (lease.outermost === undefined) return free(lease, since)
    if (lost !== undefined) return Effect.fail(lost)
    this.outlived = true
    lease.client.watchdog.reschedule(lease)
    return Effect.void
  }

  onLost(listener: () => void): () => void {
    return this.lease.onLost(listener)
  }

  isOver(): boolean {
    return !this.released && this.lease.isOver()
  }

  checkLost(): LockLost | undefined {
    const { lease } = this
    return lease.checkLost() ?? (this.released ? lease.lossOf("Released") : undefined)
  }
}

/**
 * The hold by which an acquisition may re-enter: that of a section around it, or one that was acquired by the same explicit owner,
 * or, where neither side has an explicit owner, by the same fiber or in the same scope. Only holds that have not begun to release
 * count: what a section has left to a fiber that outlives it belongs to that fiber alone.
 */
export const ownHold = (identity: Identity, lease: Lease): Hold | undefined => {
  for (const hold of identity.owner.sections) if (hold.lease === lease && !hold.released) return hold as Hold
  return lease.find(({ by, released }) => !released && isSame(identity, by)) as Hold | undefined
}

/** The loss of the innermost section around the running code that held this lock, if the lock was lost. */
export const lossAround = ({ owner }: Identity, lock: LockRef): LockLost | undefined =>
  owner.sections.find(({ lease }) => isSameLock(lease, lock))?.lease.lost

const isSame = (identity: Identity, by: Identity): boolean =>
  identity.owner.explicit !== undefined || by.owner.explicit !== undefined
    ? identity.owner.explicit === by.owner.explicit
    : identity.fiberId === by.fiberId || (identity.scope !== undefined && identity.scope === by.scope)

printsAs(Hold.prototype, ({ lease: { kind, name, owner, token } }) => ({
  _id: "effect-redis-lock/Holding",
  name,
  owner,
  ...(kind.hasTokens ? { token: String(token) } : undefined)
}))
