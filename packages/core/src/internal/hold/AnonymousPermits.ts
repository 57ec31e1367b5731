/**
 * Anonymous permits that were granted at once. The counter in Redis does not know whose they are, so each grant leaves a
 * marker beside it, by which it is taken back exactly once, however often that is asked for.
 */
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { LockLost, LockStoreError, type LossReason } from "../../LockError.ts"
import type { Restore } from "../acquire/acquire.ts"
import { isForbidden, mayHaveRun } from "../acquire/acquireOnce.ts"
import type { Returnable } from "../client/closing.ts"
import type { PermitReply } from "../acquire/acquirePermits.ts"
import { Dependents } from "./Dependents.ts"
import { describeWrongType } from "../report/wrongType.ts"
import type { Guarded } from "./guard.ts"
import { grantMarker, permitIds, semaphoreChannel } from "../store/keys.ts"
import type { LockClient } from "../client/LockClient.ts"
import { isFinal } from "../store/passing.ts"
import { rollbackUntilSettled } from "./release.ts"
import type { Reply } from "../../RedisDriver.ts"

/** In metrics and spans. */
export const semaphoreKind = { name: "semaphore" }

/** In messages. */
export const semaphoreTitle = "Semaphore"

/** How long the marker of permits that are held lives. What is held for longer is given back on trust. */
export const heldMarkerMillis = 24 * 60 * 60 * 1000

/**
 * How long a marker lives that serves only to undo an acquisition: nobody gives back these permits by their marker.
 */
export const undoMarkerMillis = 60 * 1000

const firstPauseMillis = 50
const longestPauseMillis = 1000

export class AnonymousPermits implements Guarded, Returnable {
  readonly kind = semaphoreKind
  readonly client: LockClient
  readonly name: string
  readonly key: string
  readonly permits: number
  readonly markerMillis: number
  readonly id: string
  readonly askedAt: number
  readonly #dependents = new Dependents()
  #released = false
  #lost: LockLost | undefined = undefined

  constructor(client: LockClient, name: string, key: string, permits: number, markerMillis: number) {
    this.client = client
    this.name = name
    this.key = key
    this.permits = permits
    this.markerMillis = markerMillis
    this.id = client.nextOwner()
    this.askedAt = client.now()
  }

  /** Asks for the permits; `initial` is what the semaphore begins with where it does not exist, or empty. */
  ask(
    restore: Restore,
    startedAt: number,
    initial: number | ""
  ): Effect.Effect<PermitReply<AnonymousPermits>, LockStoreError> {
    const { client, key } = this
    client.underWay++
    return Effect.matchCauseEffect(
      restore(
        client.store.run(
          "semaphore/acquire",
          [key, permitIds(key), grantMarker(key, this.id), semaphoreChannel(key)],
          [initial, this.permits, this.markerMillis, client.store.publish]
        )
      ),
      {
        onSuccess: (reply): Effect.Effect<PermitReply<AnonymousPermits>> => {
          client.underWay--
          const [granted, available, exists] = reply as readonly [number, number, number]
          if (granted !== 1) {
            return Effect.succeed({ granted: undefined, available, remaining: -1, exists: exists === 1 })
          }
          // of what is not given back by its marker, nobody would tell when it is held no more
          if (this.markerMillis === heldMarkerMillis) {
            client.telemetry.acquired(this, client.now() - startedAt)
            client.rememberPermits(this)
          }
          return Effect.succeed({ granted: this, available, remaining: -1, exists: true })
        },
        onFailure: (cause: Cause.Cause<LockStoreError>) => {
          client.underWay--
          const failed = describeWrongType(client, semaphoreTitle, key, cause)
          return mayHaveRun(cause) ? Effect.andThen(this.#undo(isForbidden(cause)), failed) : failed
        }
      }
    )
  }

  /**
   * Gives the permits back; to be run uninterruptibly. Fails where Redis no longer knows of them, or cannot be told in time:
   * then it goes on in the background.
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
    client.telemetry.released(this, now - this.askedAt)
    const isOld = now - this.askedAt > this.markerMillis - undoMarkerMillis
    client.underWay++
    return Effect.ensuring(
      Effect.matchEffect(this.#return(isOld), {
        onSuccess: (reply) => (reply === 1 ? Effect.void : this.#notKnown),
        onFailure: (error) => this.#retry(now, error)
      }),
      Effect.sync(() => void client.underWay--)
    )
  }

  /** Only with its client: nothing else tells that anonymous permits are held no more. */
  lose(reason: LossReason, now: number): void {
    if (this.#lost !== undefined || this.#released) return
    this.#lost = this.#lossOf(reason)
    this.client.anonymousPermits.delete(this)
    this.client.telemetry.lost(this, reason)
    this.client.telemetry.released(this, now - this.askedAt)
    this.#dependents.tell(this.client)
  }

  checkLost(): LockLost | undefined {
    return this.#lost
  }

  onLost(listener: () => void): () => void {
    if (this.#lost !== undefined) this.client.inOwnTurn(listener)
    return this.#dependents.add(listener)
  }

  get owner(): string {
    return this.id
  }

  get isUnused(): boolean {
    return this.#dependents.isEmpty
  }

  get giveBack(): Effect.Effect<unknown> {
    return this.#returnUntilConfirmed()
  }

  #lossOf(reason: LossReason): LockLost {
    return new LockLost({ lock: this.name, owner: this.id, reason, late: Duration.zero })
  }

  get #notKnown(): Effect.Effect<never, LockLost> {
    return Effect.suspend(() => {
      this.client.telemetry.lost(this, "NotOwner")
      return Effect.fail(this.#lossOf("NotOwner"))
    })
  }

  #return(isOld: boolean): Effect.Effect<Reply, LockStoreError> {
    const { client, key } = this
    return client.store.run(
      "semaphore/return",
      [key, grantMarker(key, this.id), semaphoreChannel(key)],
      [this.permits, isOld ? 1 : 0, client.store.publish]
    )
  }

  /** Tries again within the release timeout. After an attempt whose outcome is unknown, "not known" means that it did run. */
  #retry(sentAt: number, error: LockStoreError): Effect.Effect<void, LockLost | LockStoreError> {
    const { client } = this
    return Effect.gen({ self: this }, function* () {
      let failure = error
      let mayHaveRun = failure.isOutcomeUnknown
      const until = sentAt + client.options.releaseTimeoutMillis
      for (let pause = firstPauseMillis; !isFinal(failure) && client.now() + pause < until; pause *= 2) {
        yield* Effect.sleep(Math.min(pause, longestPauseMillis))
        const result = yield* Effect.result(this.#return(false))
        if (Result.isSuccess(result)) return result.success === 1 || mayHaveRun ? undefined : yield* this.#notKnown
        failure = result.failure
        mayHaveRun ||= failure.isOutcomeUnknown
      }
      client.background(this.#returnUntilConfirmed())
      return yield* new LockStoreError({
        operation: "release (the work is done; the permits are given back as soon as Redis answers this process)",
        lock: this.name,
        reason: failure.reason,
        cause: failure.cause
      })
    })
  }

  /** Goes on for as long as the marker may be there. The result is the reply, if there was one. */
  #returnUntilConfirmed(isForbidden = false): Effect.Effect<Reply | undefined> {
    const { client } = this
    return Effect.gen({ self: this }, function* () {
      for (let pause = firstPauseMillis; ; pause = Math.min(pause * 2, longestPauseMillis)) {
        const result = yield* Effect.result(this.#return(false))
        if (Result.isSuccess(result)) return result.success
        if (isForbidden && result.failure.reason === "NoPermission") return undefined
        if (isFinal(result.failure) || client.now() - this.askedAt + pause > this.markerMillis) {
          yield* Effect.annotateLogs(
            Effect.logWarning(
              "Could not give permits back; the semaphore has so many less from now on.",
              result.failure
            ),
            { semaphore: this.name, permits: this.permits }
          )
          return undefined
        }
        yield* Effect.sleep(pause)
      }
    })
  }

  /** Takes back what may have been granted without our knowing. */
  #undo(isForbidden: boolean): Effect.Effect<void> {
    return rollbackUntilSettled(this.client, this.#returnUntilConfirmed(isForbidden))
  }
}
