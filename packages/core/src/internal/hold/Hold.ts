/**
 * What the holder of a lock has: one hold of a lease, to look at, to renew and to release.
 */
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import type { Holding } from "../../Holding.ts"
import type { InvalidLockOptions, LockLost, LockStoreError } from "../../LockError.ts"
import type { LockClient } from "../client/LockClient.ts"
import type { Mode } from "../kinds/kinds.ts"
import { checkLease, parsePeriod } from "../options/acquireOptions.ts"
import { printsAs } from "../report/shown.ts"
import { failureOf } from "../store/commands.ts"
import { afterWork } from "../store/failures.ts"
import type { Guarded } from "./guard.ts"
import type { Identity, Lease, LeaseEntry } from "./Lease.ts"
import { free, removeHold } from "./release.ts"

/**
 * The result of an acquisition: one hold, or the holds of all members.
 */
export interface InternalHolding<out T = unknown> extends Holding<T>, Guarded {
  readonly name: string
  /** The holds in Redis of which it consists. */
  readonly holds: ReadonlyArray<Hold>
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

/** `Holding.isHeld` of any holding. */
export const isHeld = (holding: InternalHolding): Effect.Effect<boolean> =>
  look(holding, () => Effect.succeed(holding.checkLost() === undefined))

/** `Holding.ensureHeld` of any holding. */
export const ensureHeld = (holding: InternalHolding): Effect.Effect<void, LockLost> =>
  look(holding, () => {
    const lost = holding.checkLost()
    return lost === undefined ? Effect.void : Effect.fail(lost)
  })

/** `Holding.release` of any holding. */
export const release = (holding: InternalHolding): Effect.Effect<void, LockLost | LockStoreError> =>
  Effect.uninterruptible(
    Effect.catchCause(
      Effect.suspend(() => holding.releaseNow()),
      (problems) => Effect.failCause(Cause.map(problems, afterWork))
    )
  )

interface HoldTerms {
  readonly identity: Identity
  /** Whether the watchdog renews for it. */
  readonly isRenewed: boolean
}

/**
 * One hold within a lease: the outermost acquisition or a re-entry.
 */
export class Hold implements InternalHolding<bigint>, LeaseEntry {
  readonly lease: Lease
  readonly renewed: boolean
  by: Identity
  released = false
  outlived = false
  own: LeaseEntry["own"] = undefined

  constructor(lease: Lease, { identity, isRenewed }: HoldTerms) {
    this.lease = lease
    this.renewed = isRenewed
    this.by = identity
  }

  get holds(): ReadonlyArray<Hold> {
    return [this]
  }

  get clients(): ReadonlyArray<LockClient> {
    return [this.lease.client]
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

  get isHeld(): Effect.Effect<boolean> {
    return isHeld(this)
  }

  get ensureHeld(): Effect.Effect<void, LockLost> {
    return ensureHeld(this)
  }

  get remaining(): Effect.Effect<Duration.Duration> {
    return look(this, () =>
      Effect.succeed(
        this.checkLost() === undefined
          ? Duration.millis(Math.max(0, Math.floor(this.lease.deadline - this.lease.client.now())))
          : Duration.zero
      )
    )
  }

  get awaitLost(): Effect.Effect<never, LockLost> {
    return Effect.callback<never, LockLost>((resume) => {
      if (this.outlived) return
      const lost = this.lease.checkLost(this.lease.client.now())
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
      const { client, kind } = lease
      const endless = "it must be finite; to have the lock renewed until its release, acquire it without a leaseTime"
      const leaseMillis =
        leaseTime === undefined ? client.options.watchdogLeaseMillis : parsePeriod("leaseTime", leaseTime, endless)
      if (typeof leaseMillis !== "number") return Effect.fail(leaseMillis)
      const shortLease = checkLease("leaseTime", leaseMillis)
      if (shortLease !== undefined) return Effect.fail(shortLease)
      const lost = this.checkLost()
      if (lost !== undefined) return Effect.fail(lost)
      const sentAt = client.now()
      lease.asksFor(leaseMillis, sentAt)
      client.tracking.wrote(lease)
      const command = kind.renew([lease], leaseMillis)
      const asked = client.store.run(command)
      const answered = Effect.flatMap(asked, ([renewed]): Effect.Effect<void, LockLost | LockStoreError> => {
        if (renewed === 0) return Effect.fail(lease.lose("NotOwner", client.now()))
        if (renewed !== 1) {
          const undecided = new Error("no majority of the servers confirmed the renewal")
          return Effect.fail(failureOf(command, "TimedOut", undecided))
        }
        if (lease.confirm(sentAt, leaseMillis) === undefined && !lease.released) {
          lease.renewalFailure = undefined
          client.watchdog.watch(lease)
        }
        return this.ensureHeld
      })
      lease.renewals++
      return Effect.onExit(answered, (exit) =>
        Effect.sync(() => {
          lease.renewals--
          const failure = Exit.findErrorOption(exit)
          if (Option.isNone(failure) || failure.value._tag !== "LockStoreError") return
          lease.renewalFailure = failure.value
          client.telemetry.of(lease.kind.name).renewalFailures++
        })
      )
    })
  }

  get release(): Effect.Effect<void, LockLost | LockStoreError> {
    return release(this)
  }

  /** Ends it; the last one frees the lock. Does nothing the second time. */
  releaseNow(): Effect.Effect<void, LockLost | LockStoreError> {
    if (this.released) return Effect.void
    this.released = true
    const { lease } = this
    if (lease.holds === 1) {
      lease.remove(this)
      return free(lease)
    }
    // before the lease of this hold is gone
    const lost = lease.checkLost(lease.client.now())
    const number = lease.remove(this)
    if (lost !== undefined) return Effect.fail(lost)
    this.outlived = true
    return removeHold(lease, number)
  }

  onLost(listener: () => void): () => void {
    return this.lease.onLost(listener)
  }

  isOver(): boolean {
    return !this.released && this.lease.isOver()
  }

  /** The loss, if this hold has ended; its release counts as one. */
  checkLost(): LockLost | undefined {
    const { lease } = this
    const now = lease.client.now()
    return lease.checkLost(now) ?? (this.released ? lease.lossOf("Released", now) : undefined)
  }
}

/**
 * The hold by which an acquisition may re-enter: that of a section around it, or one that was acquired by the same explicit owner,
 * or, where neither side has an explicit owner, by the same fiber or in the same scope. Only holds that have not begun to release
 * count: what a section has left to a fiber that outlives it belongs to that fiber alone.
 */
export const ownHold = (identity: Identity, lease: Lease): Hold | undefined => {
  for (let section = identity.owner.sections; section !== undefined; section = section.outer) {
    if (section.hold.lease === lease && !section.hold.released) return section.hold as Hold
  }
  return lease.find(({ by }) => isSame(identity, by)) as Hold | undefined
}

/** The loss of the innermost section around the running code that held this lock, if the lock was lost. */
export const lossAround = ({ owner }: Identity, client: LockClient, key: string, mode: Mode): LockLost | undefined => {
  for (let section = owner.sections; section !== undefined; section = section.outer) {
    const { client: its, keys, kind, lost } = section.hold.lease
    if (its === client && keys.lock === key && kind.mode === mode) return lost
  }
  return undefined
}

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
