/**
 * Acquires permits, in the same way for both kinds of semaphore: sends a request; if that is denied, waits in the line of
 * this process and tries again at each turn.
 *
 * Everything here runs uninterruptibly except what is wrapped in `restore`.
 */
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { LockStoreError, LockTimeout } from "../../LockError.ts"
import type { LockClient } from "../client/LockClient.ts"
import { Hold } from "../hold/Hold.ts"
import { type GrantReply, type Identity, Lease } from "../hold/Lease.ts"
import { warnOfPermits } from "../hold/release.ts"
import { leavePlace, rollback } from "../hold/rollback.ts"
import { idsOf, type LockRef, type Mode, type OwnerRef, type PermitProtocol } from "../kinds/kinds.ts"
import type { Times } from "../options/acquireOptions.ts"
import { ownerText, printsAs } from "../report/shown.ts"
import { matchOutcome, maxSends } from "../store/commands.ts"
import { catchTransient, mayHaveRun, transientFailure } from "../store/failures.ts"
import { semaphoreChannel } from "../store/keys.ts"
import { nothing, type PermitsReply, supplyOf, type Want, type Wants } from "../store/operations/semaphore.ts"
import { acknowledgedBy } from "../store/operations/StoreOperation.ts"
import type { Store } from "../store/Store.ts"
import type { Waiter } from "../wait/Line.ts"
import type { PermitLine } from "../wait/PermitLine.ts"
import { AcquireRequest, failAsking, grantedTooLate, type Restore } from "./ask.ts"
import { countWaiting, untilServed, type Wait, waitedSince } from "./untilServed.ts"

/** A request for permits; of anonymous ones, the lease is the life of their marker. */
export class PermitRequest extends AcquireRequest {
  declare readonly kind: PermitProtocol
  readonly permits: number
  /** Whether this process holds what it is granted. Anybody may give anonymous permits back, and nobody knows when. */
  readonly isHeld: boolean

  constructor(
    semaphore: { readonly kind: PermitProtocol; readonly name: string },
    at: Pick<LockRef, "client" | "keys">,
    identity: Identity,
    times: Times,
    { isHeld, permits }: { readonly isHeld: boolean; readonly permits: number }
  ) {
    super(semaphore, at, identity, times)
    this.permits = permits
    this.isHeld = isHeld
  }

  /** Waits for permits as long as allowed. */
  acquire(restore: Restore): Effect.Effect<PermitHold, LockTimeout | LockStoreError> {
    const { client, keys, permits } = this
    const key = keys.lock
    const waits = this.waitMillis > 0
    const startedAt = client.now()
    // later requests are served later
    if (waits && client.lines.get(key, "permit")?.isAhead(permits) === true) {
      return wait(this, restore, startedAt, undefined, undefined)
    }
    const messagesSeen = client.subscriptions.messagesSeen(semaphoreChannel(key), client.store.handsOver)
    const wants = notYet(this, waits ? { permits, waitedMillis: 0 } : nothing)
    return Effect.matchCauseEffect(ask(this, restore, startedAt, wants), {
      onSuccess: ({ granted, reply }): Effect.Effect<PermitHold, LockTimeout | LockStoreError> => {
        if (granted !== undefined) return Effect.succeed(granted)
        return waits ? wait(this, restore, startedAt, reply, messagesSeen) : gaveUp(this, startedAt, reply, undefined)
      },
      onFailure: (cause) => {
        const failure = waits ? transientFailure(cause) : undefined
        return failure === undefined ? Effect.failCause(cause) : wait(this, restore, startedAt, failure, messagesSeen)
      }
    })
  }

  /** Asks once; undefined if there are not enough. */
  tryAcquire(restore: Restore): Effect.Effect<PermitHold | undefined, LockStoreError> {
    const asked = ask(this, restore, this.client.now(), notYet(this, nothing))
    return Effect.map(asked, ({ granted }) => granted)
  }
}

/** Permits that were acquired together. */
export class PermitHold extends Hold {
  get ids(): ReadonlyArray<string> {
    return idsOf(this.owner)
  }

  get permits(): number {
    return this.lease instanceof AnonymousPermits ? this.lease.permits : this.ids.length
  }
}

printsAs(PermitHold.prototype, ({ name, owner }) => ({ _id: "effect-redis-lock/Permit", name, ids: ownerText(owner) }))

/** How long the marker of permits that are held lives. */
const heldMarkerMillis = 24 * 60 * 60 * 1000

/** Permits held for longer than this are given back without checking the marker. */
const trustedAfterMillis = 23 * 60 * 60 * 1000

/**
 * The shortest time that a marker outlives the last possible reply to its request: until then an acquisition with unknown
 * outcome can be taken back.
 */
const undoMillis = 60 * 1000

/** How long a marker lives: that of permits which this process gives back, or one that serves only to take back the acquisition. */
export const markerMillis = (store: Pick<Store, "commandTimeoutMillis">, isHeld: boolean): number =>
  Math.max(isHeld ? heldMarkerMillis : 0, undoMillis + maxSends * Math.ceil(store.commandTimeoutMillis))

/**
 * By how much the clock may differ in rate from the server's until a semaphore ends: NTP corrects each by half of that at most. The allowance
 * of a lease would be hours in a month, and permits that are given back in them would be lost.
 */
const driftFactor = 0.001

/** Permits without ids, which were granted together: a lease without end. */
class AnonymousPermits extends Lease {
  readonly permits: number
  /** When their semaphore ends, on the monotonic clock. */
  readonly #endsAt: number
  #returnedAt: number | undefined = undefined

  /** `endsIn` milliseconds after the request their semaphore ends; negative: never. */
  constructor(subject: LockRef, permits: number, reply: GrantReply, now: number, endsIn: number) {
    super(subject, reply, now, Number.POSITIVE_INFINITY)
    this.permits = permits
    this.#endsAt = endsIn < 0 ? Number.POSITIVE_INFINITY : reply.sentAt + endsIn * (1 - driftFactor)
  }

  /** When they were first to be given back. */
  get #returned(): number {
    return (this.#returnedAt ??= this.client.now())
  }

  /**
   * Whether their return is trusted is decided once: to Redis all attempts must be the same. After the end of their semaphore it is not: they
   * must not count for the next one of its name.
   */
  get trustedMillis(): number {
    const returned = this.#returned
    return returned - this.askedAt > trustedAfterMillis && returned < this.#endsAt ? heldMarkerMillis : 0
  }

  override get overAt(): number {
    return this.trustedMillis === 0
      ? this.askedAt + heldMarkerMillis
      : Math.min(this.#returned + trustedAfterMillis, this.#endsAt)
  }
}

interface Answer {
  readonly granted: PermitHold | undefined
  readonly reply: PermitsReply
}

/** Sends one request. If it is interrupted or fails with an unknown outcome, it is rolled back first. */
const ask = (
  request: PermitRequest,
  restore: Restore,
  startedAt: number,
  wants: Wants
): Effect.Effect<Answer, LockStoreError> => {
  const { client, isHeld, keys, kind, leaseMillis, name, permits } = request
  const owner = kind.newOwner(client, permits)
  const ownerRef: OwnerRef & { readonly permits: number } = { client, kind, name, keys, owner, permits }
  const command = acknowledgedBy(kind.ask(ownerRef, leaseMillis, wants), request)
  const sentAt = client.now()
  client.underWay++
  return matchOutcome(
    restore(client.run(command)),
    (reply): Effect.Effect<Answer, LockStoreError> => {
      client.underWay--
      if (!reply.isGranted) return Effect.as(compareTotal(request, reply), { granted: undefined, reply })
      const now = client.now()
      const grant = { owner, token: 0, sentAt, leaseMillis }
      const lease = kind.isLeased
        ? Lease.granted(request, grant, now)
        : new AnonymousPermits(request, permits, grant, now, reply.remaining)
      if (lease === undefined) {
        const failure = grantedTooLate(name, command.operation.name, now - sentAt, leaseMillis)
        return Effect.andThen(rollback(ownerRef, leaseMillis), Effect.fail(failure))
      }
      const granted = lease.add(new PermitHold(lease, request))
      if (isHeld) client.remember(request, granted, startedAt)
      else client.telemetry.of(kind.name).acquiredForAnybody(now - startedAt)
      return Effect.succeed({ granted, reply })
    },
    (cause) => {
      client.underWay--
      const onReply = kind.isLeased ? undefined : noteForgotten(ownerRef, sentAt + leaseMillis, cause)
      const failed = failAsking([ownerRef], leaseMillis, cause, restore, onReply)
      // Also when all that wait now have been served, it may be denied, and take a place: that is given up at once, and again once the request can
      // no longer take effect.
      const mayTakePlace = wants.ifDenied.permits > 0 && mayHaveRun(cause)
      return mayTakePlace ? Effect.ensuring(failed, leavePlace(client, keys.lock, true)) : failed
    }
  )
}

/** The most names that a client remembers to have warned about. */
const mostCompared = 1000

/**
 * Warns once per name if a semaphore has a different number of permits than its value says, since an existing semaphore
 * keeps its number. The check happens when permits are denied, because that reply contains the number.
 */
const compareTotal = (
  { client, keys, kind: { initial }, name }: PermitRequest,
  { available, exists, held }: PermitsReply
): Effect.Effect<void> => {
  const { comparedTotals } = client
  if (
    initial === undefined ||
    held === undefined ||
    !exists ||
    initial === available + held ||
    comparedTotals.size === mostCompared ||
    comparedTotals.has(keys.lock)
  ) {
    return Effect.void
  }
  comparedTotals.add(keys.lock)
  return Effect.annotateLogs(
    Effect.logWarning(
      `The semaphore already exists with ${available + held} permits; the ${initial} given here are ignored. ` +
        `PermitSemaphore.setPermits changes the number.`
    ),
    { semaphore: name }
  )
}

/** Warns once if Redis does not know a grant of anonymous permits at a time when it may have forgotten it; before, it was never made. */
const noteForgotten = (ownerRef: OwnerRef, forgottenAt: number, cause: Cause.Cause<LockStoreError>) => {
  let hasWarned = false
  return (reply: number): Effect.Effect<void> => {
    if (reply !== 0 || hasWarned || ownerRef.client.now() < forgottenAt) return Effect.void
    hasWarned = true
    return warnOfPermits(
      ownerRef,
      "Permits that may have been acquired can no longer be given back; the semaphore may have that many fewer from now on.",
      cause
    )
  }
}

/** A request of a fiber that does not wait yet. */
const notYet = ({ client, kind }: PermitRequest, ifDenied: Want): Wants => ({
  clientId: client.clientId,
  initial: kind.initial,
  ifDenied,
  ifGranted: nothing,
  isNew: true
})

const wait = (
  request: PermitRequest,
  restore: Restore,
  startedAt: number,
  /** The reply to the request before the wait, or its failure, if there was one. */
  answer: PermitsReply | LockStoreError | undefined,
  messagesSeen: number | undefined
): Effect.Effect<PermitHold, LockTimeout | LockStoreError> => {
  const { client, keys, kind, permits, waitMillis } = request
  const key = keys.lock
  const wanted = {
    kind: kind.name,
    permits,
    initial: kind.initial,
    waitsUntil: startedAt + waitMillis,
    hasAsked: answer !== undefined
  }
  const joined = Effect.flatMap(client.lines.join(key, "permit", wanted), ([line, waiter]) => {
    const waited = new PermitWait(request, restore, startedAt, line, waiter)
    // another waiter asks for all, and does not say how many permits there are to be
    if (kind.initial !== undefined && line.denial?.exists !== true && line.turn?.initial === undefined) line.changed()
    if (answer !== undefined) {
      line.mayHavePlace++
      waited.answered(answer, startedAt, waiter.hasTurn)
      line.listen(semaphoreChannel(key), messagesSeen, placesIn(client))
      // the place may be that of a request sent meanwhile, which did not know of this waiter
      if (line.askedAt >= startedAt) line.changed()
    }
    return Effect.onExit(untilServed(waited), (exit) => {
      line.leave(waiter)
      if (!line.isEmpty || line.mayHavePlace === 0) return Effect.void
      const left = leavePlace(client, key, false)
      // what was granted does not wait for that
      return Exit.isSuccess(exit) ? Effect.void : left
    })
  })
  return countWaiting(client, kind.name, joined)
}

const placesIn = ({ store }: LockClient): Mode | undefined => (store.handsOver ? "permit" : undefined)

/** One fiber that waits for permits. */
class PermitWait implements Wait<PermitHold, LockTimeout | LockStoreError> {
  readonly restore: Restore
  readonly #request: PermitRequest
  readonly #startedAt: number
  readonly #line: PermitLine
  readonly #waiter: Waiter

  constructor(request: PermitRequest, restore: Restore, startedAt: number, line: PermitLine, waiter: Waiter) {
    this.#request = request
    this.restore = restore
    this.#startedAt = startedAt
    this.#line = line
    this.#waiter = waiter
  }

  sleep(): Effect.Effect<void> {
    return this.#line.sleep(this.#waiter)
  }

  attempt(): Effect.Effect<PermitHold | undefined, LockStoreError> {
    return this.#waiter.hasTurn && this.#line.isDue && !this.#waiter.isLate ? this.#ask() : Effect.undefined
  }

  isOver(): boolean {
    return this.#waiter.isLate
  }

  gaveUp(): Effect.Effect<never, LockTimeout | LockStoreError> {
    return gaveUp(this.#request, this.#startedAt, this.#line.denial, this.#line.outage.failure)
  }

  #ask(): Effect.Effect<PermitHold | undefined, LockStoreError> {
    const line = this.#line
    const waiter = this.#waiter
    const { client, keys } = this.#request
    const channel = semaphoreChannel(keys.lock)
    const takesPlaces = client.store.handsOver
    line.asked(waiter)
    const messagesSeen = client.subscriptions.messagesSeen(channel, takesPlaces)
    const sentAt = client.now()
    const wants = wantsOf(line, waiter)
    const mayHavePlace = ++line.mayHavePlace
    return Effect.map(catchTransient(ask(this.#request, this.restore, this.#startedAt, wants)), (answer) => {
      if (!(answer instanceof LockStoreError) && answer.granted !== undefined) {
        // unless another request may have taken one since
        if (wants.ifGranted.permits === 0 && line.mayHavePlace === mayHavePlace) line.mayHavePlace = 0
        line.granted(true, false)
        line.served(waiter, answer.reply.available)
        // fibers that have joined meanwhile: the place does not tell of them
        if (takesPlaces && line.wantWithout(undefined).permits !== wants.ifGranted.permits) line.changed()
        return answer.granted
      }
      this.answered(answer instanceof LockStoreError ? answer : answer.reply, sentAt, true)
      if (!line.isListening) line.listen(channel, messagesSeen, placesIn(client))
      return undefined
    })
  }

  /** Takes note of a request that was denied or has failed; the turn goes to the first waiter for which the free permits are enough. */
  answered(answer: PermitsReply | LockStoreError, sentAt: number, isAskers: boolean): void {
    const line = this.#line
    if (answer instanceof LockStoreError) {
      line.failed(answer, sentAt, isAskers)
      if (isAskers) line.pass(0)
      return
    }
    line.denial = answer
    line.supply = supplyOf(answer, this.#request.kind.initial)
    // it was deleted, and others say how many there are to be
    if (!answer.exists && this.#waiter.initial === undefined && line.initial !== undefined) line.changed()
    line.answered(answer.remaining, isAskers)
    if (isAskers) line.pass(answer.available)
  }
}

const wantsOf = (line: PermitLine, waiter: Waiter): Wants => ({
  clientId: line.client.clientId,
  initial: waiter.initial ?? (line.denial?.exists === true ? undefined : line.initial),
  ifDenied: line.wantWithout(undefined),
  ifGranted: line.wantWithout(waiter),
  isNew: false
})

/** Ends the wait: with the store's own `failure` if the last request failed. Run the result at once. */
const gaveUp = (
  { client, kind, name, permits, waitMillis }: PermitRequest,
  startedAt: number,
  last: PermitsReply | undefined,
  failure: LockStoreError | undefined
): Effect.Effect<never, LockTimeout | LockStoreError> => {
  if (failure !== undefined) return Effect.fail(failure)
  client.telemetry.of(kind.name).timedOut++
  return Effect.fail(
    new LockTimeout({
      lock: name,
      waited: waitedSince(startedAt, client.now(), waitMillis),
      holder: undefined,
      permits: {
        wanted: permits,
        available: last?.available,
        ...(last?.exists === false ? { exists: false } : undefined)
      }
    })
  )
}
