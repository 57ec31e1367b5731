/**
 * Anonymous permits that were granted together. The counter in Redis does not know whose they are, so each grant leaves a
 * marker beside it, with which it is taken back exactly once, no matter how often that is requested.
 */
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { LockLost, LockStoreError, type LossReason } from "../../LockError.ts"
import type { LockClient } from "../client/LockClient.ts"
import type { PermitReply } from "../kinds/kinds.ts"
import type { Loss } from "../report/telemetry.ts"
import { maxSends } from "../store/commands.ts"
import { describeWrongType, isForbidden, mayHaveRun } from "../store/failures.ts"
import { type Asking, uncounted } from "../store/operations/permitPlaces.ts"
import * as semaphore from "../store/operations/semaphore.ts"
import type { Guarded, Restore } from "./guard.ts"
import { Dependents } from "./Lease.ts"
import { releaseUntilConfirmed, type RepeatedRelease, repeatRelease, sendWithin } from "./release.ts"
import { rollbackUntilSettled } from "./rollback.ts"

/** Its name in metrics and spans. */
export const semaphoreKind = { name: "semaphore" }

/** Its name in messages. */
export const semaphoreTitle = "Semaphore"

/** How long the marker of permits that are held lives. */
const heldMarkerMillis = 24 * 60 * 60 * 1000

/** Permits held for longer than their marker's life less this margin are given back without checking the marker. */
const trustMillis = 60 * 60 * 1000

/**
 * The shortest time that a marker outlives the last possible reply to its request: until then an acquisition with unknown
 * outcome can be taken back.
 */
const undoMillis = 60 * 1000

/**
 * Who gives permits back: this process, which holds them and knows their marker; or any process, as for `Semaphore.acquire`, where
 * the marker serves only to take back an acquisition with unknown outcome.
 */
export type ReturnedBy = "holder" | "anybody"

export class AnonymousPermits implements Guarded {
  readonly kind = semaphoreKind
  readonly client: LockClient
  readonly name: string
  readonly key: string
  readonly permits: number
  readonly returnedBy: ReturnedBy
  readonly markerMillis: number
  readonly id: string
  readonly askedAt: number
  readonly #dependents = new Dependents()
  #released = false
  #lost: LockLost | undefined = undefined
  /** How often this client had sent its recent releases again when these were given back. */
  #repeats: number | undefined = undefined

  constructor(client: LockClient, name: string, key: string, permits: number, returnedBy: ReturnedBy) {
    this.client = client
    this.name = name
    this.key = key
    this.permits = permits
    this.returnedBy = returnedBy
    const shortestMillis = undoMillis + maxSends * Math.ceil(client.store.commandTimeoutMillis)
    this.markerMillis = returnedBy === "holder" ? Math.max(heldMarkerMillis, shortestMillis) : shortestMillis
    this.id = client.nextOwner()
    this.askedAt = client.now()
  }

  /** Asks for the permits; `initial` is what the semaphore begins with where it does not exist, or undefined. */
  ask(
    restore: Restore,
    startedAt: number,
    initial: number | undefined,
    asking: Asking
  ): Effect.Effect<PermitReply<AnonymousPermits>, LockStoreError> {
    const { client, key } = this
    client.underWay++
    return Effect.matchCauseEffect(
      restore(client.store.run(semaphore.acquire(key, initial, this, asking, client.store))),
      {
        onSuccess: ({ available, exists, isGranted, remaining }): Effect.Effect<PermitReply<AnonymousPermits>> => {
          client.underWay--
          if (!isGranted) {
            return Effect.succeed({ granted: undefined, available, remaining, exists, supply: uncounted(initial) })
          }
          // permits that any process may give back are not counted as held: nobody would know when that ends
          if (this.returnedBy === "holder") {
            client.telemetry.of(this.kind.name).waitDuration.record(client.now() - startedAt)
            client.rememberPermits(this)
          }
          return Effect.succeed({ granted: this, available, remaining: -1, exists: true, supply: undefined })
        },
        onFailure: (cause: Cause.Cause<LockStoreError>) => {
          client.underWay--
          const failed = describeWrongType(client, semaphoreTitle, key, cause)
          return mayHaveRun(cause) ? Effect.andThen(this.#rollback(cause), failed) : failed
        }
      }
    )
  }

  /**
   * Gives the permits back; run it uninterruptibly. Fails if Redis no longer knows them, or cannot be reached in time;
   * attempts then continue in the background.
   */
  get release(): Effect.Effect<void, LockLost | LockStoreError> {
    return Effect.suspend(() => this.releaseNow())
  }

  releaseNow(): Effect.Effect<void, LockLost | LockStoreError> {
    if (this.#released) return Effect.void
    this.#released = true
    if (this.#lost !== undefined) return Effect.fail(this.#lost)
    const { client } = this
    const now = client.now()
    client.anonymousPermits.delete(this)
    client.telemetry.of(this.kind.name).holdDuration.record(now - this.askedAt)
    const giveBack = this.#giveBack(now)
    this.#repeats = client.releases?.repeats
    client.underWay++
    return Effect.ensuring(
      Effect.matchEffect(sendWithin(client, giveBack.send, client.options.releaseTimeoutMillis, this.name), {
        onSuccess: (reply) => this.#returned(reply === 1),
        onFailure: (error) => this.#retry(giveBack, now, error)
      }),
      Effect.sync(() => void client.underWay--)
    )
  }

  /** Called only when the client closes: nothing else ends anonymous permits early. */
  lose(reason: Loss, now: number): void {
    if (this.#lost !== undefined || this.#released) return
    this.#lost = this.#lossOf(reason)
    this.client.anonymousPermits.delete(this)
    const metrics = this.client.telemetry.of(this.kind.name)
    metrics.lost[reason]++
    metrics.holdDuration.record(now - this.askedAt)
    this.#dependents.tell(this.client)
  }

  checkLost(): LockLost | undefined {
    return this.#lost
  }

  isOver(): boolean {
    return this.#lost !== undefined
  }

  onLost(listener: () => void): () => void {
    return this.#dependents.add(listener, this.client, this.#lost !== undefined)
  }

  get clients(): ReadonlyArray<LockClient> {
    return [this.client]
  }

  get owner(): string {
    return this.id
  }

  get isUnused(): boolean {
    return this.#dependents.isEmpty
  }

  /** Sends their return until Redis confirms it. */
  get returnUntilConfirmed(): Effect.Effect<number | undefined> {
    return Effect.suspend(() => releaseUntilConfirmed(this.#giveBack(this.client.now())))
  }

  #lossOf(reason: LossReason): LockLost {
    return new LockLost({ lock: this.name, owner: this.id, reason, late: Duration.zero })
  }

  get #notKnown(): Effect.Effect<never, LockLost> {
    return Effect.suspend(() => {
      this.client.telemetry.of(this.kind.name).lost.NotOwner++
      return Effect.fail((this.#lost = this.#lossOf("NotOwner")))
    })
  }

  /** The command that gives held permits back. Whether it is trusted is decided once: to Redis all attempts must be the same. */
  #giveBack(now: number): RepeatedRelease {
    const isTrusted = now - this.askedAt > heldMarkerMillis - trustMillis
    return isTrusted
      ? this.#repeatedReturn(heldMarkerMillis, now + heldMarkerMillis - trustMillis)
      : this.#repeatedReturn(0, this.askedAt + heldMarkerMillis)
  }

  /** With a `trustedMillis` of zero, Redis gives back only what the marker records. */
  #repeatedReturn(trustedMillis: number, over: number): RepeatedRelease {
    const { client, key } = this
    return {
      client,
      send: Effect.suspend(() => client.store.run(semaphore.giveBack(key, this, trustedMillis, client.store))),
      over,
      warn: (failure) =>
        Effect.annotateLogs(
          Effect.logWarning("Could not give permits back; the semaphore has that many fewer from now on.", failure),
          { semaphore: this.name, permits: this.permits }
        )
    }
  }

  /** Repeats it within the release timeout. */
  #retry(
    giveBack: RepeatedRelease,
    sentAt: number,
    error: LockStoreError
  ): Effect.Effect<void, LockLost | LockStoreError> {
    const until = sentAt + this.client.options.releaseTimeoutMillis
    const outlook = "the work is done; the permits are given back as soon as Redis answers this process"
    return Effect.flatMap(repeatRelease(giveBack, error, until, this.name, outlook), ({ mayHaveRunBefore, reply }) =>
      this.#returned(reply === 1 || mayHaveRunBefore)
    )
  }

  /** After a reconnect the return that was sent again may have been first. */
  #returned(isReturned: boolean): Effect.Effect<void, LockLost> {
    return isReturned || this.#repeats !== this.client.releases?.repeats ? Effect.void : this.#notKnown
  }

  /** Takes back permits that may have been granted without our knowledge. */
  #rollback(cause: Cause.Cause<LockStoreError>): Effect.Effect<void> {
    const { client } = this
    const markerEnd = this.askedAt + this.markerMillis
    const undo = releaseUntilConfirmed(this.#repeatedReturn(0, markerEnd), isForbidden(cause))
    let hasWarned = false
    const undoOrWarn = Effect.tap(undo, (reply) => {
      // while the marker must still exist, a grant that Redis does not know was never made
      if (reply !== 0 || client.now() < markerEnd || hasWarned) return Effect.void
      hasWarned = true
      return Effect.annotateLogs(
        Effect.logWarning(
          "Permits that may have been acquired can no longer be given back; the semaphore may have that many fewer from now on.",
          cause
        ),
        { semaphore: this.name, permits: this.permits }
      )
    })
    return rollbackUntilSettled(client, undoOrWarn)
  }
}
