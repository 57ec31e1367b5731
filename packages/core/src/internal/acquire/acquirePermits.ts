/**
 * Acquires permits, in the same way for both kinds of semaphore: sends a request; if that is denied, waits in the line of
 * this process and tries again at each turn.
 *
 * Everything here runs uninterruptibly except what is wrapped in `restore`.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { LockStoreError, LockTimeout } from "../../LockError.ts"
import type { LockClient } from "../client/LockClient.ts"
import type { Restore } from "../hold/guard.ts"
import { leavePlace } from "../hold/rollback.ts"
import type { Mode, PermitReply } from "../kinds/kinds.ts"
import { catchTransient, mayHaveRun, transientFailure } from "../store/failures.ts"
import { semaphoreChannel } from "../store/keys.ts"
import { type Asking, nothing } from "../store/operations/permitPlaces.ts"
import type { Line, Waiter } from "../wait/Line.ts"
import { untilServed, type Wait } from "../wait/untilServed.ts"
import { countWaiting } from "./giveUp.ts"

export interface PermitRequest<A> {
  readonly client: LockClient
  readonly kind: { readonly name: string }
  readonly name: string
  readonly key: string
  readonly permits: number
  /** Milliseconds; infinite to wait without limit. */
  readonly waitMillis: number
  /** Sends one request. If interrupted, or failed with unknown outcome, it is rolled back before anything else happens. */
  readonly ask: (restore: Restore, startedAt: number, asking: Asking) => Effect.Effect<PermitReply<A>, LockStoreError>
}

/** A request of a fiber that will not wait. */
export const notWaiting = ({ clientId }: LockClient): Asking => ({
  clientId,
  ifDenied: nothing,
  ifGranted: nothing,
  isNew: true
})

/** Waits for permits as long as allowed. */
export const acquire = <A extends object>(
  request: PermitRequest<A>,
  restore: Restore
): Effect.Effect<A, LockTimeout | LockStoreError> => {
  const { client, key, permits, waitMillis } = request
  const startedAt = client.now()
  // later requests are served later
  if (waitMillis > 0 && client.lines.get(key, "permit")?.isAhead(permits) === true) {
    return wait(request, restore, startedAt, undefined, undefined)
  }
  const messagesSeen = client.subscriptions.messagesSeen(semaphoreChannel(key), client.store.handsOver)
  const asking: Asking = { ...notWaiting(client), ifDenied: waitMillis > 0 ? { permits, waitedMillis: 0 } : nothing }
  return Effect.matchCauseEffect(request.ask(restore, startedAt, asking), {
    onSuccess: (answer): Effect.Effect<A, LockTimeout | LockStoreError> => {
      if (answer.granted !== undefined) return Effect.succeed(answer.granted)
      return waitMillis > 0
        ? wait(request, restore, startedAt, answer, messagesSeen)
        : gaveUp(request, startedAt, answer, undefined)
    },
    onFailure: (cause) => {
      const failure = waitMillis > 0 ? transientFailure(cause) : undefined
      if (failure !== undefined) return wait(request, restore, startedAt, failure, messagesSeen)
      const mayHavePlace = waitMillis > 0 && mayHaveRun(cause) && client.lines.get(key, "permit") === undefined
      return Effect.andThen(mayHavePlace ? leavePlace(client, key, true) : Effect.void, Effect.failCause(cause))
    }
  })
}

const wait = <A extends object>(
  request: PermitRequest<A>,
  restore: Restore,
  startedAt: number,
  /** The reply to the request before the wait, or its failure, if there was one. */
  answer: PermitReply<A> | LockStoreError | undefined,
  messagesSeen: number | undefined
): Effect.Effect<A, LockTimeout | LockStoreError> => {
  const { client, key, kind, permits, waitMillis } = request
  const wanted = { kind: kind.name, permits, waitsUntil: startedAt + waitMillis, hasAsked: answer !== undefined }
  const joined = Effect.flatMap(client.lines.join(key, "permit", wanted), ([line, waiter]) => {
    const waited = new PermitWait(request, restore, startedAt, line, waiter)
    if (answer !== undefined) {
      line.mayHavePlace = true
      waited.answered(answer, startedAt, waiter.hasTurn)
      line.listen(semaphoreChannel(key), messagesSeen, placesIn(client))
      // the place may be that of a request sent meanwhile, which did not know of this waiter
      if (line.askedAt >= startedAt) line.changed()
    }
    return Effect.ensuring(
      untilServed(waited),
      Effect.suspend(() => {
        line.leave(waiter)
        return line.isEmpty && line.mayHavePlace
          ? leavePlace(client, key, line.outage.failure !== undefined)
          : Effect.void
      })
    )
  })
  return countWaiting(client, kind.name, joined)
}

const placesIn = ({ store }: LockClient): Mode | undefined => (store.handsOver ? "permit" : undefined)

/** One fiber that waits for permits. */
class PermitWait<A extends object> implements Wait<A, LockTimeout | LockStoreError> {
  readonly restore: Restore
  readonly #request: PermitRequest<A>
  readonly #startedAt: number
  readonly #line: Line
  readonly #waiter: Waiter
  /** The last reply. */
  #last: PermitReply<A> | undefined = undefined

  constructor(request: PermitRequest<A>, restore: Restore, startedAt: number, line: Line, waiter: Waiter) {
    this.#request = request
    this.restore = restore
    this.#startedAt = startedAt
    this.#line = line
    this.#waiter = waiter
  }

  sleep(): Effect.Effect<void> {
    return this.#line.sleep(this.#waiter)
  }

  attempt(): Effect.Effect<A | undefined, LockStoreError> {
    return this.#waiter.hasTurn && this.#line.isDue && !this.#waiter.isLate ? this.#ask() : Effect.undefined
  }

  isOver(): boolean {
    return this.#waiter.isLate
  }

  gaveUp(): Effect.Effect<never, LockTimeout | LockStoreError> {
    return gaveUp(this.#request, this.#startedAt, this.#last, this.#line.outage.failure)
  }

  #ask(): Effect.Effect<A | undefined, LockStoreError> {
    const line = this.#line
    const waiter = this.#waiter
    const { client, key } = this.#request
    const channel = semaphoreChannel(key)
    const takesPlaces = client.store.handsOver
    line.asked(waiter)
    const messagesSeen = client.subscriptions.messagesSeen(channel, takesPlaces)
    const sentAt = client.now()
    const asking = askingOf(line, waiter)
    line.mayHavePlace = true
    return Effect.map(catchTransient(this.#request.ask(this.restore, this.#startedAt, asking)), (answer) => {
      if (!(answer instanceof LockStoreError) && answer.granted !== undefined) {
        line.mayHavePlace = asking.ifGranted.permits > 0
        line.granted(true, false)
        line.served(waiter, answer.available)
        // fibers that have joined meanwhile: the place does not tell of them
        if (takesPlaces && line.wantWithout(undefined).permits !== asking.ifGranted.permits) line.changed()
        return answer.granted
      }
      this.answered(answer, sentAt, true)
      if (!line.isListening) line.listen(channel, messagesSeen, placesIn(client))
      return undefined
    })
  }

  /** Takes note of a request that was denied or has failed; the turn goes to the first waiter for which the free permits are enough. */
  answered(answer: PermitReply<A> | LockStoreError, sentAt: number, isAskers: boolean): void {
    const line = this.#line
    if (answer instanceof LockStoreError) {
      line.failed(answer, sentAt, isAskers)
      if (isAskers) line.pass(0)
      return
    }
    this.#last = answer
    if (answer.supply !== undefined) line.supply = answer.supply
    line.answered(answer.remaining, isAskers)
    if (isAskers) line.pass(answer.available)
  }
}

const askingOf = (line: Line, waiter: Waiter): Asking => ({
  clientId: line.client.clientId,
  ifDenied: line.wantWithout(undefined),
  ifGranted: line.wantWithout(waiter),
  isNew: false
})

/** Ends the wait: with the store's own `failure` if the last request failed. */
const gaveUp = (
  { client, kind, name, permits }: PermitRequest<unknown>,
  startedAt: number,
  last: PermitReply<unknown> | undefined,
  failure: LockStoreError | undefined
): Effect.Effect<never, LockTimeout | LockStoreError> =>
  Effect.suspend((): Effect.Effect<never, LockTimeout | LockStoreError> => {
    if (failure !== undefined) return Effect.fail(failure)
    client.telemetry.of(kind.name).timedOut++
    return Effect.fail(
      new LockTimeout({
        lock: name,
        waited: Duration.millis(client.now() - startedAt),
        holder: undefined,
        permits: {
          wanted: permits,
          available: last?.available,
          ...(last?.exists === false ? { exists: false } : undefined)
        }
      })
    )
  })
