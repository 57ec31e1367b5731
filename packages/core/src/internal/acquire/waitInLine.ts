/**
 * Waits for a lock in the line of this process, where the waiter that has the turn asks for all.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { type LockReentered, LockStoreError, type LockTimeout } from "../../LockError.ts"
import { Hold } from "../hold/Hold.ts"
import { inMicrotask } from "../hold/Lease.ts"
import { giveBackPlace } from "../hold/rollback.ts"
import { type OwnerRef, ownerRefOf, takesPlaces } from "../kinds/kinds.ts"
import { backOff } from "../options/acquireOptions.ts"
import { matchOutcome } from "../store/commands.ts"
import type { Line, Waiter } from "../wait/Line.ts"
import type { Grant } from "../wait/stage.ts"
import { acquireOnce, type AcquireRequest, Ask, begun, type Denial, ownLease, takeOver, type Restore } from "./ask.ts"
import { reenterOr } from "./reenter.ts"
import { gaveUp, untilServed, type Wait } from "./untilServed.ts"

export const waitInLine = (
  request: AcquireRequest,
  restore: Restore,
  startedAt: number,
  /** The request that was made before the wait, if there was one. */
  earlier: { readonly answer: Denial | LockStoreError; readonly ask: Ask } | undefined
): Effect.Effect<Hold, LockTimeout | LockReentered | LockStoreError> => {
  const { client, identity, keys, kind } = request
  const wanted = {
    kind: kind.backoff === undefined ? kind.name : undefined,
    takesPlace: takesPlaces(request),
    identity,
    waitsUntil: startedAt + request.waitMillis,
    hasAsked: earlier !== undefined
  }
  return Effect.flatMap(client.lines.join(keys.lock, kind.mode, wanted), ([line, waiter]) => {
    const wait = new LockWait(request, restore, startedAt, line, waiter)
    if (earlier !== undefined) wait.answered(earlier.answer, earlier.ask)
    // only now: another waiter that took the head meanwhile would be asking already
    if (earlier?.ask.takesPlace === true) client.lines.settle(keys.lock, kind.mode, false)
    return waiting(wait)
  })
}

/** A function of its own, so that its closure refers to nothing but the wait: thousands of fibers may wait. */
const waiting = (wait: LockWait): Effect.Effect<Hold, LockTimeout | LockReentered | LockStoreError> => {
  const { client, kind } = wait.request
  client.telemetry.of(kind.name).waiting++
  const served = untilServed<Hold, LockTimeout | LockReentered | LockStoreError>(wait)
  const waited =
    kind.backoff === undefined
      ? served
      : Effect.flatMap(backOff(kind.backoff), (nextPause) => {
          wait.nextPause = nextPause
          return Effect.andThen(wait.pause, served)
        })
  return Effect.onExit(waited, (exit) => wait.end(Exit.isSuccess(exit)))
}

/** The last waiter of this client has left. */
const withdraw = (request: AcquireRequest, { place }: Line, isAcquired: boolean): Effect.Effect<void> => {
  if (place !== undefined) return giveBackPlace(place)
  // elsewhere all writers of a client share its place, until one of them is granted the lock
  const isClients = request.kind.mode === "write" && !takesPlaces(request) && !isAcquired
  return isClients ? giveBackPlace(ownerRefOf(request, request.client.clientId)) : Effect.void
}

/** One fiber that waits for a lock. */
class LockWait implements Wait<Hold, LockTimeout | LockReentered | LockStoreError> {
  readonly request: AcquireRequest
  readonly restore: Restore
  readonly startedAt: number
  readonly line: Line
  readonly waiter: Waiter
  /** The next pause of a lock that spins, in milliseconds; undefined when its schedule has ended. */
  nextPause: Effect.Effect<number | undefined> | undefined = undefined
  #hasEnded = false
  /** The latest answer of the store; undefined where it has failed since. */
  #denial: Denial | undefined = undefined
  /** The number of messages that had arrived before the latest request. */
  #messagesSeen: number | undefined = undefined

  constructor(request: AcquireRequest, restore: Restore, startedAt: number, line: Line, waiter: Waiter) {
    this.request = request
    this.restore = restore
    this.startedAt = startedAt
    this.line = line
    this.waiter = waiter
  }

  get #isShared(): boolean {
    return this.request.kind.mode === "read"
  }

  sleep(): Effect.Effect<void> {
    const { line, waiter } = this
    if (this.#hasEnded) return Effect.void
    if (waiter.hasTurn) this.#listen()
    return line.sleep(waiter, () => ownLease(this.request) !== undefined)
  }

  attempt(): Effect.Effect<Hold | undefined, LockReentered | LockStoreError> {
    return reenterOr(this.request, this.restore, this.waiter.waitsUntil, () => this.#askIfDue())
  }

  isOver(): boolean {
    return this.#hasEnded || this.waiter.isLate
  }

  gaveUp(): Effect.Effect<never, LockTimeout | LockStoreError> {
    // it has stopped waiting: the rest only looks up the holder
    this.line.leave(this.waiter)
    return gaveUp(this.request, this.startedAt, this.#denial, this.line.outage.failure)
  }

  /** The wait is over, for whatever reason. */
  end(isAcquired: boolean): Effect.Effect<void> {
    const { line, request, waiter } = this
    request.client.telemetry.of(request.kind.name).waiting--
    line.leave(waiter)
    return line.isEmpty ? withdraw(request, line, isAcquired) : Effect.void
  }

  #askIfDue(): Effect.Effect<Hold | undefined, LockStoreError> {
    const { line, waiter } = this
    // a release lets all readers in at once; while the store cannot be asked, only the waiter that has the turn keeps trying
    const asks = waiter.hasTurn
      ? line.isDue
      : this.#isShared && line.outage.failure === undefined && !line.isHeldBack && !waiter.isLate
    if (!asks) return Effect.undefined
    const hold = waiter.hasTurn && line.grant !== undefined ? this.#take(line.grant) : undefined
    return hold === undefined ? this.#ask() : Effect.flatMap(begun(hold), (hold) => this.#granted(hold, true))
  }

  /** Takes what was handed over to the place of this client, if that place is still there, and the message grants enough. */
  #take(grant: Grant): Hold | undefined {
    const { line, request, startedAt } = this
    if (line.place?.owner !== grant.owner) return undefined
    const hold = takeOver(request, grant, startedAt)
    if (hold !== undefined) line.place = undefined
    return hold
  }

  #ask(): Effect.Effect<Hold | undefined, LockStoreError> {
    const { line, request, restore, startedAt, waiter } = this
    const hadTurn = waiter.hasTurn
    if (hadTurn) line.asked(waiter)
    const place = hadTurn ? takePlace(this) : undefined
    // readers ask at the same time: the one that has the turn has the place
    const { deniedAt } = line
    const ask = new Ask(request, { waits: true, startedAt, deniedAt, takesPlace: hadTurn }, place?.owner)
    const putBackIfNotRun = () => {
      if (place !== undefined && !ask.mayHaveRun) keepPlace(line, place)
    }
    return matchOutcome(
      acquireOnce(request, ask, restore),
      (answer): Effect.Effect<Hold | undefined> => {
        if (answer instanceof Hold) return this.#granted(answer, hadTurn)
        putBackIfNotRun()
        this.answered(answer, ask)
        return hadTurn ? this.pause : Effect.undefined
      },
      (cause) => {
        putBackIfNotRun()
        return Effect.failCause(cause)
      }
    )
  }

  /** The next one need not ask for it, but has to look out for its loss. Readers that have waited as long may enter, too. */
  #granted(hold: Hold, hadTurn: boolean): Effect.Effect<Hold> {
    const { line, request, waiter } = this
    if (this.#isShared && hadTurn) {
      // the one that had the turn wakes them all
      line.changed()
      line.wakeOthers()
    }
    line.granted(hadTurn, !this.#isShared)
    line.leave(waiter, 0)
    // readers that are let in with it ask before its section, which may end at once, lets a writer in
    return this.#isShared && !line.isEmpty ? Effect.as(inMicrotask(request.client), hold) : Effect.succeed(hold)
  }

  /** Takes note of a request that was denied or has failed. */
  answered(answer: Denial | LockStoreError, ask: Ask): void {
    const { line, request, waiter } = this
    this.#messagesSeen = ask.messagesSeen
    const isAsker = waiter.hasTurn
    if (answer instanceof LockStoreError) {
      this.#denial = undefined
      line.failed(answer, ask.sentAt, isAsker)
      return
    }
    this.#denial = answer
    if (ask.place !== undefined) {
      line.deniedAt ??= request.client.now()
      keepPlace(line, ask)
    }
    line.answered(answer.remaining, isAsker)
  }

  /** The pause of a lock that spins, if its latest request was denied. */
  get pause(): Effect.Effect<undefined> {
    if (this.nextPause === undefined || this.#denial === undefined) return Effect.undefined
    return Effect.map(this.nextPause, (pauseMillis) => {
      if (pauseMillis === undefined) this.#hasEnded = true
      else this.line.pause(pauseMillis)
      return undefined
    })
  }

  /** Subscribes, for all waiters; releases in this process wake them without that, unless it has a place. */
  #listen(): void {
    const { line, request } = this
    const { client, keys, kind } = request
    if (kind.backoff !== undefined) return
    const places = takesPlaces(request)
    // the lock cannot be handed over to this client, as its last request to be denied was one without a place
    if (places && this.#denial !== undefined && line.place === undefined && !line.isHeldBack) line.changed()
    if (line.isDue || line.isListening) return
    if (line.place === undefined && client.leases.exclude(keys.lock, kind.mode)) return
    // where clients have places, the others ask once the one that has the turn has been let in
    const onMessage = this.#isShared && !places ? () => line.wakeOthers() : undefined
    line.listen(kind.channel(keys, client.clientId), this.#messagesSeen, places ? kind.mode : undefined, onMessage)
  }
}

/** The place of this client, for a request under its owner: one whose outcome is unknown takes it back. */
const takePlace = ({ line, request }: LockWait): OwnerRef | undefined => {
  const { place } = line
  line.place = undefined
  if (place === undefined || takesPlaces(request)) return place
  void giveBackPlace(place)
  return undefined
}

/** A place with which a request has been sent is the client's from now on, unless it has got another one meanwhile. */
const keepPlace = (line: Line, place: OwnerRef): void => {
  if (line.place === undefined || line.place.owner === place.owner) line.place = place
  else void giveBackPlace(place)
}
