/**
 * Sends one acquire command, for one lock or for several; or begins without one, with what a release has handed over.
 */
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import { LockStoreError } from "../../LockError.ts"
import type { LockClient } from "../client/LockClient.ts"
import { Hold, ownHold } from "../hold/Hold.ts"
import { inMicrotask, Lease, type Identity } from "../hold/Lease.ts"
import { rollback, rollbackUnknown } from "../hold/rollback.ts"
import {
  type AcquireParams,
  excludes,
  type LockProtocol,
  type LockRef,
  type OwnerRef,
  takesPlaces,
  tokenKey,
  tokenLife
} from "../kinds/kinds.ts"
import type { Times } from "../options/acquireOptions.ts"
import { kindOn } from "../report/telemetry.ts"
import { acknowledgementOf, matchOutcome } from "../store/commands.ts"
import {
  describeWrongType,
  GrantedTooLate,
  isForbidden,
  isRetryable,
  mayHaveRun,
  transientFailure
} from "../store/failures.ts"
import type { LockKeys } from "../store/keys.ts"
import { acknowledgedBy, type Denial } from "../store/operations/StoreOperation.ts"
import type { Grant } from "../wait/stage.ts"

export type { Denial }

/** What a caller asks for, of one lock or semaphore: validated, and ready to be sent. */
export class AcquireRequest implements LockRef, Times {
  readonly client: LockClient
  readonly kind: LockProtocol
  readonly name: string
  readonly keys: LockKeys
  readonly identity: Identity
  readonly waitMillis: number
  readonly leaseMillis: number
  /** Whether the watchdog renews that lease. */
  readonly isRenewed: boolean
  readonly minHoldMillis: number
  readonly maxHoldMillis: number | undefined
  readonly acknowledge: Times["acknowledge"]

  constructor(
    { kind, name }: Pick<LockRef, "kind" | "name">,
    { client, keys }: Pick<LockRef, "client" | "keys">,
    identity: Identity,
    { acknowledge, leaseMillis, maxHoldMillis, minHoldMillis, waitMillis }: Times
  ) {
    this.client = client
    this.kind = kind
    this.name = name
    this.keys = keys
    this.identity = identity
    this.waitMillis = waitMillis
    this.leaseMillis = leaseMillis ?? client.options.watchdogLeaseMillis
    this.isRenewed = leaseMillis === undefined
    this.minHoldMillis = minHoldMillis
    this.maxHoldMillis = maxHoldMillis
    this.acknowledge = acknowledge
  }

  /** The name of its kind in spans. */
  get label(): string {
    return kindOn(this.client.isQuorum, this.kind.name)
  }
}

/** How a request is sent. */
interface AskTerms {
  /** Whether the caller will wait when it is denied. */
  readonly waits: boolean
  /** When the acquisition began, on the monotonic clock. */
  readonly startedAt: number
  /** When its client was first denied since it was last let in, on the monotonic clock. */
  readonly deniedAt?: number | undefined
  /** Whether it takes the place of this client if it is denied. Default: true. */
  readonly takesPlace?: boolean
  /** Of an owner that waits for a fair lock. */
  readonly secret?: string
}

/** A request as it is sent, under one owner. */
export class Ask implements OwnerRef, AcquireParams {
  readonly client: LockClient
  readonly keys: LockKeys
  readonly kind: LockProtocol
  readonly name: string
  readonly owner: string
  readonly leaseMillis: number
  readonly tokenKey: string
  readonly tokenLifeMillis: number
  readonly waits: boolean
  readonly hasAsked: boolean
  readonly placeAgeMillis: number
  readonly takesPlace: boolean
  readonly place: this | undefined
  readonly secret: string
  readonly startedAt: number
  readonly sentAt: number
  /** The number of messages that had arrived before, of those that wake a waiter; undefined while it would not hear them. */
  readonly messagesSeen: number | undefined
  readonly writer: Lease | undefined
  /** Whether it may have been run, as far as is known. */
  mayHaveRun = true

  constructor(
    request: AcquireRequest,
    { deniedAt, secret = "", startedAt, takesPlace = true, waits }: AskTerms,
    /** One that may have asked before; absent for a new one. */
    owner?: string
  ) {
    const { client, keys, kind, name } = request
    this.client = client
    this.keys = keys
    this.kind = kind
    this.name = name
    this.owner = owner ?? client.nextOwner()
    this.leaseMillis = request.leaseMillis
    this.tokenKey = tokenKey(kind, keys)
    this.tokenLifeMillis = tokenLife(client, request.leaseMillis)
    this.waits = waits
    this.hasAsked = owner !== undefined
    this.takesPlace = takesPlace
    const waitsInPlace = waits && takesPlaces(request)
    this.place = waitsInPlace && takesPlace ? this : undefined
    this.secret = secret
    this.startedAt = startedAt
    this.sentAt = client.now()
    // composing the channel costs more than the look whether any is open
    this.messagesSeen =
      waits && !kind.queued && !client.subscriptions.isEmpty
        ? client.subscriptions.messagesSeen(kind.channel(keys, client.clientId), waitsInPlace)
        : undefined
    this.placeAgeMillis = deniedAt === undefined ? 0 : this.sentAt - deniedAt
    this.writer = kind.mode === "read" ? writerOf(request) : undefined
  }

  get waitedMillis(): number {
    return this.sentAt - this.startedAt
  }

  get overAt(): number {
    return this.sentAt + this.leaseMillis
  }
}

/** The write lock that the caller of a read lock holds. */
const writerOf = ({ client, identity, keys }: AcquireRequest): Lease | undefined =>
  client.leases.find(keys.lock, "write", identity)

/** The lease by which the caller holds the lock already, so that its request waits for nobody; for a reader also that of its write lock. */
export const ownLease = (request: AcquireRequest): Lease | undefined => {
  const { client, identity, keys, kind } = request
  return client.leases.find(keys.lock, kind.mode, identity) ?? (kind.mode === "read" ? writerOf(request) : undefined)
}

/** Gives a part of an uninterruptible region the interruptibility of its caller. */
export type Restore = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

/**
 * One round trip, sent as soon as the effect runs. If interrupted, or failed with unknown outcome, it is rolled back before
 * anything else happens. To a caller that waits, a transient failure is an answer, too.
 */
export const acquireOnce = (
  request: AcquireRequest,
  ask: Ask,
  restore: Restore
): Effect.Effect<Hold | Denial | LockStoreError, LockStoreError> => {
  const { client, kind, leaseMillis, sentAt, waits, writer } = ask
  const command = client.bounded(acknowledgedBy(kind.acquire(ask), request))
  // the key of a writer that also reads lives as long as its longest read
  writer?.asksFor(leaseMillis, sentAt)
  client.underWay++
  return matchOutcome(
    restore(client.run(command)),
    (answer): Effect.Effect<Hold | Denial | LockStoreError, LockStoreError> => {
      client.underWay--
      if (typeof answer !== "number") {
        return answer.isPartial ? takeBackMinority(ask, answer, restore) : Effect.succeed(answer)
      }
      const now = client.now()
      const lease = Lease.granted(request, { owner: ask.owner, token: answer, sentAt, leaseMillis }, now)
      if (lease === undefined) {
        const failure = grantedTooLate(ask.name, command.operation.name, now - sentAt, leaseMillis)
        const goesOn = waits && isRetryable(failure)
        // a waiter with a place in Redis retries with the same owner id, and counts the lease from then
        if (goesOn && kind.queued) return Effect.succeed(failure)
        return Effect.andThen(rollback(ask, leaseMillis), goesOn ? Effect.succeed(failure) : Effect.fail(failure))
      }
      lease.writer = writer
      return begun(client.remember(request, lease.add(new Hold(lease, request)), ask.startedAt))
    },
    (cause) => {
      client.underWay--
      ask.mayHaveRun = mayHaveRun(cause)
      const transient = waits ? transientFailure(cause) : undefined
      if (transient === undefined) return failAsking([ask], leaseMillis, cause, restore)
      return ask.mayHaveRun && !kind.queued
        ? Effect.as(rollbackUnknown(ask, leaseMillis, { asksAgain: true }), transient)
        : Effect.succeed(transient)
    }
  )
}

/** Silently: a waiter that asked again would win a minority as well, take it back, and wake the others in turn. */
const takeBackMinority = (ask: Ask, denial: Denial, restore: Restore): Effect.Effect<Denial> => {
  const { pauseMillis } = denial
  const pause = ask.waits && pauseMillis > 0 ? restore(Effect.sleep(pauseMillis)) : Effect.void
  return Effect.as(Effect.andThen(rollback(ask, ask.leaseMillis, ""), pause), denial)
}

/** Fails as the request of these owners has, once what it may have been granted is taken back. A wrong type is described. */
export const failAsking = (
  ownerRefs: ReadonlyArray<OwnerRef>,
  leaseMillis: number,
  cause: Cause.Cause<LockStoreError>,
  restore: Restore,
  onReply?: (reply: number) => Effect.Effect<void>
): Effect.Effect<never, LockStoreError> => {
  const asked = ownerRefs.map(({ keys, kind }) => ({ expected: kind.title, key: keys.lock }))
  const described = restore(describeWrongType(ownerRefs[0]!.client, asked, cause))
  if (!mayHaveRun(cause)) return described
  const terms = { isForbidden: isForbidden(cause), onReply }
  const undone = Effect.forEach(ownerRefs, (ownerRef) => rollbackUnknown(ownerRef, leaseMillis, terms), {
    concurrency: "unbounded",
    discard: true
  })
  return Effect.andThen(undone, asked.length === 1 ? described : Effect.failCause(cause))
}

/**
 * Begins with what the message of a release grants, without a request: undefined if the grant may be too old by now, or is not what was
 * asked for. How old it is at most follows from the server's time in the message and what is known of the server's clock: never from when
 * the message arrived, as it may have lain on its way.
 */
export const takeOver = (request: AcquireRequest, grant: Grant, startedAt: number): Hold | undefined => {
  const { client, keys, kind, leaseMillis } = request
  if (acknowledgementOf(client, request) !== undefined) return undefined
  if (leaseMillis < grant.leaseMillis || !client.accepts(kind, grant.token)) return undefined
  const since = client.store.longestSince(keys.lock, grant.serverMicros)
  if (since < 0 || since > grant.leaseMillis * leastLeft) return undefined
  const now = client.now()
  const lease = Lease.granted(request, { ...grant, sentAt: now - since }, now)
  if (lease === undefined) return undefined
  lease.unconfirmed = leaseMillis
  const hold = lease.add(new Hold(lease, request))
  // without a connection no section begins: it could not keep the lock
  return client.watchdog.extend(lease) ? client.remember(request, hold, startedAt) : undefined
}

/** The share of its lease that a grant must have left: enough to extend it. */
const leastLeft = 0.5

/** Goes on with a hold that has just begun, after it has ended the holds that it proves lost. */
export const begun = (hold: Hold): Effect.Effect<Hold> =>
  loseOthers(hold) ? Effect.as(inMicrotask(hold.lease.client), hold) : Effect.succeed(hold)

export const grantedTooLate = (
  name: string,
  operation: string,
  tookMillis: number,
  leaseMillis: number
): LockStoreError =>
  new LockStoreError({
    operation,
    lock: name,
    reason: "TimedOut",
    cause: new GrantedTooLate(tookMillis, leaseMillis)
  })

/**
 * Ends the other holdings of this process that exclude this one: it was granted, so they are lost, even if nothing else has told so yet.
 * Returns whether there were any; their sections are interrupted in the next microtask.
 */
export const loseOthers = ({ by, lease }: Hold): boolean => {
  if (lease.alongside === undefined) return false
  const { client, keys, kind } = lease
  const others = client.leases.of(keys.lock).filter(
    (held) =>
      held !== lease &&
      excludes(held.kind.mode, kind.mode) &&
      // a writer may also read
      ownHold(by, held) === undefined &&
      held.isHeld()
  )
  for (const held of others) held.lose("NotOwner")
  return others.length > 0
}
