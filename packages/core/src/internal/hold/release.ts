/**
 * Frees locks whose last hold has ended.
 */
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import { identity } from "effect/Function"
import * as Option from "effect/Option"
import { type LockLost, LockStoreError } from "../../LockError.ts"
import { handOverTerms, type OwnerRef, ownerRefOf } from "../kinds/kinds.ts"
import { kept, ownerText } from "../report/shown.ts"
import { matchOutcome } from "../store/commands.ts"
import { isFinal, mayHaveRun, retryAfter, retryRelease } from "../store/failures.ts"
import * as lock from "../store/operations/lock.ts"
import * as multiLock from "../store/operations/multiLock.ts"
import { start } from "../store/startable.ts"
import type { Lease, LeaseEntry } from "./Lease.ts"

/** Frees the lock, whose last hold has ended: the release timeout runs `since` then. */
export const free = (lease: Lease, since: number): Effect.Effect<void, LockLost | LockStoreError> => {
  const { client } = lease
  const now = client.now()
  const pending = startRelease(lease, now, since)
  if (!(pending instanceof PendingRelease)) return Effect.fail(pending)
  const send = sendRelease(lease, pending.tell)
  const left = since + client.options.releaseTimeoutMillis - now
  return matchOutcome(
    sendWithin(lease, pending.isToldToNobody ? sentAtOnce(send) : send, left),
    (reply) => failIfLost(pending.confirm(reply)),
    (cause) => pending.retry(cause)
  )
}

/**
 * Fails if Redis says that the lease is lost. A request that fails, or is not answered within the release timeout, says nothing; none is sent
 * while releases are cut short, as the store is away.
 */
export const checkHeld = (lease: Lease): Effect.Effect<void, LockLost> => {
  const { isQuorum, options, releaseTime, run } = lease.client
  if (releaseTime.leftFor(lease) !== undefined) return Effect.void
  return Effect.matchEffect(sendWithin(lease, run(lease.kind.renew([lease], 0)), options.releaseTimeoutMillis), {
    onSuccess: ([reply]) => (reply === 0 ? Effect.fail(lease.lose("NotOwner")) : Effect.void),
    onFailure: (failure) => {
      // a store that refuses does answer, and a quorum was asked for a second at most
      if (failure.reason === "TimedOut" && !isQuorum) releaseTime.gaveUp(lease)
      return Effect.void
    }
  })
}

/**
 * Ends the last holds of several locks of one client, slot and owner, and frees all by one command. Returns the failures.
 */
export const releaseTogether = (
  holds: ReadonlyArray<LeaseEntry>
): Effect.Effect<ReadonlyArray<LockLost | LockStoreError>> => {
  const failures: Array<LockLost | LockStoreError> = []
  const started: Array<PendingRelease> = []
  const [first] = holds as readonly [LeaseEntry]
  const { client, owner } = first.lease
  const now = client.now()
  for (const hold of holds) {
    const { lease } = hold
    hold.released = true
    lease.remove(hold)
    const pending = startRelease(lease, now)
    if (pending instanceof PendingRelease) started.push(pending)
    else failures.push(pending)
  }
  if (started.length === 0) return Effect.succeed(failures)
  const released = started.map(({ lease, tell }) => ({ keys: lease.keys, publish: tell, terms: handOverTerms(lease) }))
  const run = client.run(multiLock.release(released, owner))
  const send = started.some(({ isToldToNobody }) => isToldToNobody) ? sentAtOnce(run) : run
  return matchOutcome(
    sendWithin(first.lease, send, client.options.releaseTimeoutMillis),
    (reply) => {
      for (const [i, pending] of started.entries()) {
        const lost = pending.confirm(typeof reply === "number" ? reply : reply[i]!)
        if (lost !== undefined) failures.push(lost)
      }
      return Effect.succeed(failures)
    },
    (cause) => {
      // all, before the first of them dies of what the store has died of
      const all = started.map((pending) => pending.retry(cause))
      const settled = Effect.partition(all, identity, { concurrency: "unbounded" })
      return Effect.map(settled, ([, failed]) => [...failures, ...failed])
    }
  )
}

/** Fails with a loss, if there is one. */
export const failIfLost = (lost: LockLost | undefined): Effect.Effect<void, LockLost> =>
  lost === undefined ? Effect.void : Effect.fail(lost)

/**
 * Sends a release that leaves the lock to a waiter of this process before that waiter runs, or leaves: whatever it sends comes behind. The lock
 * would be left to nobody if what gives it back came first.
 */
const sentAtOnce = <A, E>(send: Effect.Effect<A, E>): Effect.Effect<A, E> => {
  const outcome = Deferred.makeUnsafe<A, E>()
  start(send, (exit) => void Deferred.doneUnsafe(outcome, exit))
  return Deferred.await(outcome)
}

/** A release that may hand the lock to a waiter of this process. */
export interface HandOver {
  /**
   * The command that notifies other clients; or the owner of this one that the lock is left to, under which its next waiter asks; empty to
   * leave it free and notify nobody.
   */
  readonly tell: string
  /** Called with the reply: the number of clients that the release has woken. */
  readonly replied: (listeners: number) => void
}

/** A lock that is being freed. */
class PendingRelease {
  readonly lease: Lease
  /** See {@link HandOver.tell}. */
  readonly tell: string
  /** Whether it leaves the lock to waiters of this process. */
  readonly isToldToNobody: boolean
  readonly #since: number
  readonly #handOver: HandOver | undefined

  constructor(lease: Lease, since: number, handOver: HandOver | undefined) {
    this.lease = lease
    const { client } = lease
    this.tell = handOver?.tell ?? client.store.publish
    this.isToldToNobody = this.tell !== client.store.publish
    this.#since = since
    this.#handOver = handOver
    client.underWay++
  }

  /** Called with the reply. Returns the loss if the lock was not ours. */
  confirm(reply: number): LockLost | undefined {
    this.lease.client.underWay--
    return this.#confirm(reply)
  }

  /** Repeats it after a failure, within the lease and the release timeout; not after a defect of the store. */
  retry(failed: Cause.Cause<LockStoreError>): Effect.Effect<void, LockLost | LockStoreError> {
    const { lease } = this
    const { client } = lease
    const error = Cause.findErrorOption(failed)
    if (Option.isNone(error)) {
      client.underWay--
      return Effect.failCause(failed)
    }
    const failure = error.value
    const until = Math.min(lease.deadline, this.#since + client.options.releaseTimeoutMillis)
    let mayBeReleased = mayHaveReleased(failed)
    const send = Effect.tapCause(
      Effect.suspend(() => sendWithin(lease, sendRelease(lease), until - client.now())),
      (cause) => Effect.sync(() => void (mayBeReleased ||= mayHaveReleased(cause)))
    )
    // by the clock the lock was ours until the first attempt, so that attempt released it
    const confirm = (reply: number) => failIfLost(this.#confirm(mayBeReleased ? 1 : reply))
    const repeated = Effect.matchEffect(retryAfter(client, failure, send, { overAt: until }), {
      onSuccess: confirm,
      onFailure: (failure): Effect.Effect<void, LockLost | LockStoreError> => {
        // something else lies under its name
        if (failure.reason === "WrongType") return confirm(-1)
        if (!isFinal(failure)) client.releaseTime.gaveUp(lease)
        client.background(releaseUntilConfirmed(lease, lease))
        const { cause, mayHaveRun, reason } = failure
        return Effect.fail(
          new LockStoreError({
            operation: `release (${outlook(lease)})`,
            lock: lease.name,
            reason,
            mayHaveRun: mayBeReleased || mayHaveRun,
            cause
          })
        )
      }
    })
    return Effect.ensuring(
      repeated,
      Effect.sync(() => void client.underWay--)
    )
  }

  #confirm(reply: number): LockLost | undefined {
    const { lease } = this
    lease.client.releaseTime.answered(lease)
    this.#handOver?.replied(Math.max(0, reply - 1))
    // after a reconnect the one that was sent again may have been first
    if (reply >= 1 || lease.client.hasGivenBack(lease.kind.release(lease, ""))) return undefined
    const reason = lease.client.now() >= lease.deadline ? "Expired" : "NotOwner"
    lease.client.telemetry.of(lease.kind.name).lost[reason]++
    return (lease.lost = lease.lossOf(reason))
  }
}

/** Whether a try that failed so may have freed the lock: not where something else lies under its name, on a quorum at a majority. */
const mayHaveReleased = (failed: Cause.Cause<LockStoreError>): boolean =>
  mayHaveRun(failed) && Option.getOrUndefined(Cause.findErrorOption(failed))?.reason !== "WrongType"

/** How long after its `minHold` the lock frees itself if this process has ended and does not hand it over. */
const keptLongerMillis = 100

/**
 * Nobody gets the lock before its `minHold` is over. The waiters of this process, which have not asked while it was held here, get their places
 * meanwhile.
 */
const keptHandOver = (lease: Lease): HandOver => ({
  tell: lease.client.store.publish,
  replied: () => {
    const { client, keptUntil, keys, owner } = lease
    client.lines.wake(keys.lock)
    handOverAt(keptUntil, ownerRefOf(lease, owner + kept))
  }
})

/** At most this many locks of a client are handed over when their `minHold` is over; any others free themselves. */
const mostKept = 10_000

/** Releases it then; nothing else of the lease is kept in memory until that time. */
const handOverAt = (time: number, kept: OwnerRef): void => {
  const { client } = kept
  if (client.keptLocks >= mostKept) return
  client.keptLocks++
  const ring = () => {
    client.keptLocks--
    client.fork(Effect.ignore(releasing(kept)))
  }
  client.alarms.set({ due: 0, heapIndex: -1, ring }, time)
}

/** Forgets a lock that is about to be freed; unless it is already lost, send the command at once. */
const startRelease = (lease: Lease, now: number, since = now): PendingRelease | LockLost => {
  const { client } = lease
  const lost = lease.checkLost(now)
  lease.released = true
  if (lost !== undefined) {
    // A closing client gives back its holdings itself.
    if (lost.reason === "ClientClosed") return lost
    // What may be left of it: the drift allowance, a minority of a quorum, other permits, a place at a server that has taken over.
    // Nobody waits for the reply.
    client.background(Effect.ignore(retryRelease(client, releasing(lease), lease)))
    return lost
  }
  client.forget(lease, now)
  return new PendingRelease(
    lease,
    since,
    staysTaken(lease) ? keptHandOver(lease) : client.lines.startHandOver(lease, now)
  )
}

/** Whether a release now leaves the lock taken for a while. */
export const staysTaken = ({ client, keptUntil = 0 }: OwnerRef): boolean => keptUntil > 0 && keptUntil > client.now()

/** Sends the release of an owner once; `tell` as in {@link HandOver.tell}. */
const sendRelease = (ref: OwnerRef, tell: string = ref.client.store.publish): Effect.Effect<number, LockStoreError> => {
  const { client, keptUntil = 0, keys, kind, owner } = ref
  if (!staysTaken(ref)) {
    const command = kind.release(ref, tell)
    // a spread would be no instance of its class, and slow down whatever is done with commands
    return client.run(client.isQuorum ? Object.assign(command, { overAt: ref.overAt }) : command)
  }
  // waiters are told even if `tell` is empty: the lock is left to none of them
  const terms = { publish: client.store.publish, queued: kind.queued }
  return client.run(lock.keep(keys, owner, Math.ceil(keptUntil - client.now()) + keptLongerMillis, terms))
}

/** {@link sendRelease} for what may be run later, and again. */
export const releasing = (ref: OwnerRef, tell?: string): Effect.Effect<number, LockStoreError> =>
  Effect.suspend(() =>
    Effect.map(sendRelease(ref, tell), (reply) => {
      ref.client.releaseTime.answered(ref)
      return reply
    })
  )

/** The least time for a reply: the event loop may have been blocked for all that was left. */
const leastReplyMillis = 50

/** Sends a release and waits at most this long for the reply. Without one, it may have run anyway. */
const sendWithin = <A>(
  { client, name }: Lease,
  send: Effect.Effect<A, LockStoreError>,
  millis: number
): Effect.Effect<A, LockStoreError> => {
  // usually the command itself times out earlier, and no timer is needed here
  if (client.store.commandTimeoutMillis <= millis) return send
  const duration = Math.max(Math.ceil(millis), leastReplyMillis)
  return Effect.timeoutOrElse(Effect.interruptible(send), {
    duration,
    orElse: () => {
      const cause = new Error(`no reply within ${duration} ms`)
      return Effect.fail(new LockStoreError({ operation: "release", lock: name, reason: "TimedOut", cause }))
    }
  })
}

/** How a release goes about that is repeated until it is confirmed. */
interface RepeatedTerms {
  /** Empty to tell nobody. */
  readonly tell?: "" | undefined
  /** Whether a refusal has been reported already, and is not to be reported again. */
  readonly isReported?: boolean
}

/**
 * Sends the release of an owner, which does nothing the second time, until Redis confirms it, or until what it releases is over, on the
 * monotonic clock. The result is the reply, if there was one.
 */
export const releaseUntilConfirmed = (
  ref: OwnerRef,
  released: { readonly overAt: number },
  { isReported = false, tell }: RepeatedTerms = {}
): Effect.Effect<number | undefined> =>
  Effect.catch(retryRelease(ref.client, releasing(ref, tell), released), (failure) => {
    if (isReported && isFinal(failure)) return Effect.undefined
    const warned = ref.kind.isLeased
      ? Effect.annotateLogs(Effect.logWarning(`Could not release in time; ${outlook(ref)}.`, failure), {
          [ref.kind.mode === "permit" ? "semaphore" : "lock"]: ref.name,
          owner: ownerText(ref.owner)
        })
      : warnOfPermits(ref, "Could not give permits back; the semaphore has that many fewer from now on.", failure)
    return Effect.as(warned, undefined)
  })

/** What to expect of a release that is repeated in the background. */
const outlook = ({ kind }: OwnerRef): string =>
  kind.mode !== "permit"
    ? "the lock frees itself when its lease ends"
    : kind.isLeased
      ? "the permits come back when their lease ends"
      : "the permits are given back as soon as Redis answers this process"

/** Warns that anonymous permits are not given back, which no lease frees. */
export const warnOfPermits = (
  { name, permits }: OwnerRef,
  message: string,
  failure: LockStoreError | Cause.Cause<LockStoreError>
): Effect.Effect<void> => Effect.annotateLogs(Effect.logWarning(message, failure), { semaphore: name, permits })
