/**
 * Giving back: a hold, the last hold, and what an acquisition with unknown outcome may have left.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import { type LockLost, LockStoreError, QuorumNotReached } from "../../LockError.ts"
import type { Hold } from "./Hold.ts"
import type { WaitQueue } from "../wait/WaitQueue.ts"
import type { LockClient } from "../client/LockClient.ts"
import type { OwnerRef } from "../protocol/LockProtocol.ts"
import { isFinal } from "../store/passing.ts"
import { releaseRetries } from "../time/schedules.ts"
import type { Lease } from "./Lease.ts"
import type { Reply } from "../../RedisDriver.ts"
import { ownerText } from "../report/ownerText.ts"

const firstPauseMillis = 50
const longestPauseMillis = 1000

/**
 * Ends one hold; the last one frees the lock. Does nothing the second time.
 */
export const release = (hold: Hold): Effect.Effect<void, LockLost | LockStoreError> =>
  Effect.uninterruptible(Effect.suspend(() => releaseNow(hold)))

/**
 * {@link release} for a caller that is uninterruptible already and runs the result at once.
 */
export const releaseNow = (hold: Hold): Effect.Effect<void, LockLost | LockStoreError> => {
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
  return lost === undefined ? leave(lease, number) : Effect.fail(lost)
}

/** Leaves an inner hold: the outer ones stay. */
const leave = (lease: Lease, number: number): Effect.Effect<void, LockLost | LockStoreError> => {
  const { client, kind } = lease
  client.watchdog.watch(lease)
  const command = kind.removeHold(lease, lease.holds, number)
  return Effect.flatMap(client.store.run(command.operation, command.keys, command.args), (reply) =>
    (reply as number) >= 1 ? Effect.void : Effect.fail(lease.lose("NotOwner", client.now()))
  )
}

const run = (
  ownerRef: OwnerRef,
  publish: string = ownerRef.client.store.publish
): Effect.Effect<Reply, LockStoreError> => {
  const command = ownerRef.kind.release(ownerRef, publish)
  return ownerRef.client.store.run(command.operation, command.keys, command.args)
}

/** Frees the lock: the last hold has ended. */
const free = (lease: Lease): Effect.Effect<void, LockLost | LockStoreError> => {
  const freeing = startRelease(lease, lease.client.now())
  if (!(freeing instanceof PendingRelease)) return Effect.fail(freeing)
  return Effect.matchEffect(run(lease), {
    onSuccess: (reply) => {
      const lost = freeing.confirm(reply)
      return lost === undefined ? Effect.void : Effect.fail(lost)
    },
    onFailure: (error) => freeing.retry(error)
  })
}

/**
 * Ends the last holds of several locks of one client, slot and owner, and frees all by one command. The result are the
 * failures.
 */
export const releaseTogether = (
  holds: ReadonlyArray<Hold>
): Effect.Effect<ReadonlyArray<LockLost | LockStoreError>> => {
  const failures: Array<LockLost | LockStoreError> = []
  const begun: Array<PendingRelease> = []
  const keys: Array<string> = []
  const { client, owner } = holds[0]!.lease
  const now = client.now()
  for (const hold of holds) {
    const { lease } = hold
    hold.released = true
    lease.remove(hold)
    const freeing = startRelease(lease, now)
    if (freeing instanceof PendingRelease) {
      begun.push(freeing)
      keys.push(lease.keys.lock, lease.keys.channel)
    } else {
      failures.push(freeing)
    }
  }
  if (begun.length === 0) return Effect.succeed(failures)
  return Effect.matchEffect(client.store.run("multi_lock/release", keys, [owner, client.store.publish]), {
    onSuccess: (reply) => {
      const replies = Array.isArray(reply) ? reply : undefined
      for (let i = 0; i < begun.length; i++) {
        const lost = begun[i]!.confirm(replies?.[i] ?? reply)
        if (lost !== undefined) failures.push(lost)
      }
      return Effect.succeed(failures)
    },
    onFailure: (error) =>
      Effect.as(
        Effect.forEach(begun, (freeing) =>
          Effect.match(freeing.retry(error), {
            onSuccess: () => {},
            onFailure: (failure) => void failures.push(failure)
          })
        ),
        failures
      )
  })
}

/** A lock that is being freed. */
class PendingRelease {
  readonly #lease: Lease
  readonly #sentAt: number
  readonly #queue: WaitQueue | undefined
  /** Whether the next waiter of this process has been told already. */
  readonly #handedOver: boolean

  constructor(lease: Lease, sentAt: number, queue: WaitQueue | undefined, handedOver: boolean) {
    this.#lease = lease
    this.#sentAt = sentAt
    this.#queue = queue
    this.#handedOver = handedOver
    lease.client.underWay++
  }

  /** What to make of the reply: it was ours to free, or is found lost. */
  confirm(reply: Reply): LockLost | undefined {
    this.#lease.client.underWay--
    return this.#confirm(reply)
  }

  /** Tries again, after a failure. */
  retry(failure: LockStoreError): Effect.Effect<void, LockLost | LockStoreError> {
    const confirmed = Effect.flatMap(retry(this.#lease, this.#sentAt, failure), (reply) => {
      const lost = this.#confirm(reply)
      return lost === undefined ? Effect.void : Effect.fail(lost)
    })
    return Effect.ensuring(
      confirmed,
      Effect.sync(() => void this.#lease.client.underWay--)
    )
  }

  #confirm(reply: Reply): LockLost | undefined {
    const lease = this.#lease
    const { client } = lease
    const released = (reply as number) >= 1
    if (this.#queue !== undefined && !this.#handedOver) {
      announce(lease, this.#queue, released ? (reply as number) - 1 : 0, this.#sentAt)
    }
    if (released) return undefined
    const now = client.now()
    const reason = now >= lease.deadline ? "Expired" : "NotOwner"
    client.telemetry.lost(lease, reason)
    return (lease.lost = lease.lossOf(reason, now))
  }
}

/** Frees what Redis may keep of a lock that is lost, for as long as it may. */
const releaseLost = (lease: Lease): Effect.Effect<Reply, LockStoreError> =>
  Effect.retry(
    Effect.suspend(() => run(lease)),
    {
      while: (error) => !isFinal(error) && lease.client.now() < lease.mayLastUntil,
      schedule: releaseRetries
    }
  )

/** Forgets a lock that is about to be freed; unless it is lost already, the command is to be sent at once. */
const startRelease = (lease: Lease, now: number): PendingRelease | LockLost => {
  const { client, keys, kind } = lease
  const lost = lease.checkLost(now)
  lease.released = true
  if (lost !== undefined) {
    // What is left of the lease (the drift allowance), or on a minority of a quorum, need not keep others waiting; nobody waits
    // for the reply. What a client that closes holds it gives back itself.
    if (lost.reason !== "ClientClosed" && (lost.reason !== "NotOwner" || client.isQuorum)) {
      client.fork(Effect.ignore(releaseLost(lease)))
    }
    return lost
  }
  client.forget(lease)
  client.telemetry.released(lease, now - lease.acquiredAt)
  // The next waiter of this process starts only after this fiber has sent its release, so its attempt comes right behind.
  const queue = client.waitQueues.get(keys.lock, "exclusive")
  const handedOver = queue !== undefined && queue.mayHandOver(now)
  if (kind.mode === "write") client.waitQueues.get(keys.lock, "read")?.signal()
  if (handedOver) queue.signal()
  return new PendingRelease(lease, now, queue, handedOver)
}

/**
 * Tells the line of this process of a release that so many clients heard of, this one perhaps among them. Where others did,
 * the line keeps quiet for a few round trips: the message takes longer to them than the lock to us.
 */
const announce = ({ client, keys, kind, owner }: Lease, queue: WaitQueue, listeners: number, sentAt: number): void => {
  if (listeners > (client.subscriptions.messagesSeen(kind.channel(keys, owner)) === undefined ? 0 : 1)) {
    const now = client.now()
    queue.quietUntil = now + Math.min(Math.max(shortestQuietMillis, 4 * (now - sentAt)), longestQuietMillis)
    if (queue.first !== undefined) client.alarms.set(queue.first, queue.quietUntil)
  } else {
    queue.signal()
  }
}

const shortestQuietMillis = 2
const longestQuietMillis = 100

/**
 * Tries again within the lease and the release timeout. After an attempt whose outcome is unknown, "not yours" means that
 * it did run: until it was sent, the lock was ours by the clock.
 */
const retry = Effect.fnUntraced(function* (lease: Lease, sentAt: number, failure: LockStoreError) {
  const { client } = lease
  const until = Math.min(lease.deadline, sentAt + client.options.releaseTimeoutMillis)
  let mayHaveRun = mayBeReleased(failure)
  for (let pause = firstPauseMillis; !isFinal(failure) && client.now() + pause < until; pause *= 2) {
    yield* Effect.sleep(Math.min(pause, longestPauseMillis))
    const result = yield* Effect.result(run(lease))
    if (Result.isSuccess(result)) return mayHaveRun ? 1 : result.success
    failure = result.failure
    mayHaveRun ||= mayBeReleased(failure)
  }
  client.background(releaseUntil(lease, lease.deadline))
  return yield* new LockStoreError({
    operation: "release (the work is done; the lock frees itself when its lease ends)",
    lock: lease.name,
    reason: failure.reason,
    cause: failure.cause
  })
})

/** Too few servers of a quorum may have answered, and yet some of them have run it. */
const mayBeReleased = ({ cause, isOutcomeUnknown }: LockStoreError): boolean =>
  isOutcomeUnknown || cause instanceof QuorumNotReached

/**
 * Releases an owner until Redis confirms, or its lease is over anyway. The result is the reply, if there was one. With `isForbidden`
 * the caller knows already that a right is missing, and is not told again.
 */
export const releaseUntil = (
  ownerRef: OwnerRef,
  leaseEnd: number,
  publish?: string,
  isForbidden = false
): Effect.Effect<Reply | undefined> =>
  Effect.gen(function* () {
    for (let pause = firstPauseMillis; ; pause = Math.min(pause * 2, longestPauseMillis)) {
      const result = yield* Effect.result(run(ownerRef, publish))
      if (Result.isSuccess(result)) return result.success
      if (isForbidden && result.failure.reason === "NoPermission") return undefined
      if (isFinal(result.failure) || ownerRef.client.now() + pause >= leaseEnd) {
        yield* Effect.annotateLogs(
          Effect.logWarning("Could not release in time; the lock frees itself when its lease ends.", result.failure),
          { lock: ownerRef.name, owner: ownerText(ownerRef.owner) }
        )
        return undefined
      }
      yield* Effect.sleep(pause)
    }
  })

/** How long the caller waits for what goes on in the background anyway. */
const rollbackWaitMillis = 200

/**
 * Takes back an acquisition that was granted. Owners are used once, so a release of this very owner can harm nobody; it is repeated
 * until confirmed.
 */
export const rollback = (ownerRef: OwnerRef, leaseEnd: number): Effect.Effect<void> =>
  inBackground(ownerRef, releaseUntil(ownerRef, leaseEnd))

/** Gives back a place in a queue, behind `after`; where the store cannot be told, `onFailure` sees to it. */
export const giveBack = (ownerRef: OwnerRef, after: Effect.Effect<void>, onFailure: () => void): Effect.Effect<void> =>
  inBackground(ownerRef, Effect.andThen(after, Effect.matchCause(run(ownerRef), { onSuccess: () => {}, onFailure })))

/** Takes back an acquisition whose outcome is unknown. */
export const rollbackUnknown = (ownerRef: OwnerRef, leaseMillis: number, isForbidden = false): Effect.Effect<void> =>
  Effect.suspend(() => {
    const { client } = ownerRef
    const leaseEnd = client.now() + client.store.commandLifeMillis + leaseMillis
    return rollbackUntilSettled(client, releaseUntil(ownerRef, leaseEnd, undefined, isForbidden))
  })

/**
 * Takes back what a command may have taken whose outcome is unknown. What gives it back may overtake the command, over another
 * connection or at a server that had stopped. So where it finds nothing it is repeated once the command can no longer take effect;
 * nobody waits for that.
 */
export const rollbackUntilSettled = (
  client: LockClient,
  giveBack: Effect.Effect<Reply | undefined>
): Effect.Effect<void> =>
  Effect.suspend(() => {
    const lastEffectAt = client.now() + client.store.commandLifeMillis
    const isFirstOver = Deferred.makeUnsafe<void>()
    client.background(Effect.asVoid(Deferred.await(isFirstOver)))
    client.fork(
      Effect.gen(function* () {
        const reply = yield* giveBack
        Deferred.doneUnsafe(isFirstOver, Effect.void)
        // a command takes effect once; of a quorum's members some may not have been reached
        if (!client.isQuorum && typeof reply === "number" && reply >= 1) return
        // also where the reply came later than that: the release may have been run earlier
        yield* Effect.sleep(Math.max(0, lastEffectAt - client.now()) + 1)
        yield* giveBack
      })
    )
    return Effect.asVoid(Effect.timeoutOption(Deferred.await(isFirstOver), rollbackWaitMillis))
  })

/** Takes back a re-entry that may have succeeded without our knowing. */
export const rollbackReentry = (hold: Hold): Effect.Effect<void> =>
  Effect.suspend(() => inBackground(hold.lease, Effect.ignore(releaseNow(hold))))

/**
 * Takes back what a minority of a quorum has granted. Nobody is told: the lock is held by somebody else, or by nobody who would
 * be told; and everyone who waits would ask again, have to take back the same, and wake the others in turn.
 */
export const rollbackSilently = (ownerRef: OwnerRef, leaseEnd: number): Effect.Effect<void> =>
  inBackground(ownerRef, releaseUntil(ownerRef, leaseEnd, ""))

/** The last waiter of this client has given up: what it told others no longer holds. */
export const cancelWriterIntent = (ownerRef: OwnerRef): Effect.Effect<void> => {
  const command = ownerRef.kind.cancelWriterIntent!(ownerRef.client, ownerRef.keys)
  // forgotten by itself a few seconds later
  return inBackground(ownerRef, Effect.ignore(ownerRef.client.store.run(command.operation, command.keys, command.args)))
}

const inBackground = ({ client }: OwnerRef, effect: Effect.Effect<unknown>): Effect.Effect<void> =>
  Effect.suspend(() => Effect.asVoid(Effect.timeoutOption(Fiber.await(client.background(effect)), rollbackWaitMillis)))
