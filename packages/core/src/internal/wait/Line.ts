/**
 * A line: the fibers of this process that wait for one thing, a lock, permits of a semaphore, or a latch. One of them has the turn and
 * asks for all; what it does next is decided in `stage.ts`. It takes its wake-ups from `wakes`, a `Queue` with room for one, which is fed
 * by the Stream of the channel's subscription, by releases in this process, and by the waiter's own alarm. The others sleep until they
 * get the turn, or are woken for another reason: in a microtask, for which virtual time does not wait, as it does for who takes from a `Queue`.
 *
 * A line may begin while the request of a fiber that has not waited is in flight, for which the turn is reserved then (`Lines.begin`). If it is
 * denied, its fiber joins at the head, with the turn; else `unreserve` gives the turn to the first that waits.
 */
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import type { LockStoreError } from "../../LockError.ts"
import type { Signal } from "../../RedisDriver.ts"
import type { LockClient } from "../client/LockClient.ts"
import type { Streak, Identity } from "../hold/Lease.ts"
import type { Mode, OwnerRef } from "../kinds/kinds.ts"
import type { Alarm } from "../time/clock.ts"
import { Outage } from "./Outage.ts"
import { asleep, due, type Event, type Grant, isDue, next, type Stage } from "./stage.ts"
import { keptBy, oursChannel, ownChannel } from "./Subscriptions.ts"

/** How a fiber joins a line. */
export interface Wanted {
  /** The kind of lock under which its polls count; none for a latch, which has no metrics, and for a lock that always polls. */
  readonly kind?: string | undefined
  /** Whether its requests take a place in Redis, to which a release hands the lock over. */
  readonly takesPlace?: boolean
  /** The identity that may re-enter a lock that is acquired meanwhile. */
  readonly identity?: Identity | undefined
  /** How many permits it wants. Default: 1. */
  readonly permits?: number | undefined
  /** The permits with which it creates a missing semaphore. */
  readonly initial?: number | undefined
  /** When its wait time ends, on the monotonic clock. */
  readonly waitsUntil: number
  /** Whether it joins with the answer to its own request: at the head, if that was reserved for it. */
  readonly hasAsked?: boolean
}

/** One fiber that waits. */
export class Waiter implements Alarm, Linked<Waiter> {
  readonly kind: string | undefined
  readonly takesPlace: boolean
  readonly identity: Identity | undefined
  readonly permits: number
  readonly initial: number | undefined
  readonly waitsUntil: number
  /** Its place in the order of arrival. */
  readonly number: number
  /** The count of its latch as last read since it joined, by any waiter. */
  count: number | undefined = undefined
  readonly joinedAt: number
  isQueued = true
  due = 0
  heapIndex = -1
  before: Waiter | undefined = undefined
  behind: Waiter | undefined = undefined
  readonly #line: Line
  #resume: ((result: Effect.Effect<void>) => void) | undefined = undefined

  constructor(
    line: Line,
    { identity, initial, kind, permits = 1, takesPlace = false, waitsUntil }: Wanted,
    number: number
  ) {
    this.#line = line
    this.kind = kind
    this.takesPlace = takesPlace
    this.identity = identity
    this.permits = permits
    this.initial = initial
    this.waitsUntil = waitsUntil
    this.number = number
    this.joinedAt = line.client.now()
  }

  get hasTurn(): boolean {
    return this.#line.turn === this
  }

  get isLate(): boolean {
    return this.#line.client.now() >= this.waitsUntil
  }

  /** Its alarm: it is time to ask again, or its wait time is over. */
  ring(): void {
    if (this.hasTurn) this.#line.rang(this)
    else this.wake()
  }

  /** Resumes its fiber, once, however often it is woken before it runs. */
  wake(): void {
    const resume = this.#resume
    if (resume === undefined) return
    this.#resume = undefined
    this.#line.client.inMicrotask(() => resume(Effect.void))
  }

  /** Its latch has this count: if the latch is open, the waiter goes on without a request of its own. */
  tell(count: number): void {
    this.count = count
    if (count === 0) this.wake()
  }

  /** Sleeps without the turn, until it is woken. An interruption leaves nothing to undo: who is woken then is gone. */
  asleep(isReady: () => boolean): Effect.Effect<void> {
    return Effect.callback<void>((resume) => {
      // until here, nothing can wake it
      if (this.hasTurn || this.count === 0 || this.isLate || isReady()) resume(Effect.void)
      else this.#resume = resume
    })
  }
}

/**
 * A list whose items know their neighbours: adding at either end and removing any item take constant time. A `Set` slows
 * down once most items at its front have been removed.
 */
export interface Linked<A> {
  /** Its neighbours, kept by the list. */
  before: A | undefined
  behind: A | undefined
}

export class LinkedList<A extends Linked<A>> {
  first: A | undefined = undefined
  #last: A | undefined = undefined

  add(item: A): void {
    item.before = this.#last
    if (this.#last === undefined) this.first = item
    else this.#last.behind = item
    this.#last = item
  }

  addFirst(item: A): void {
    item.behind = this.first
    if (this.first === undefined) this.#last = item
    else this.first.before = item
    this.first = item
  }

  /** Removes an item, which must be in the list. */
  remove(item: A): void {
    const { before, behind } = item
    if (before === undefined) this.first = behind
    else before.behind = behind
    if (behind === undefined) this.#last = before
    else behind.before = before
    item.before = item.behind = undefined
  }
}

export class Line {
  readonly client: LockClient
  readonly wakes: Queue.Queue<void>
  readonly outage = new Outage()
  /** The waiter that asks; undefined while the turn is reserved for the request that was in flight when the line began. */
  turn: Waiter | undefined = undefined
  /**
   * The owner under which this client has its place in Redis, or to which a release of this client has left the lock: all waiters of the
   * line share it until it is granted the lock or given back. Undefined while a request asks with it, which takes it back itself if it fails.
   */
  place: OwnerRef | undefined = undefined
  /** When this client was first denied since it was last let in, on the monotonic clock: that dates its place, which may get lost. */
  deniedAt: number | undefined = undefined
  /** When the waiter that has the turn last asked, on the monotonic clock. */
  askedAt = Number.NEGATIVE_INFINITY
  stage: Stage
  readonly #end: () => void
  /** How often the waiter that has the turn asks if nothing wakes it, milliseconds, before jitter. */
  readonly #intervalMillis: number
  /** Whether a holding of this process excludes those that wait. */
  readonly #isHeldHere: () => boolean
  /** In order of arrival. */
  readonly #waiters = new LinkedList<Waiter>()
  #lastNumber = 0
  /** How many of them neither spin nor wait for a latch. */
  #patient = 0
  /** Each ends one subscription. */
  readonly #subscriptions: Array<() => void> = []

  constructor(
    client: LockClient,
    wakes: Queue.Queue<void>,
    intervalMillis: number,
    isHeldHere: () => boolean,
    end: () => void
  ) {
    this.client = client
    this.wakes = wakes
    this.#end = end
    this.#intervalMillis = intervalMillis
    this.#isHeldHere = isHeldHere
    this.stage = isHeldHere() ? asleep(this.pauseUntil(-1)) : due
  }

  /** The oldest. */
  protected get first(): Waiter | undefined {
    return this.#waiters.first
  }

  /** The first that could get what is free, if there is any: to them all, the lock is one. */
  firstFor(free: number): Waiter | undefined {
    return free > 0 ? this.first : undefined
  }

  protected add(waiter: Waiter, isFirst: boolean): void {
    if (isFirst) this.#waiters.addFirst(waiter)
    else this.#waiters.add(waiter)
  }

  protected remove(waiter: Waiter): void {
    this.#waiters.remove(waiter)
  }

  /** Makes no copy, as each of many readers wakes the others: woken fibers run, and leave, only afterwards. */
  protected forEach(f: (waiter: Waiter) => void): void {
    for (let waiter = this.first; waiter !== undefined; waiter = waiter.behind) f(waiter)
  }

  get isEmpty(): boolean {
    return this.first === undefined
  }

  get isListening(): boolean {
    return this.#subscriptions.length > 0
  }

  /** Whether the waiter that has the turn has something to do. */
  get isDue(): boolean {
    return isDue(this.stage)
  }

  /** What was handed over to this client, and nobody has taken. */
  get grant(): Grant | undefined {
    return this.stage._tag === "HandedOver" ? this.stage.grant : undefined
  }

  /** Whether a request would be refused, as this process holds what it waits for, or leaves it to others. */
  get isHeldBack(): boolean {
    return this.#isHeldHere() || (this.stage._tag === "Asleep" && this.stage.isQuiet)
  }

  /** A copy, as waiters may leave, and join, while it is used. */
  get waiters(): ReadonlyArray<Waiter> {
    const waiters: Array<Waiter> = []
    this.forEach((waiter) => waiters.push(waiter))
    return waiters
  }

  /**
   * Joins at the end, or at the head, if that `isReserved` for its request, which is in flight; gets the turn if no waiter has it, and it is
   * not reserved for another.
   */
  join(wanted: Wanted, isReserved: boolean): Waiter {
    const { hasAsked = false } = wanted
    if ((hasAsked || isReserved) && this.isEmpty) this.on({ _tag: "Asked" })
    const isFirst = hasAsked && isReserved
    const waiter = new Waiter(this, wanted, isFirst ? 0 : ++this.#lastNumber)
    this.add(waiter, isFirst)
    if (isFirst || !isReserved) this.turn ??= waiter
    const isBehindSpinners = waiter.kind !== undefined && this.#patient++ === 0 && !waiter.hasTurn
    if (isBehindSpinners && this.stage._tag === "Asleep") this.pause(this.stage.until - this.client.now())
    return waiter
  }

  /** The waiter that has the turn spins: it asks again after a pause, but no less often than those behind it would that do not spin. */
  pause(millis: number): void {
    const until = this.client.now() + millis
    this.on({ _tag: "Paused", until: this.#patient > 0 ? Math.min(until, this.pauseUntil(-1)) : until })
  }

  /** The request that was in flight when the line began was granted, or has failed for good: the first waiter gets the turn. */
  unreserve(isGranted: boolean): void {
    if (this.turn !== undefined) return
    if (isGranted) this.granted(true, true)
    else this.on({ _tag: "TakenBack", until: this.pauseUntil(-1) })
    this.pass(isGranted ? 0 : Number.POSITIVE_INFINITY)
  }

  /**
   * Removes a waiter that has not left yet. If it had the turn, the next one gets it and asks at once, as a change that it was woken for
   * may not have been acted on. The last one ends the line.
   */
  leave(waiter: Waiter, free = Number.POSITIVE_INFINITY): void {
    if (!waiter.isQueued) return
    waiter.isQueued = false
    if (waiter.kind !== undefined) this.#patient--
    this.client.alarms.cancel(waiter)
    this.remove(waiter)
    if (this.isEmpty) {
      this.turn = undefined
      this.#end()
      for (const stop of this.#subscriptions) stop()
    } else if (waiter.hasTurn) {
      // a request that is still in flight is taken back
      if (this.stage._tag === "Asking") this.on({ _tag: "TakenBack", until: this.pauseUntil(-1) })
      this.pass(free)
    }
  }

  /**
   * Passes the turn to the first waiter that could get what is `free`, which asks at once. If there is none, the oldest of all gets the turn,
   * and sleeps on.
   */
  pass(free: number): void {
    const first = this.firstFor(free)
    this.turn = first ?? this.first
    if (first !== undefined) this.changed()
    if (this.isDue) this.#wakeAsker()
    else if (this.turn !== undefined) this.#setAlarm(this.turn)
  }

  /** Goes on to the next stage, and wakes the waiter that has the turn if it has something to do. */
  on(event: Event): void {
    const { stage } = this
    this.stage = next(stage, event)
    if (this.stage === stage) return
    if (this.isDue) this.#wakeAsker()
    else if (this.stage._tag === "Asleep" && this.turn !== undefined) this.#setAlarm(this.turn)
  }

  /** What it waits for may be free, unless this process itself holds it. */
  changed(): void {
    if (this.stage._tag === "Asking" || !this.#isHeldHere()) this.on({ _tag: "Changed" })
  }

  /** The alarm of the waiter that has the turn. */
  rang(waiter: Waiter): void {
    const { client, stage } = this
    const { isLate, kind } = waiter
    if (stage._tag === "Asleep" && !stage.isQuiet && !isLate && kind !== undefined) client.telemetry.of(kind).polls++
    this.on({ _tag: "Rang", now: client.now() })
    this.#wakeAsker()
  }

  #wakeAsker(): void {
    Queue.offerUnsafe(this.wakes, undefined)
    this.turn?.wake()
  }

  /** Wakes the waiters that may share the hold that was just acquired. */
  wakeMatching(matches: (identity: Identity) => boolean): void {
    this.forEach((waiter) => {
      if (waiter.identity === undefined || !matches(waiter.identity)) return
      if (waiter.hasTurn) this.#wakeAsker()
      else waiter.wake()
    })
  }

  /** Wakes every waiter but the one that has the turn: they can share what it acquired or is about to request. */
  wakeOthers(): void {
    this.forEach((waiter) => {
      if (!waiter.hasTurn) waiter.wake()
    })
  }

  /**
   * Listens to the channel, for all waiters. `messagesSeen` is the number of messages that had arrived before the last request, which may
   * not reflect later ones. A new subscription counts as a change when it is ready. The line also hears when the lock is handed over to
   * this client in the mode in which it has places.
   */
  listen(channel: string, messagesSeen: number | undefined, placesIn: Mode | undefined, onMessage?: () => void): void {
    const { subscriptions } = this.client
    if (!this.isListening) {
      // first, so that the others are there when the last one says that it is ready
      if (placesIn !== undefined) this.#listenForHandOver(channel, placesIn)
      this.#subscriptions.push(
        subscriptions.subscribe(channel, (signal) => {
          if (placesIn === "permit" && isForOthers(signal)) return
          this.changed()
          if (signal._tag === "Message") onMessage?.()
        })
      )
    }
    if (subscriptions.messagesSeen(channel, placesIn !== undefined) !== messagesSeen) this.changed()
  }

  #listenForHandOver(channel: string, mode: Mode): void {
    const { client } = this
    const onOwn = (signal: Signal) => {
      const kept = signal._tag === "Message" ? keptBy(mode, client.clientId, signal.message) : undefined
      if (kept === undefined) return
      this.on(kept)
      // the section that was handed the lock begins right after this message was read
      client.inMicrotask(() => Queue.flushUnsafe(this.wakes))
    }
    const onOurs = (signal: Signal) => {
      if (signal._tag === "Message")
        this.on({ _tag: "LeftToOthers", until: client.now() + othersTurnMillis(signal.message) })
    }
    this.#subscriptions.push(
      client.subscriptions.subscribe(ownChannel(channel, client.clientId), onOwn),
      client.subscriptions.subscribe(oursChannel(channel), onOurs)
    )
  }

  /**
   * Sleeps until the waiter has something to do: it has the turn and is to ask, or its wait is over, or it was woken. Nor does it sleep if it
   * is ready: if its owner has acquired the lock since its last request.
   */
  sleep(waiter: Waiter, isReady = () => false): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (!waiter.hasTurn) {
        this.#setAlarm(waiter)
        return waiter.asleep(isReady)
      }
      if (this.isDue || waiter.count === 0 || isReady()) return Effect.void
      this.#setAlarm(waiter)
      return Queue.take(this.wakes)
    })
  }

  #setAlarm(waiter: Waiter): void {
    const { stage } = this
    const until = waiter.hasTurn && stage._tag === "Asleep" ? stage.until : Number.POSITIVE_INFINITY
    const at = Math.min(until, waiter.waitsUntil)
    if (at < Number.POSITIVE_INFINITY) this.client.alarms.set(waiter, at)
  }

  /** Until when to rely on messages: for its interval, or until a lease ends, in `remaining` milliseconds if not negative. */
  pauseUntil(remaining: number): number {
    const now = this.client.now()
    const pause = this.outage.pauseMillis(this.#intervalMillis)
    return now + (remaining < 0 ? pause : Math.min(pause, remaining + 1))
  }

  /** The waiter that has the turn sends its request, which covers the changes so far. */
  asked(waiter: Waiter): void {
    this.client.alarms.cancel(waiter)
    Queue.takeUnsafe(this.wakes)
    this.askedAt = this.client.now()
    this.on({ _tag: "Asked" })
  }

  /** A request was denied, that of the waiter with the turn or of a reader beside it: a lease ends in `remaining` milliseconds if not negative. */
  answered(remaining: number, isAskers: boolean): void {
    this.outage.answered()
    if (isAskers) this.on({ _tag: "Answered", until: this.pauseUntil(remaining), now: this.client.now() })
  }

  /** A request, sent at `sentAt`, failed for a transient reason. */
  failed(failure: LockStoreError, sentAt: number, isAskers: boolean): void {
    const now = this.client.now()
    this.outage.failed(failure, sentAt, now)
    if (isAskers) this.on({ _tag: "Answered", until: this.pauseUntil(-1), now })
  }

  /**
   * A request was granted. If that excludes the other waiters, the next one looks out for its loss; else it may be let in as well. The turn is passed
   * right after this.
   */
  granted(isAskers: boolean, excludes: boolean): void {
    this.outage.answered()
    this.deniedAt = undefined
    if (isAskers) this.stage = next(this.stage, { _tag: "Granted", until: this.pauseUntil(-1), excludes })
  }

  /** The sections in a row that lead to the grant of the request in flight. */
  get streak(): Streak | undefined {
    return this.stage._tag === "Due" || this.stage._tag === "Asking" ? this.stage.streak : undefined
  }
}

/** Free permits of which clients that take places hear on their own channels: a number that begins with a zero. */
const isForOthers = (signal: Signal): boolean =>
  signal._tag === "Message" && signal.message.length > 1 && signal.message.startsWith("0")

/**
 * For how long clients that take places leave a lock to those that take none (Redisson's), as the message says: 250 ms at most, whoever
 * has written it.
 */
const othersTurnMillis = (message: string): number => Math.min(Math.max(0, Number(message) || 0), 250)
