/**
 * The waiters of this client for one fair lock. Each has a place and a channel of its own in Redis. One command per
 * interval keeps all their places alive, and finds out whether a message was missed.
 */
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Queue from "effect/Queue"
import type { LockStoreError, StoreReason } from "../../LockError.ts"
import type { LockClient } from "../client/LockClient.ts"
import type { Identity } from "../hold/Lease.ts"
import { type LockProtocol, type LockRef, placeTermsOf, waiterTimeoutMillis } from "../kinds/kinds.ts"
import { isRefused, mayHaveRun, transientFailure } from "../store/failures.ts"
import type { LockKeys } from "../store/keys.ts"
import { refresh, type RefreshReply } from "../store/operations/fairLock.ts"
import type { Alarm } from "../time/clock.ts"
import { type Linked, LinkedList } from "./Line.ts"
import { Outage } from "./Outage.ts"
import { asking, type Event, isDue, next, type Stage } from "./stage.ts"
import { handOverIn } from "./Subscriptions.ts"

/** Waiters whose channels come back within this time share one report. */
const lookMillis = 20

/**
 * The pause before a report that did not reach Redis is retried, and the number of retries: places barely outlive a short
 * outage. After a longer one the script gives them more time.
 */
const retryMillis = 100
const retries = 6

type Owners = ReadonlyArray<string>

const unreachable: ReadonlySet<StoreReason> = new Set<StoreReason>(["NotConnected", "ConnectionLost", "TimedOut"])

export class FairQueue implements Alarm {
  readonly #client: LockClient
  readonly #keys: LockKeys
  readonly #end: () => void
  readonly #waiters = new FairWaiters()
  #mustLook = false
  /** Closed while a refresh is in flight. */
  readonly #settled = Latch.makeUnsafe(true)
  /** Owners that no longer wait, but may still have places in Redis. */
  readonly #gone = new Set<string>()
  readonly outage = new Outage()
  /** How many reports have been retried early in this outage. */
  #retried = 0
  due = 0
  heapIndex = -1

  constructor(client: LockClient, keys: LockKeys, end: () => void) {
    this.#client = client
    this.#keys = keys
    this.#end = end
  }

  get isEmpty(): boolean {
    return this.#waiters.size === 0
  }

  /** Registers a waiter before its first request, so that its owner is known from then on. */
  enter(waiter: FairWaiter): void {
    this.#waiters.add(waiter)
  }

  /** Called when a waiter's first request was denied or failed. The lease ends in `left` milliseconds, if not negative. */
  join(waiter: FairWaiter, left: number): void {
    this.#ringWithin()
    if (this.outage.failure !== undefined) this.#waiters.reportAll()
    this.sleep(waiter, left)
  }

  /** Lets a waiter sleep until its wait time is over; the first waiter of this process no longer than until the lease ends. */
  sleep(waiter: FairWaiter, left: number): void {
    this.#wakeAfter(waiter, waiter === this.#waiters.first && left >= 0 ? left + 1 : Number.POSITIVE_INFINITY)
  }

  #wakeAfter(waiter: FairWaiter, millis: number): void {
    const { alarms, now } = this.#client
    const until = Math.min(waiter.waitsUntil, now() + millis)
    if (until < Number.POSITIVE_INFINITY) alarms.set(waiter, until)
  }

  leave(waiter: FairWaiter): void {
    if (this.#waiters.remove(waiter)) this.#restIfIdle()
  }

  /** Removes the places of those owners that no longer wait, retrying until the store confirms. */
  removePlaces(owners: Iterable<string>): void {
    for (const owner of owners) if (!this.#waiters.has(owner)) this.#gone.add(owner)
    if (this.#gone.size > 0) this.#ringWithin()
  }

  /** Wakes the waiters that may share the hold that was just acquired. */
  wakeMatching(matches: (identity: Identity) => boolean): void {
    for (const waiter of this.#waiters.values()) {
      if (matches(waiter.request.identity)) waiter.changed()
    }
  }

  /** Checks soon whether a waiter's turn has come, as a message may have been missed. Calls within a short time share one check. */
  lookSoon(): void {
    this.#mustLook = true
    if (!this.#waiters.isReportingAll) this.#waiters.reportAll()
    // the connection for commands may come back a little later than that for messages
    this.#retried = 0
    this.#ringWithin(lookMillis)
  }

  /** Refreshes within this time: by default within an interval, as it goes on to do. */
  #ringWithin(millis = this.#client.options.placeIntervalMillis): void {
    const at = this.#client.now() + millis
    if (this.heapIndex === -1 || at < this.due) this.#client.alarms.set(this, at)
  }

  /**
   * Waits for the refresh in flight, if any. A server that does not know the script is sent the refresh again, after the
   * commands that were sent meanwhile: a waiter that gave up its place before that would get it back.
   */
  get settled(): Effect.Effect<void> {
    return this.#settled.await
  }

  ring(): void {
    if (this.#restIfIdle()) return
    this.#ringWithin()
    if (!this.#settled.isOpen()) return
    const atOnce = this.#mustLook
    this.#mustLook = false
    this.#settled.closeUnsafe()
    // The waiters are read when the command is sent: one that has left must not get a place again.
    this.#client.fork(Effect.suspend(() => this.#report(atOnce)))
  }

  /** Ends the queue if nobody waits, but not while a refresh is in flight, as it may have to be sent again. */
  #restIfIdle(): boolean {
    if (this.#waiters.size > 0 || this.#gone.size > 0 || !this.#settled.isOpen()) return false
    this.#client.alarms.cancel(this)
    this.#end()
    return true
  }

  #report(atOnce: boolean): Effect.Effect<void> {
    const client = this.#client
    const reported = this.#waiters.reported()
    const gone: Array<string> = []
    for (const owner of this.#gone) if (gone.push(owner) === mostReported) break
    // No report is needed while every waiter has a request in flight. But waiters that this report does not name may
    // have none, and after a missed message the requests may have been answered before it was sent.
    const needsNone = !atOnce && reported.owners.length === 0 && this.#waiters.size <= mostReported
    if (needsNone && gone.length === 0) return Effect.sync(() => this.#refreshed())
    for (const owner of gone) this.#gone.delete(owner)
    const terms = placeTermsOf(client, waiterTimeoutMillis)
    const command = refresh(this.#keys, terms, { waits: this.#waiters.size > 0, reported, gone })
    return Effect.matchCause(client.run(command), {
      onSuccess: (reply) => this.#reported(reply, reported.owners, atOnce),
      onFailure: (cause) => this.#failed(cause, reported.owners, gone, atOnce)
    })
  }

  #reported(
    { head, headMillis, holder, left, mayHaveLostPlaces }: RefreshReply,
    owners: Owners,
    atOnce: boolean
  ): void {
    this.outage.answered()
    this.#retried = 0
    this.#notePlaces(owners)
    if (mayHaveLostPlaces && this.#waiters.size > mostReported) this.#waiters.reportAll()
    // a late command may have created a place for an owner that no longer waits; it would hold up every waiter behind it
    if (head?.startsWith(`${this.#client.clientId}:`) === true) this.removePlaces([head])
    const waiter = holder === undefined ? undefined : this.#waiters.get(holder)
    if (waiter !== undefined && (atOnce || waiter.stage._tag !== "Asking")) {
      // it holds the lock without knowing it
      waiter.ring()
    } else if (head !== undefined) {
      if (left === -2) this.#turnOf(head, headMillis, atOnce)
      else if (left >= 0) this.#nextIs(head, left, headMillis)
    }
    // a message may have been missed since this report was sent
    if (this.#mustLook || this.#waiters.isReportingAll || this.#gone.size > 0) this.#ringWithin(0)
    // those that were served meanwhile, if it was sent again, after their releases
    this.removePlaces(owners)
    this.#refreshed()
  }

  /** Places outlive a few refreshes; the next request for the lock reports a lasting failure. */
  #failed(cause: Cause.Cause<LockStoreError>, owners: Owners, gone: Owners, atOnce: boolean): void {
    this.#waiters.reportAll()
    // a refusal that would be repeated as long as the client lives: what is left there ends with the reports
    if (!isRefused(cause)) this.removePlaces(gone)
    if (mayHaveRun(cause)) {
      this.#notePlaces(owners)
      this.#removeLater(owners)
    }
    if (atOnce) this.#mustLook = true
    const failure = transientFailure(cause)
    if (failure !== undefined) this.outage.failed(failure)
    if (failure !== undefined && unreachable.has(failure.reason) && this.#retried++ < retries) {
      this.#ringWithin(retryMillis)
    }
    this.#refreshed()
  }

  #refreshed(): void {
    this.#settled.openUnsafe()
    this.#restIfIdle()
  }

  #notePlaces(owners: Owners): void {
    for (const owner of owners) {
      const waiter = this.#waiters.get(owner)
      if (waiter !== undefined) waiter.mayHavePlace = true
    }
  }

  /**
   * A refresh may still take effect after its waiters have left, as their releases may overtake it on a new connection. The
   * places that it would restore are removed once it can no longer take effect.
   */
  #removeLater(owners: Owners): void {
    if (owners.length === 0) return
    const { fork, lines, store } = this.#client
    fork(
      Effect.andThen(
        Effect.sleep(store.commandLifeMillis + 1),
        // this queue may have ended
        Effect.sync(() => lines.openFair(this.#keys).removePlaces(owners))
      )
    )
  }

  /**
   * It is this owner's turn when the lease ends, in `left` milliseconds: no message announces that. If it belongs to another process, it
   * counts as dead after `millis`.
   */
  #nextIs(head: string, left: number, millis: number): void {
    const waiter = this.#waiters.get(head)
    if (waiter === undefined) this.#ringWithin(Math.max(left, millis) + 1)
    else if (waiter.stage._tag !== "Asking") this.#wakeAfter(waiter, left + 1)
  }

  /** It is this owner's turn. If it belongs to another process, it counts as dead after `millis`: check again then. */
  #turnOf(head: string, millis: number, atOnce: boolean): void {
    const { lines, now } = this.#client
    const waiter = this.#waiters.get(head)
    if (waiter === undefined) {
      this.#ringWithin(millis + 1)
    } else if (atOnce || now() - waiter.askedAt >= lines.intervalMillis("exclusive") / 2) {
      waiter.ring()
    }
  }
}

/**
 * The most waiters that one report names: enough to find a place that was lost unnoticed within seconds, and few enough
 * that the cost of a report does not grow with the queue.
 */
const mostReported = 32

/** The waiters of this process for one fair lock, by owner, and in order of arrival. Reports name them in turn. */
class FairWaiters extends Map<string, FairWaiter> {
  readonly #order = new LinkedList<FairWaiter>()
  /** Where the next report starts; undefined for the first waiter. */
  #next: FairWaiter | undefined = undefined
  /** How many are still to be reported soon, as they may have lost their places. */
  #toReport = 0

  get first(): FairWaiter | undefined {
    return this.#order.first
  }

  add(waiter: FairWaiter): void {
    this.set(waiter.owner, waiter)
    this.#order.add(waiter)
  }

  /** Returns whether it was there. */
  remove(waiter: FairWaiter): boolean {
    if (!this.delete(waiter.owner)) return false
    if (this.#next === waiter) this.#next = waiter.behind
    this.#order.remove(waiter)
    return true
  }

  /** Whether reports follow each other without a pause until all waiters have been reported. */
  get isReportingAll(): boolean {
    return this.#toReport > 0
  }

  /** Makes the next reports cover all waiters, starting with the first. */
  reportAll(): void {
    this.#next = this.#order.first
    this.#toReport = this.size
  }

  /** The waiters that the next report names, and whether they start with the first; one with a request in flight needs no report. */
  reported(): { readonly owners: Owners; readonly fromFirst: boolean } {
    if (this.size <= mostReported) this.#next = undefined
    let waiter = this.#next ?? this.#order.first
    const fromFirst = waiter === this.#order.first
    const owners: Array<string> = []
    for (let looked = Math.min(this.size, mostReported); looked > 0 && waiter !== undefined; looked--) {
      if (waiter.stage._tag !== "Asking") owners.push(waiter.owner)
      waiter = waiter.behind ?? this.#order.first
    }
    this.#next = waiter
    this.#toReport = Math.max(0, this.#toReport - mostReported)
    return { owners, fromFirst }
  }
}

/** One waiter of this process in the queue of a fair lock, where it has a place and a channel of its own. It goes through the stages of a line. */
export class FairWaiter implements Alarm, Linked<FairWaiter> {
  readonly request: Pick<LockRef, "client" | "kind"> & { readonly identity: Identity }
  readonly owner: string
  /** A number that is sent with its requests; the message that hands the lock over to it, and only that, repeats it. */
  readonly secret: string
  readonly wakes: Queue.Queue<void>
  /** When its wait time ends, on the monotonic clock. */
  readonly waitsUntil: number
  /** It begins with its first request. While it asks, its place needs no refresh. */
  stage: Stage = asking
  /** Whether it may have a place in Redis, or the lock: one of its requests may have been run, or a report that named it. */
  mayHavePlace = false
  /** When its last request was sent, on the monotonic clock. */
  askedAt = Number.NEGATIVE_INFINITY
  before: FairWaiter | undefined = undefined
  behind: FairWaiter | undefined = undefined
  due = 0
  heapIndex = -1

  constructor(
    request: FairWaiter["request"],
    owner: string,
    secret: string,
    wakes: Queue.Queue<void>,
    waitsUntil: number
  ) {
    this.request = request
    this.owner = owner
    this.secret = secret
    this.wakes = wakes
    this.waitsUntil = waitsUntil
  }

  get isLate(): boolean {
    return this.request.client.now() >= this.waitsUntil
  }

  /** Goes on to the next stage, and wakes its fiber if that has something to do. */
  on(event: Event): void {
    this.stage = next(this.stage, event)
    if (isDue(this.stage)) Queue.offerUnsafe(this.wakes, undefined)
  }

  /** It is to ask: its turn may have come, or it may share what its owner has acquired. */
  changed(): void {
    this.on({ _tag: "Changed" })
  }

  /** Its alarm: its wait time is over, or the holder's lease has ended. */
  ring(): void {
    const { client, kind } = this.request
    if (this.stage._tag === "Asleep" && !this.isLate) client.telemetry.of(kind.name).polls++
    this.changed()
  }

  /** Its turn has come: the lock is its own already if the message knows its secret. */
  told(message: string): void {
    const { granted, secret } = handOverIn(message)
    this.mayHavePlace = true
    this.on({ _tag: "Kept", grant: granted && secret === this.secret ? { ...granted, owner: this.owner } : undefined })
  }
}

/** An owner id that nobody has used yet. */
export interface SpareOwner extends Alarm {
  readonly owner: string
  readonly channel: string
  /** Ends its share of the subscription to its channel. */
  readonly stop: () => void
}

/**
 * Owner ids for the next waiters of fair locks, one for each lock that somebody has waited for lately. Each waiter has a channel of its
 * own. One that subscribes when its request was denied has to ask once more, as its turn may have been announced before; with an owner
 * whose channel is heard already it need not.
 */
export class SpareOwners {
  readonly #client: LockClient
  readonly #spares = new Map<string, SpareOwner>()

  constructor(client: LockClient) {
    this.#client = client
  }

  /** Makes one for the next waiter, if there is none. Nobody may need it for `subscriptionIdleMillis`. */
  prepare(keys: LockKeys, kind: LockProtocol): void {
    const { alarms, now, options, subscriptions } = this.#client
    const { lock } = keys
    let spare = this.#spares.get(lock)
    if (spare === undefined) {
      const owner = this.#client.nextOwner()
      const channel = kind.channel(keys, owner)
      const stop = subscriptions.subscribe(channel, () => {})
      const ring = () => {
        this.#spares.delete(lock)
        stop()
      }
      spare = { owner, channel, stop, ring, due: 0, heapIndex: -1 }
      this.#spares.set(lock, spare)
    }
    alarms.set(spare, now() + options.subscriptionIdleMillis)
  }

  /** Undefined if there is none, or the server has not confirmed its subscription. */
  take(lock: string): SpareOwner | undefined {
    const spare = this.#spares.get(lock)
    if (spare === undefined || this.#client.subscriptions.messagesSeen(spare.channel) === undefined) return undefined
    this.#spares.delete(lock)
    this.#client.alarms.cancel(spare)
    return spare
  }
}
