/**
 * Waits in the queue of this process, where the waiter that has the turn talks to Redis for all.
 */
import * as Effect from "effect/Effect"
import { type LockReentered, LockStoreError, type LockTimeout } from "../../../LockError.ts"
import type { AcquireRequest } from "../AcquireRequest.ts"
import { acquireOnce, ownerRefOf, type Denial } from "../acquireOnce.ts"
import { backOff } from "../../options/backOff.ts"
import { tryReenter } from "../reenter.ts"
import { inOwnTurn } from "../../hold/Dependents.ts"
import { Hold } from "../../hold/Hold.ts"
import { Outage } from "../../wait/Outage.ts"
import type { Place } from "../../wait/Place.ts"
import type { WaitQueue } from "../../wait/WaitQueue.ts"
import type { Waiter } from "../../wait/Waiter.ts"
import { gaveUp } from "./gaveUp.ts"
import { pauseAfterFailure } from "./pauseAfterFailure.ts"
import { cancelWriterIntent, giveBackPlace } from "../../hold/rollback.ts"
import type { HeldRef } from "../../hold/releaseCommand.ts"
import { takesPlaces } from "../../protocol/LockProtocol.ts"
import { mayHaveRun } from "../../store/outcome.ts"
import type { Restore } from "../../hold/guard.ts"

export const isRequestInFlight = ({ client, keys, kind }: AcquireRequest): boolean =>
  kind.mode !== "read" && client.requestsInFlight.exclusive.has(keys.lock)

/** The in-flight request of this process has been answered. */
export const settled = ({ client, keys, kind }: AcquireRequest): void => {
  if (kind.mode === "read") {
    client.requestsInFlight.read.delete(keys.lock)
    return
  }
  client.requestsInFlight.exclusive.delete(keys.lock)
  client.waitQueues.get(keys.lock, kind.mode)?.unreserve()
}

/** The number of messages so far that wake a waiter; undefined while it would not hear them. */
export const messagesSeenOf = (request: AcquireRequest): number | undefined => {
  const { client, keys, kind } = request
  // composing the channel costs more than the look
  if (client.subscriptions.isEmpty) return undefined
  return client.subscriptions.messagesSeen(kind.channel(keys, client.clientId), takesPlaces(request))
}

/** A request that was made before the wait. */
export interface EarlierRequest {
  readonly answer: Denial | LockStoreError
  readonly ownerRef: HeldRef
  /** When it was sent, on the monotonic clock. */
  readonly sentAt: number
  /** The number of messages that had arrived before it was sent; undefined where the channel was not subscribed. */
  readonly messagesSeen: number | undefined
  /** Whether it has taken the place of this client. */
  readonly takesPlace: boolean
}

/** Waits in the queue of this process. */
export const waitInQueue = (
  request: AcquireRequest,
  restore: Restore,
  startedAt: number,
  earlier: EarlierRequest | undefined
): Effect.Effect<Hold, LockTimeout | LockReentered | LockStoreError> => {
  const { client, identity, keys, kind } = request
  const waitsUntil = startedAt + request.waitMillis
  const atHead = kind.mode !== "read" && earlier !== undefined
  const join = client.waitQueues.join(keys.lock, kind.mode, { identity, waitsUntil, atHead }, () =>
    isRequestInFlight(request)
  )
  return Effect.flatMap(join, ([queue, waiter]) => {
    const wait = new Wait(request, restore, startedAt, queue, waiter)
    if (earlier !== undefined) wait.takeUp(earlier)
    // only now: another waiter that took the head meanwhile would be asking already
    if (earlier?.takesPlace === true) settled(request)
    wait.skipsRequest = earlier === undefined ? wait.shouldNotAsk : waiter.hasTurn && !wait.lacksPlace
    return waiting(wait)
  })
}

/** A function of its own, so that its closure refers to nothing but the wait: thousands of fibers may wait. */
const waiting = (wait: Wait): Effect.Effect<Hold, LockTimeout | LockReentered | LockStoreError> => {
  const { client, kind } = wait.request
  client.telemetry.waits(kind.name)
  return Effect.ensuring(
    untilAcquired(wait),
    Effect.suspend(() => wait.end())
  )
}

/** The last waiter of this client has left: what Redis knows of it no longer holds. */
const withdraw = (request: AcquireRequest, queue: WaitQueue): Effect.Effect<void> => {
  const left = queue.place === undefined ? Effect.void : giveBackPlace(queue.place.ownerRef)
  return queue.announced ? Effect.andThen(left, cancelWriterIntent(ownerRefOf(request, request.client.clientId))) : left
}

/** One fiber that waits. */
class Wait {
  readonly request: AcquireRequest
  readonly restore: Restore
  readonly startedAt: number
  readonly queue: WaitQueue
  readonly waiter: Waiter
  /** Failures to re-enter what its own owner holds, since that was last answered: the others need not know of them. */
  reentry: Outage | undefined = undefined
  /** The latest answer of the store; undefined where it has failed since. */
  denial: Denial | undefined = undefined
  /** The number of messages that had arrived before the latest request. */
  messagesSeen: number | undefined = undefined
  /** Whether the next signal may tell that the subscription is ready, rather than that the lock is free. */
  isSubscribing = false
  /** Whether nothing calls for a request now. */
  skipsRequest = false

  constructor(request: AcquireRequest, restore: Restore, startedAt: number, queue: WaitQueue, waiter: Waiter) {
    this.request = request
    this.restore = restore
    this.startedAt = startedAt
    this.queue = queue
    this.waiter = waiter
  }

  get isShared(): boolean {
    return this.request.kind.mode === "read"
  }

  /** A request would be refused while this process holds the lock, and jump the queue while it leaves the lock to others. */
  get shouldNotAsk(): boolean {
    const { client, keys, kind } = this.request
    return client.isHeldHere(keys.lock, kind.mode) || client.now() < this.queue.quietUntil
  }

  /** Whether the lock cannot be handed over to this client, as its last request to be denied was one without a place. */
  get lacksPlace(): boolean {
    const { denial, queue, request, waiter } = this
    return denial !== undefined && waiter.hasTurn && queue.place === undefined && takesPlaces(request)
  }

  /** The milliseconds that are left of the wait. */
  get left(): number {
    return this.waiter.waitsUntil - this.request.client.now()
  }

  /** Goes on from a request that was made before the wait. */
  takeUp({ answer, messagesSeen, ownerRef, sentAt, takesPlace }: EarlierRequest): void {
    this.messagesSeen = messagesSeen
    this.answered(answer, ownerRef, sentAt, takesPlace)
    if (!(answer instanceof LockStoreError)) this.queue.announced = this.request.kind.cancelWriterIntent !== undefined
  }

  /** Takes note of a request that was denied or has failed. */
  answered(answer: Denial | LockStoreError, ownerRef: HeldRef, sentAt: number, takesPlace: boolean): void {
    const { queue } = this
    if (answer instanceof LockStoreError) {
      this.denial = undefined
      queue.failed(answer, sentAt)
      return
    }
    this.denial = answer
    queue.answered(answer.remaining)
    if (!takesPlace || !takesPlaces(ownerRef)) return
    const { place } = queue
    if (place === undefined || place.ownerRef.owner === ownerRef.owner) queue.place = { ownerRef, hasAsked: true }
    // another request was faster
    else this.request.client.fork(giveBackPlace(ownerRef))
  }

  /** The wait is over, for whatever reason. */
  end(): Effect.Effect<void> {
    const { queue, request, waiter } = this
    request.client.telemetry.waited(request.kind.name)
    queue.leave(waiter)
    return queue.isEmpty ? withdraw(request, queue) : Effect.void
  }

  /** The lock is its own: the next one need not ask for it, but has to look out for its loss. */
  acquired(): void {
    const { queue, waiter } = this
    queue.answered(-1)
    queue.announced = false
    if (this.isShared) queue.letInReaders(waiter, takesPlaces(this.request))
    queue.leave(waiter, 0)
    queue.turn?.wake()
  }
}

/** Asks, listens and sleeps in turn, until the lock is acquired or the wait is over. */
const untilAcquired = Effect.fnUntraced(function* (
  wait: Wait
): Effect.fn.Return<Hold, LockTimeout | LockReentered | LockStoreError> {
  const { queue, request, restore, startedAt, waiter } = wait
  const { kind } = request
  const nextPause = kind.backoff === undefined ? undefined : yield* backOff(kind.backoff)

  while (true) {
    if (!waiter.hasTurn && wait.reentry === undefined) {
      yield* restore(queue.awaitTurn(waiter))
      wait.skipsRequest = wait.shouldNotAsk
    }
    const entered = yield* tryReenter(request, restore)
    if (entered instanceof Hold) return entered
    if (entered !== undefined) {
      if (wait.left <= 0) return yield* Effect.fail(entered)
      wait.reentry ??= new Outage()
      wait.reentry.failed(entered)
      yield* pauseAfterFailure(request.client, wait.reentry, wait.left, restore)
      continue
    }
    wait.reentry = undefined
    const acquired = yield* tryAcquire(wait)
    if (acquired !== undefined) {
      wait.acquired()
      // readers that are let in with it ask before its section, which may end at once, lets a writer in
      if (wait.isShared && !queue.isEmpty) yield* inOwnTurn(request.client)
      return acquired
    }
    if (wait.left <= 0) return yield* gaveUp(request, startedAt, wait.denial, queue.outage.failure)
    if (!waiter.hasTurn) continue
    if (wait.lacksPlace && !wait.shouldNotAsk) {
      wait.skipsRequest = false
      continue
    }
    if (nextPause === undefined) listen(wait)
    const pause = nextPause === undefined || queue.outage.failure !== undefined ? queue.pauseMillis : yield* nextPause
    if (pause === undefined) return yield* gaveUp(request, startedAt, wait.denial)
    yield* sleep(wait, pause)
  }
})

/** Asks, if it is for this waiter to do that now. */
const tryAcquire = (wait: Wait): Effect.Effect<Hold | undefined, LockStoreError> => {
  const { queue, skipsRequest, waiter } = wait
  // a release lets all readers in at once; while the store cannot be asked, only the waiter that has the turn keeps trying
  const mayAsk = waiter.hasTurn || (wait.isShared && queue.outage.failure === undefined)
  return mayAsk && !skipsRequest ? ask(wait) : Effect.undefined
}

/** One request for all waiters of this process. */
const ask = (wait: Wait): Effect.Effect<Hold | undefined, LockStoreError> =>
  Effect.suspend(() => {
    const { queue, request, restore, startedAt, waiter } = wait
    const { client, kind } = request
    if (waiter.hasTurn) queue.ask(waiter)
    const place = takePlace(wait)
    const ownerRef = ownerRefOf(request, place?.ownerRef.owner ?? client.nextOwner())
    const keepPlace = () => {
      queue.place ??= place
    }
    wait.messagesSeen = messagesSeenOf(request)
    queue.announced = kind.cancelWriterIntent !== undefined
    const sentAt = client.now()
    // readers ask at the same time: the one that has the turn has the place
    const takesPlace = waiter.hasTurn
    const refused = (answer: Denial | LockStoreError) =>
      Effect.sync(() => wait.answered(answer, ownerRef, sentAt, takesPlace))
    const asked = acquireOnce(request, {
      ownerRef,
      waits: true,
      hasAsked: place?.hasAsked === true,
      takesPlace,
      isLetIn: queue.isLetIn(waiter),
      restore,
      startedAt,
      onGranted: Effect.succeed<Hold>,
      onDenied: (denial): Effect.Effect<undefined> => Effect.as(refused(denial), undefined),
      onTransient: (failure, mayHaveRun): Effect.Effect<undefined> => {
        if (!mayHaveRun) keepPlace()
        return Effect.as(refused(failure), undefined)
      }
    })
    return place === undefined
      ? asked
      : Effect.onError(asked, (cause) => (mayHaveRun(cause) ? Effect.void : Effect.sync(keepPlace)))
  })

/** The place of this client, for a request under its owner: one whose outcome is unknown takes it back. */
const takePlace = ({ queue, request, waiter }: Wait): Place | undefined => {
  const { place } = queue
  if (place === undefined || !waiter.hasTurn) return undefined
  queue.place = undefined
  // those that spin and those that listen have their turns in different ways
  if (takesPlaces(request) && (place.ownerRef.kind.backoff === undefined) === (request.kind.backoff === undefined))
    return place
  request.client.fork(giveBackPlace(place.ownerRef))
  return undefined
}

/** Subscribes, for all waiters; releases in this process wake them without that, unless it has a place. */
const listen = (wait: Wait): void => {
  const { messagesSeen, queue, request } = wait
  const { client, keys, kind } = request
  if (queue.isListening || (queue.place === undefined && client.isHeldHere(keys.lock, kind.mode))) return
  const places = takesPlaces(request) ? kind.mode : undefined
  wait.isSubscribing = queue.listen(kind.channel(keys, client.clientId), messagesSeen, places)
}

/** Sleeps until a signal, or a tick after this pause; or when it need no longer leave the lock to others. */
const sleep = (wait: Wait, pauseMillis: number): Effect.Effect<void> =>
  Effect.suspend(() => {
    const { queue, request, restore, waiter } = wait
    const { client, kind } = request
    const now = client.now()
    const isQuiet = queue.quietUntil > now
    const until = isQuiet ? queue.quietUntil : now + pauseMillis
    return Effect.map(restore(queue.take(waiter, until)), (wake) => {
      if (wake === "tick" && !isQuiet && kind.backoff === undefined && wait.left > 0) client.telemetry.polled(kind.name)
      // the message may announce a release that this process has already used
      wait.skipsRequest = wake === "signal" && wait.shouldNotAsk
      // where clients have places, the others ask once this one has been let in
      const areAllWoken = wait.isShared && !takesPlaces(request)
      if (areAllWoken && !wait.skipsRequest && !wait.isSubscribing && wake === "signal") queue.wakeOthers()
      wait.isSubscribing = false
    })
  })
