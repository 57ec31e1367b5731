/**
 * Sends one acquire command, for one lock or for several.
 */
import * as Effect from "effect/Effect"
import { LockStoreError } from "../../LockError.ts"
import type { AcquireRequest } from "./AcquireRequest.ts"
import { describeWrongType, describeWrongTypeOfOne } from "../store/wrongType.ts"
import { Hold } from "../hold/Hold.ts"
import { type AcquireParams, type LockProtocol, tokenKey, tokenLife } from "../protocol/LockProtocol.ts"
import type { LockKeys } from "../store/keys.ts"
import type { AcquiringClient } from "./AcquiringClient.ts"
import * as multiLock from "../store/operations/multiLock.ts"
import type { Denial } from "../store/operations/replies/replies.ts"
import { acknowledgedBy } from "../store/operations/StoreOperation.ts"
import { GrantedTooLate, isRetryable, transientFailure } from "../store/transient.ts"
import { Lease } from "../hold/Lease.ts"
import type { HeldRef } from "../hold/releaseCommand.ts"
import { isForbidden, matchOutcome, mayHaveRun } from "../store/outcome.ts"
import { rollback, rollbackSilently, rollbackUnknown, cancelWriterIntent } from "../hold/rollback.ts"
import type { Restore } from "../hold/guard.ts"

export type { Denial }

/** The owner of a request. */
class RequestOwner implements HeldRef {
  readonly client: AcquiringClient
  readonly keys: LockKeys
  readonly kind: LockProtocol
  readonly name: string
  readonly owner: string

  constructor({ client, keys, kind, name }: AcquireRequest, owner: string) {
    this.client = client
    this.keys = keys
    this.kind = kind
    this.name = name
    this.owner = owner
  }
}

export const ownerRefOf = (request: AcquireRequest, owner: string): HeldRef => new RequestOwner(request, owner)

export const leaseMillisOf = (request: AcquireRequest): number =>
  request.leaseMillis ?? request.client.options.watchdogLeaseMillis

/** The write lock that the caller of a read lock holds. */
export const writerOf = ({ client, identity, keys, kind }: AcquireRequest): Lease | undefined =>
  kind.mode === "read" ? client.find(keys.lock, "write", identity) : undefined

/** The owner of a request, and what follows each outcome. */
export interface Attempt<A, B, E> {
  readonly ownerRef: HeldRef
  /** Whether the caller will wait when it is denied. */
  readonly waits: boolean
  /** Whether this owner has asked before. */
  readonly hasAsked?: boolean
  /** Whether it takes the place of this client if it is denied. Default: true. */
  readonly takesPlace?: boolean
  /** Whether it is a reader that has waited with one that was let in. Default: false. */
  readonly isLetIn?: boolean
  readonly restore: Restore
  /** When the acquisition began, on the monotonic clock. */
  readonly startedAt: number
  onGranted(hold: Hold): Effect.Effect<A>
  onDenied(denial: Denial): Effect.Effect<B, E>
  /** Called when it is granted or fails for good; `onDenied` and `onTransient` do the same themselves if necessary. */
  onSettled?(): void
  /** Follows a transient failure, if the caller waits. */
  onTransient?(failure: LockStoreError, mayHaveRun: boolean): Effect.Effect<B, E>
}

class AcquireTerms implements AcquireParams {
  readonly leaseMillis: number
  readonly waits: boolean
  readonly hasAsked: boolean
  readonly takesPlace: boolean
  readonly isLetIn: boolean
  readonly writer: Lease | undefined

  constructor(attempt: Attempt<unknown, unknown, unknown>, leaseMillis: number, writer: Lease | undefined) {
    const { hasAsked = false, isLetIn = false, takesPlace = true, waits } = attempt
    this.leaseMillis = leaseMillis
    this.waits = waits
    this.hasAsked = hasAsked
    this.takesPlace = takesPlace
    this.isLetIn = isLetIn
    this.writer = writer
  }
}

/**
 * One round trip, sent as soon as the effect runs. If interrupted, or failed with unknown outcome, it is rolled back before
 * anything else happens.
 */
export const acquireOnce = <A, B, E>(
  request: AcquireRequest,
  attempt: Attempt<A, B, E>
): Effect.Effect<A | B, E | LockStoreError> => {
  const { client, kind, name } = request
  const { ownerRef, restore, startedAt, waits } = attempt
  const leaseMillis = leaseMillisOf(request)
  const writer = writerOf(request)
  const acquisition = kind.acquire(ownerRef, new AcquireTerms(attempt, leaseMillis, writer))
  const command = acknowledgedBy(client.bounded(acquisition), request)
  const sentAt = client.now()
  // the key of a writer that also reads lives as long as its longest read
  writer?.asksFor(leaseMillis, sentAt)
  client.underWay++
  return matchOutcome(
    restore(client.store.run(command)),
    (answer): Effect.Effect<A | B, E | LockStoreError> => {
      client.underWay--
      if (typeof answer !== "number" && answer.isPartial) {
        const pause = waits && answer.pauseMillis > 0 ? restore(Effect.sleep(answer.pauseMillis)) : Effect.void
        return Effect.matchCauseEffect(Effect.andThen(rollbackSilently(ownerRef, leaseMillis), pause), {
          onSuccess: () => attempt.onDenied(answer),
          onFailure: (cause) => {
            attempt.onSettled?.()
            return Effect.failCause(cause)
          }
        })
      }
      if (typeof answer !== "number") return attempt.onDenied(answer)
      const now = client.now()
      const granted = Lease.granted(request, { owner: ownerRef.owner, token: answer, sentAt, leaseMillis }, now)
      const hold = granted && possess(request, granted, new Hold(granted, request), startedAt)
      if (hold !== undefined) {
        // only now: a waiter that is resumed here runs at once, and must see that this process holds the lock
        attempt.onSettled?.()
        return attempt.onGranted(hold)
      }
      const failure = grantedTooLate(name, command.operation.name, now - sentAt, leaseMillis)
      const isTick = waits && isRetryable(failure)
      // a waiter with a place in Redis retries with the same owner id, and counts the lease from then
      if (isTick && kind.queued) return attempt.onTransient!(failure, true)
      const undone = rollback(ownerRef, leaseMillis)
      if (isTick) return Effect.flatMap(undone, () => attempt.onTransient!(failure, true))
      attempt.onSettled?.()
      return Effect.andThen(undone, Effect.fail(failure))
    },
    (cause) => {
      client.underWay--
      const failure = waits ? transientFailure(cause) : undefined
      if (failure === undefined) attempt.onSettled?.()
      const failed: Effect.Effect<B, E | LockStoreError> =
        failure === undefined
          ? describeWrongType(client, kind.title, ownerRef.keys.lock, cause)
          : Effect.suspend(() => attempt.onTransient!(failure, mayHaveRun(cause)))
      if (!mayHaveRun(cause) || (failure !== undefined && kind.queued)) return failed
      const undone = rollbackUnknown(ownerRef, leaseMillis, isForbidden(cause))
      // the local queue withdraws its own announcement
      const isToldByQueue = client.waitQueues.get(ownerRef.keys.lock, kind.mode) !== undefined
      return waits && kind.cancelWriterIntent !== undefined && !isToldByQueue
        ? Effect.andThen(Effect.andThen(undone, cancelWriterIntent(ownerRef)), failed)
        : Effect.andThen(undone, failed)
    }
  )
}

/** Records a granted lease. */
export const possess = <H extends Hold>(
  { client, minHoldMillis = 0 }: AcquireRequest,
  lease: Lease,
  outermost: H,
  startedAt: number
): H => {
  lease.begin(outermost)
  lease.keepFor(minHoldMillis)
  client.remember(lease, outermost)
  client.telemetry.acquired(lease.kind.name, lease.acquiredAt - startedAt)
  return outermost
}

/** Which of the locks that one command was to acquire is taken. */
export interface DeniedAt {
  readonly index: number
}

/** Acquires several locks of one client and slot by one command, all or none. The caller must hold none of them. */
export const tryAcquireTogether = (
  requests: ReadonlyArray<AcquireRequest>,
  restore: Restore
): Effect.Effect<ReadonlyArray<Hold> | DeniedAt, LockStoreError> => {
  const [first] = requests as readonly [AcquireRequest]
  const { client } = first
  const owner = client.nextOwner()
  const leaseMillis = leaseMillisOf(first)
  const sentAt = client.now()
  const ownerRefs = requests.map((request) => ownerRefOf(request, owner))
  const all = { concurrency: "unbounded", discard: true } as const
  const locks = requests.map(({ keys, kind }) => ({ lock: keys.lock, tokenKey: tokenKey(kind, keys) }))
  client.underWay++
  const command = multiLock.acquire(locks, owner, leaseMillis, tokenLife(client, leaseMillis))
  const asked = client.store.run(acknowledgedBy(command, first))
  return Effect.matchCauseEffect(restore(asked), {
    onSuccess: (reply): Effect.Effect<ReadonlyArray<Hold> | DeniedAt, LockStoreError> => {
      client.underWay--
      if ("deniedAt" in reply) return Effect.succeed({ index: reply.deniedAt })
      const { tokens } = reply
      const now = client.now()
      const holds: Array<Hold> = []
      for (const [i, request] of requests.entries()) {
        const token = typeof tokens === "number" ? tokens : tokens[i]!
        const granted = Lease.granted(request, { owner, token, sentAt, leaseMillis }, now)
        // it is too late for all of them
        if (granted === undefined) break
        holds.push(possess(request, granted, new Hold(granted, request), sentAt))
      }
      return holds.length > 0
        ? Effect.succeed(holds)
        : Effect.andThen(
            Effect.forEach(ownerRefs, (ownerRef) => rollback(ownerRef, leaseMillis), all),
            Effect.fail(grantedTooLate(first.name, "multi_lock/acquire", now - sentAt, leaseMillis))
          )
    },
    onFailure: (cause) => {
      client.underWay--
      return mayHaveRun(cause)
        ? Effect.andThen(
            Effect.forEach(ownerRefs, (ownerRef) => rollbackUnknown(ownerRef, leaseMillis, isForbidden(cause)), all),
            Effect.failCause(cause)
          )
        : describeWrongTypeOfOne(
            client,
            requests.map(({ keys, kind }) => ({ expected: kind.title, key: keys.lock })),
            cause
          )
    }
  })
}

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
