/**
 * Ends holds: an inner one by its own command, the last one by freeing the lock.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { LockLost, LockStoreError } from "../../LockError.ts"
import { matchOutcome, mayHaveRun } from "../store/outcome.ts"
import type { LockKeys } from "../store/keys.ts"
import * as multiLock from "../store/operations/multiLock.ts"
import { retryRelease } from "../store/retryRelease.ts"
import type { HandOver } from "./HoldingClient.ts"
import type { Lease, LeaseEntry } from "./Lease.ts"
import { releaseOf, sendRelease, staysTaken } from "./releaseCommand.ts"
import { repeatRelease, sendWithin } from "./repeatedRelease.ts"

/**
 * Ends one hold; the last one frees the lock. Does nothing the second time.
 */
export const release = (hold: LeaseEntry): Effect.Effect<void, LockLost | LockStoreError> =>
  Effect.uninterruptible(Effect.suspend(() => releaseNow(hold)))

/**
 * {@link release} for a caller that is uninterruptible already and runs the result at once.
 */
export const releaseNow = (hold: LeaseEntry): Effect.Effect<void, LockLost | LockStoreError> => {
  if (hold.released) return Effect.void
  hold.released = true
  const { lease } = hold
  if (lease.holds === 1) {
    lease.remove(hold)
    return free(lease)
  }
  // before the lease of this hold is gone
  const lost = lease.checkLost(lease.client.now())
  const number = lease.remove(hold)
  return lost === undefined ? removeHold(lease, number) : Effect.fail(lost)
}

/**
 * Ends an inner hold: the outer ones stay. After a failure it is retried within the lease and the release timeout, but not once
 * other holds have begun or ended, as their commands carry the number of holds. Eventually the outermost release frees all of them.
 */
const removeHold = (lease: Lease, number: number): Effect.Effect<void, LockLost | LockStoreError> => {
  const { client, kind } = lease
  client.watchdog.watch(lease)
  const command = kind.removeHold(lease, lease.holds, number)
  const { changes } = lease
  const noteLate = (cause: Cause.Cause<LockStoreError>) =>
    Effect.sync(() => {
      // for other modes it only writes the count, and ends no hold
      if (kind.mode === "read" && mayHaveRun(cause)) {
        lease.innerReleaseUntil = client.now() + client.store.commandLifeMillis
      }
    })
  const send = Effect.suspend((): Effect.Effect<number, LockStoreError> =>
    lease.changes === changes ? Effect.tapCause(client.store.run(command), noteLate) : Effect.succeed(1)
  )
  const until = client.now() + client.options.releaseTimeoutMillis
  const repeated = retryRelease(send, (pause) => client.now() + pause < until && lease.isHeld(client.now()))
  return Effect.matchEffect(repeated, {
    onSuccess: (reply): Effect.Effect<void, LockLost> =>
      reply >= 1 ? Effect.void : Effect.fail(lease.lose("NotOwner", client.now())),
    onFailure: (error): Effect.Effect<void, LockLost | LockStoreError> =>
      Effect.fail(lease.checkLost(client.now()) ?? error)
  })
}

/** Frees the lock: the last hold has ended. */
const free = (lease: Lease): Effect.Effect<void, LockLost | LockStoreError> => {
  const pending = startRelease(lease, lease.client.now())
  if (!(pending instanceof PendingRelease)) return Effect.fail(pending)
  const { client } = lease
  return matchOutcome(
    sendWithin(client, sendRelease(lease, pending.publish), client.options.releaseTimeoutMillis, lease.name),
    (reply): Effect.Effect<void, LockLost> => {
      const lost = pending.confirm(reply)
      return lost === undefined ? Effect.void : Effect.fail(lost)
    },
    (cause) => {
      const error = Cause.findErrorOption(cause)
      return Option.isNone(error) ? Effect.failCause(cause) : pending.retry(error.value)
    }
  )
}

/**
 * Ends the last holds of several locks of one client, slot and owner, and frees all by one command. Returns the failures.
 */
export const releaseTogether = (
  holds: ReadonlyArray<LeaseEntry>
): Effect.Effect<ReadonlyArray<LockLost | LockStoreError>> => {
  const failures: Array<LockLost | LockStoreError> = []
  const started: Array<PendingRelease> = []
  const keys: Array<LockKeys> = []
  const { client, owner } = holds[0]!.lease
  const now = client.now()
  for (const hold of holds) {
    const { lease } = hold
    hold.released = true
    lease.remove(hold)
    const pending = startRelease(lease, now)
    if (pending instanceof PendingRelease) {
      started.push(pending)
      keys.push(lease.keys)
    } else {
      failures.push(pending)
    }
  }
  if (started.length === 0) return Effect.succeed(failures)
  const send = client.store.run(multiLock.release(keys, owner, client.store.publish))
  return Effect.matchEffect(sendWithin(client, send, client.options.releaseTimeoutMillis, started[0]!.name), {
    onSuccess: (reply) => {
      for (let i = 0; i < started.length; i++) {
        const lost = started[i]!.confirm(typeof reply === "number" ? reply : reply[i]!)
        if (lost !== undefined) failures.push(lost)
      }
      return Effect.succeed(failures)
    },
    onFailure: (error) =>
      Effect.as(
        Effect.forEach(
          started,
          (pending) =>
            Effect.match(pending.retry(error), {
              onSuccess: () => {},
              onFailure: (failure) => void failures.push(failure)
            }),
          { concurrency: "unbounded", discard: true }
        ),
        failures
      )
  })
}

/** A lock that is being freed. */
class PendingRelease {
  readonly #lease: Lease
  readonly #sentAt: number
  readonly #handOver: HandOver | undefined

  constructor(lease: Lease, sentAt: number, handOver: HandOver | undefined) {
    this.#lease = lease
    this.#sentAt = sentAt
    this.#handOver = handOver
    lease.client.underWay++
  }

  get name(): string {
    return this.#lease.name
  }

  /** The command that notifies others; undefined for the store's own. */
  get publish(): string | undefined {
    return this.#handOver?.publish
  }

  /** Called with the reply. Returns the loss if the lock was not ours. */
  confirm(reply: number): LockLost | undefined {
    this.#lease.client.underWay--
    return this.#confirm(reply)
  }

  /** Repeats it after a failure, within the lease and the release timeout. */
  retry(failure: LockStoreError): Effect.Effect<void, LockLost | LockStoreError> {
    const lease = this.#lease
    const { client } = lease
    const until = Math.min(lease.deadline, this.#sentAt + client.options.releaseTimeoutMillis)
    const outlook = "the work is done; the lock frees itself when its lease ends"
    const confirmed = Effect.flatMap(
      repeatRelease(releaseOf(lease, lease.overAt), failure, until, lease.name, outlook),
      ({ mayHaveRunBefore, reply }) => {
        // by the clock the lock was ours until the first attempt, so that attempt released it
        const lost = this.#confirm(mayHaveRunBefore ? 1 : reply)
        return lost === undefined ? Effect.void : Effect.fail(lost)
      }
    )
    return Effect.ensuring(
      confirmed,
      Effect.sync(() => void client.underWay--)
    )
  }

  #confirm(reply: number): LockLost | undefined {
    const lease = this.#lease
    const released = reply >= 1
    this.#handOver?.settle(released ? reply - 1 : 0)
    if (released) return undefined
    const now = lease.client.now()
    const reason = now >= lease.deadline ? "Expired" : "NotOwner"
    lease.client.telemetry.lost(lease.kind.name, reason)
    return (lease.lost = lease.lossOf(reason, now))
  }
}

/** Releases a lost lock for as long as Redis may still keep it. */
const releaseLost = (lease: Lease): Effect.Effect<number, LockStoreError> =>
  retryRelease(
    Effect.suspend(() => sendRelease(lease)),
    (pause) => lease.client.now() + pause < lease.overAt
  )

/** Nobody gets the lock, but the waiters of this process, which have not asked while it was held here, learn when it is free. */
const keptHandOver = ({ client, keys }: Lease): HandOver => ({
  publish: client.store.publish,
  settle: () => client.wakeWaiters(keys.lock)
})

/** Forgets a lock that is about to be freed; unless it is already lost, send the command at once. */
const startRelease = (lease: Lease, now: number): PendingRelease | LockLost => {
  const { client } = lease
  const lost = lease.checkLost(now)
  lease.released = true
  if (lost !== undefined) {
    // Others need not wait for the rest of the lease (the drift allowance), or for a minority of a quorum that still has it;
    // nobody waits for the reply. A closing client gives back its holdings itself.
    if (lost.reason !== "ClientClosed" && (lost.reason !== "NotOwner" || client.isQuorum)) {
      client.fork(Effect.ignore(releaseLost(lease)))
    }
    return lost
  }
  client.forget(lease)
  client.telemetry.released(lease.kind.name, now - lease.acquiredAt)
  return new PendingRelease(lease, now, staysTaken(lease) ? keptHandOver(lease) : client.startHandOver(lease, now))
}
