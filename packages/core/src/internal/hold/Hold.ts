import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import type { Acquisition } from "../acquire/acquire.ts"
import type { Held } from "../locks/AnyLock.ts"
import { type InvalidLockOptions, type LockLost, LockStoreError } from "../../LockError.ts"
import { checkLease, parsePeriod } from "../options/durations.ts"
import type { Identity } from "./owner.ts"
import type { Possession } from "./Lease.ts"
import { release, releaseNow } from "./release.ts"
import type { Reply } from "../../RedisDriver.ts"

/**
 * One hold within a possession: the outermost acquisition or a re-entry.
 */
export class Hold implements Held<bigint> {
  readonly possession: Possession
  /** Whether the watchdog renews for this hold. */
  readonly renewed: boolean
  /** Who acquired it. */
  readonly by: Identity
  released = false
  /** Until when its own lease runs, on the monotonic clock; no lease is known before Redis has confirmed it. */
  deadline = Number.NEGATIVE_INFINITY
  confirmedAt = Number.POSITIVE_INFINITY

  constructor(possession: Possession, { identity, leaseMillis }: Acquisition) {
    this.possession = possession
    this.renewed = leaseMillis === undefined
    this.by = identity
  }

  get holds(): ReadonlyArray<Hold> {
    return [this]
  }

  get name(): string {
    return this.possession.name
  }

  get owner(): string {
    return this.possession.owner
  }

  get token(): bigint {
    // where there are none, that is not there in the type
    return (this.possession.kind.hasTokens ? BigInt(this.possession.token) : undefined) as bigint
  }

  get isHeld(): Effect.Effect<boolean> {
    return Effect.sync(() => this.checkLost() === undefined)
  }

  get ensureHeld(): Effect.Effect<void, LockLost> {
    return Effect.suspend(() => {
      const lost = this.checkLost()
      return lost === undefined ? Effect.void : Effect.fail(lost)
    })
  }

  get remaining(): Effect.Effect<Duration.Duration> {
    return Effect.sync(() =>
      this.checkLost() === undefined
        ? Duration.millis(Math.max(0, this.possession.deadline - this.possession.client.now()))
        : Duration.zero
    )
  }

  get awaitLost(): Effect.Effect<never, LockLost> {
    return Effect.callback<never, LockLost>((resume) => {
      const lost = this.possession.checkLost(this.possession.client.now())
      if (lost !== undefined) {
        resume(Effect.fail(lost))
        return
      }
      const withdraw = this.possession.onLost(() => {
        withdraw()
        resume(Effect.fail(this.possession.lost!))
      })
      return Effect.sync(withdraw)
    })
  }

  renew(leaseTime?: Duration.Input): Effect.Effect<void, LockLost | LockStoreError | InvalidLockOptions> {
    return Effect.suspend((): Effect.Effect<void, LockLost | LockStoreError | InvalidLockOptions> => {
      const { possession } = this
      const { client, kind } = possession
      const lease = leaseTime === undefined ? client.options.watchdogLeaseMillis : parsePeriod("leaseTime", leaseTime)
      if (typeof lease !== "number") return Effect.fail(lease)
      const shortLease = checkLease("leaseTime", lease, client.options.clockDriftFactor)
      if (shortLease !== undefined) return Effect.fail(shortLease)
      const lost = this.checkLost()
      if (lost !== undefined) return Effect.fail(lost)
      const sentAt = client.now()
      possession.mayLastUntil = Math.max(possession.mayLastUntil, sentAt + lease)
      const request = kind.renew([possession], lease)
      const asked = client.store.run(request.operation, request.keys, request.args)
      const answered = Effect.flatMap(asked, (reply): Effect.Effect<void, LockLost | LockStoreError> => {
        const [renewed] = reply as ReadonlyArray<Reply>
        if (renewed === 0) return Effect.fail(possession.lose("NotOwner", client.now()))
        if (renewed !== 1) return Effect.fail(undecided(possession, request.operation))
        if (possession.confirm(sentAt, lease) === undefined && !possession.released) {
          possession.renewalFailure = undefined
          client.watchdog.watch(possession)
        }
        return this.ensureHeld
      })
      possession.renewals++
      return Effect.onExit(answered, (exit) =>
        Effect.sync(() => {
          possession.renewals--
          const failure = Exit.findErrorOption(exit)
          if (Option.isSome(failure) && failure.value._tag === "LockStoreError")
            possession.renewalFailure = failure.value
        })
      )
    })
  }

  get release(): Effect.Effect<void, LockLost | LockStoreError> {
    return release(this)
  }

  releaseNow(): Effect.Effect<void, LockLost | LockStoreError> {
    return releaseNow(this)
  }

  onLost(listener: () => void): () => void {
    return this.possession.onLost(listener)
  }

  /** The loss, if this hold is no more: an end by release counts. */
  checkLost(): LockLost | undefined {
    const { possession } = this
    const now = possession.client.now()
    return possession.checkLost(now) ?? (this.released ? possession.lossOf("NotOwner", now) : undefined)
  }
}

const undecided = ({ name }: Possession, operation: string): LockStoreError =>
  new LockStoreError({
    operation,
    lock: name,
    reason: "TimedOut",
    cause: new Error("no majority of the servers confirmed the renewal")
  })
