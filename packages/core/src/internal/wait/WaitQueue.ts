/**
 * The fibers of this process that wait for one thing: a lock, permits of a semaphore, or a latch. One of them has the turn
 * and talks to Redis for all. It takes its wake-ups from `signals`, a `Queue` with room for one, which is fed by the Stream
 * of the channel's subscription, by releases in this process, and by the waiter's own alarm. A signal stays there until it
 * is taken, so none is missed during a request. The others sleep until the turn is passed to them.
 */
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import type { LockStoreError } from "../../LockError.ts"
import type { Identity } from "../hold/owner.ts"
import type { Signal } from "../../RedisDriver.ts"
import { isDue } from "../store/operations/counters/isDue.ts"
import { LinkedList } from "./LinkedList.ts"
import { Outage } from "./Outage.ts"
import type { Mode } from "../protocol/LockProtocol.ts"
import { isHandOver, oursChannel, ownChannel, type Place } from "./Place.ts"
import type { Subscription } from "./Subscriptions.ts"
import { Waiter, type Wake, type Wanted } from "./Waiter.ts"
import type { WaitingClient } from "./WaitingClient.ts"

/** After this many hand-overs in a row within this process, and this much time, other processes get their chance. */
const enoughHandOvers = 8
const enoughMillis = 5

/** How long clients that take places leave a lock to those that take none (Redisson's). */
const othersTurnMillis = 10

/** Free permits of which clients that take places hear on their own channels: a number that begins with a zero. */
const isForOthers = (signal: Signal): boolean =>
  signal._tag === "Message" && signal.message.length > 1 && signal.message.startsWith("0")

export class WaitQueue {
  readonly client: WaitingClient
  readonly signals: Queue.Queue<Wake>
  readonly outage = new Outage()
  /** The waiter that talks to Redis; undefined while the turn is reserved for an in-flight request. */
  turn: Waiter | undefined = undefined
  /** Whether a waiting writer was announced to other processes: see {@link LockProtocol.cancelWriterIntent}. */
  announced = false
  /** The place of this client; undefined while a request asks for it, which takes it back itself if it fails. */
  place: Place | undefined = undefined
  /** The number of the last waiter that waited when a reader was let in. */
  #lastLetIn = Number.NEGATIVE_INFINITY
  /** Whether this client may have a place among those that wait for permits. */
  mayHavePlace = false
  /** Until when this queue leaves the lock to other processes, on the monotonic clock. */
  quietUntil = 0
  readonly #end: () => void
  #isReserved: boolean
  /** By the number of permits they want, each list in order of arrival. */
  readonly #waiters = new Map<number, LinkedList<Waiter>>()
  /** Since when the oldest has been the oldest, on the monotonic clock. */
  #oldestSince: number
  #firstNumber = 0
  #lastNumber = 0
  readonly #subscriptions: Array<Subscription> = []
  /** The earliest known end of a lease, on the monotonic clock. */
  #nextExpiry = Number.POSITIVE_INFINITY
  #handOvers = 0
  #firstHandOver = 0

  constructor(client: WaitingClient, signals: Queue.Queue<Wake>, isReserved: boolean, end: () => void) {
    this.client = client
    this.signals = signals
    this.#isReserved = isReserved
    this.#end = end
    this.#oldestSince = client.now()
  }

  get isEmpty(): boolean {
    return this.#waiters.size === 0
  }

  get isListening(): boolean {
    return this.#subscriptions.length > 0
  }

  /** A copy, as waiters may leave during iteration. */
  get waiters(): ReadonlyArray<Waiter> {
    return [...this.#waiters.values()].flatMap((waiters) => waiters.toArray())
  }

  /** The waiter that has waited longest. */
  get oldest(): Waiter | undefined {
    return this.#first(Number.POSITIVE_INFINITY)
  }

  /** The first waiter for which this number of free permits is enough; none, if they are kept for the oldest. */
  firstFor(free: number): Waiter | undefined {
    const { oldest } = this
    return oldest !== undefined && oldest.permits > free && this.#isDue(oldest) ? undefined : this.#first(free)
  }

  /** Whether a request for permits would jump the queue. */
  isAhead(permits: number): boolean {
    const { oldest } = this
    return oldest !== undefined && (this.#isDue(oldest) || this.#first(permits) !== undefined)
  }

  /** How many free permits let one of the waiters in, other than `except`; zero if there are no others. */
  wantedWithout(except: Waiter | undefined): number {
    let oldest: Waiter | undefined
    let least = 0
    for (const [permits, { first }] of this.#waiters) {
      const waiter = first === except ? first!.behind : first
      if (waiter === undefined) continue
      if (oldest === undefined || waiter.number < oldest.number) oldest = waiter
      if (least === 0 || permits < least) least = permits
    }
    return oldest !== undefined && this.#isDue(oldest) ? oldest.permits : least
  }

  #first(free: number): Waiter | undefined {
    let first: Waiter | undefined
    for (const [permits, waiters] of this.#waiters) {
      const waiter = waiters.first!
      if (permits <= free && (first === undefined || waiter.number < first.number)) first = waiter
    }
    return first
  }

  #isDue({ permits }: Waiter): boolean {
    return isDue(this.client.now() - this.#oldestSince, permits)
  }

  /** Joins at the end, or at the reserved head; gets the turn if no waiter has it. */
  join(wanted: Wanted): Waiter {
    const { atHead = false, permits = 1 } = wanted
    const waiter = new Waiter(this, wanted, atHead ? --this.#firstNumber : ++this.#lastNumber)
    let waiters = this.#waiters.get(permits)
    if (waiters === undefined) this.#waiters.set(permits, (waiters = new LinkedList()))
    if (atHead) waiters.addFirst(waiter)
    else waiters.add(waiter)
    if (this.turn === undefined && !this.#isReserved) this.turn = waiter
    return waiter
  }

  /**
   * Removes a waiter that has not left yet. If it had the turn, the next one gets it and sends a request at once, as the
   * signal that was taken may not have been acted on. A waiter that leaves because it was served says how many permits are
   * still `free`. The last one ends the queue.
   */
  leave(waiter: Waiter, free = Number.POSITIVE_INFINITY): void {
    if (!waiter.isQueued) return
    waiter.isQueued = false
    if (this.oldest === waiter) this.#oldestSince = this.client.now()
    this.client.alarms.cancel(waiter)
    const waiters = this.#waiters.get(waiter.permits)!
    waiters.remove(waiter)
    if (waiters.first === undefined) this.#waiters.delete(waiter.permits)
    if (waiter.hasTurn) this.pass(free)
    if (!this.isEmpty) return
    this.#end()
    for (const subscription of this.#subscriptions) subscription.stop()
  }

  /**
   * Passes the turn to the first waiter for which the `free` permits are enough, which sends a request at once, even behind
   * one that wants more. If there is none, the first of all gets the turn, and sleeps until a signal or a tick.
   */
  pass(free: number): void {
    const next = this.firstFor(free)
    this.turn = next ?? this.oldest
    if (next !== undefined) this.signal()
    else if (Queue.sizeUnsafe(this.signals) > 0) this.turn?.wake()
    else if (this.turn !== undefined) this.#setAlarm(this.turn, this.pauseUntil)
  }

  /** The in-flight request has been answered: the turn goes to its fiber if that waits, at the head, else to the next waiter. */
  unreserve(): void {
    if (!this.#isReserved) return
    this.#isReserved = false
    this.turn = this.oldest
    this.turn?.wake()
  }

  /** Wakes the waiter that has the turn. */
  wake(wake: Wake): void {
    Queue.offerUnsafe(this.signals, wake)
    this.turn?.wake()
  }

  /** Wakes the waiter that has the turn for another request: what it waits for may be free. */
  signal(): void {
    this.wake("signal")
  }

  /** Wakes the waiters that may share the hold that was just acquired. */
  wakeMatching(matches: (identity: Identity) => boolean): void {
    this.#forEach((waiter) => {
      if (waiter.identity === undefined || !matches(waiter.identity)) return
      if (waiter.hasTurn) this.signal()
      else waiter.wake()
    })
  }

  /** Wakes every waiter but the one that has the turn: they can share what it acquired or is about to request. */
  wakeOthers(): void {
    this.#forEach((waiter) => {
      if (!waiter.hasTurn) waiter.wake()
    })
  }

  /**
   * A reader was let in: those that waited with it are let in as well, before writers that wait, but none that have come since, or
   * readers would follow each other without an end.
   */
  letInReaders(waiter: Waiter, takesPlaces: boolean): void {
    if (takesPlaces) {
      if (this.isLetIn(waiter)) return
      this.#lastLetIn = this.#lastNumber
    }
    this.wakeOthers()
  }

  /** Whether this reader has waited with one that was let in. */
  isLetIn(waiter: Waiter): boolean {
    return waiter.number <= this.#lastLetIn
  }

  /** Makes no copy, as each of many readers wakes the others: woken fibers run, and leave, only afterwards. */
  #forEach(f: (waiter: Waiter) => void): void {
    for (const { first } of this.#waiters.values()) {
      for (let waiter = first; waiter !== undefined; waiter = waiter.behind) f(waiter)
    }
  }

  /**
   * Feeds `signals` from one subscription to the channel, shared by all waiters. `messagesSeen` is the number of messages
   * that had arrived before the last request, which may not reflect later ones. A new subscription signals when it is
   * ready. Returns whether the next signal may be that one. The queue also hears when the lock is handed over to this client in the mode
   * in which it has places.
   */
  listen(channel: string, messagesSeen: number | undefined, placesIn?: Mode): boolean {
    const { subscriptions } = this.client
    if (!this.isListening) {
      // first, so that the others are there when the last one says that it is ready
      if (placesIn !== undefined) this.#listenForHandOver(channel, placesIn)
      this.#subscriptions.push(
        subscriptions.subscribe(channel, (signal) => {
          if (placesIn !== "permit" || !isForOthers(signal)) this.signal()
        })
      )
    }
    const seenNow = subscriptions.messagesSeen(channel, placesIn !== undefined)
    const isMissing = seenNow !== messagesSeen
    if (isMissing) this.signal()
    return isMissing || seenNow === undefined
  }

  #listenForHandOver(channel: string, mode: Mode): void {
    const { client } = this
    const onOwn = (signal: Signal) => {
      if (signal._tag !== "Message" || !isHandOver(mode, signal.message)) return
      // it is kept for this client
      this.quietUntil = 0
      this.signal()
    }
    const onOurs = (signal: Signal) => {
      if (signal._tag === "Message") this.quietUntil = client.now() + othersTurnMillis
    }
    this.#subscriptions.push(
      client.subscriptions.subscribe(ownChannel(channel, client.clientId), onOwn),
      client.subscriptions.subscribe(oursChannel(channel), onOurs)
    )
  }

  /** For the waiter that has the turn: the next signal, or a tick at `until` or at the end of its wait time. */
  take(waiter: Waiter, until: number): Effect.Effect<Wake> {
    this.#setAlarm(waiter, until)
    return Queue.take(this.signals)
  }

  /** Sleeps until it has the turn and gets a signal or a tick. Undefined if it was served, or its wait time ended before its turn. */
  sleep(waiter: Waiter): Effect.Effect<Wake | undefined> {
    return Effect.flatMap(this.awaitTurn(waiter), () =>
      waiter.hasTurn && !waiter.isServed ? this.take(waiter, this.pauseUntil) : Effect.succeed(undefined)
    )
  }

  /** Sleeps until it has the turn, or its wait time is over. */
  awaitTurn(waiter: Waiter): Effect.Effect<void> {
    if (!waiter.hasTurn) this.#setAlarm(waiter, Number.POSITIVE_INFINITY)
    return waiter.awaitTurn
  }

  #setAlarm(waiter: Waiter, pauseUntil: number): void {
    const until = Math.min(pauseUntil, waiter.waitsUntil)
    if (until < Number.POSITIVE_INFINITY) this.client.alarms.set(waiter, until)
  }

  /** Until when to rely on messages: for the fallback interval, or until a lease ends; less after a failure. */
  get pauseUntil(): number {
    const now = this.client.now()
    const pause = this.outage.pauseMillis(this.client.options.fallbackIntervalMillis)
    return Math.max(now, Math.min(now + pause, this.#nextExpiry))
  }

  /** How long to rely on messages, milliseconds. */
  get pauseMillis(): number {
    return this.pauseUntil - this.client.now()
  }

  /** The waiter that has the turn sends its request, which covers the signals so far. */
  ask(waiter: Waiter): void {
    this.client.alarms.cancel(waiter)
    Queue.takeUnsafe(this.signals)
  }

  /** A request was answered: a lease ends in `remaining` milliseconds; if negative, at an unknown time. */
  answered(remaining: number): void {
    this.outage.answered()
    this.#nextExpiry = remaining < 0 ? Number.POSITIVE_INFINITY : this.client.now() + remaining + 1
  }

  /** A request that was sent at `sentAt` failed for a transient reason. */
  failed(failure: LockStoreError, sentAt: number): void {
    this.outage.failed(failure, sentAt, this.client.now())
    this.#nextExpiry = Number.POSITIVE_INFINITY
  }

  /**
   * Counts a hand-over within this process, and returns whether it may take place. If so, the release wakes the next waiter
   * before its reply arrives, so that waiter's request reaches Redis right behind it, ahead of other processes. The number
   * of hand-overs in a row is limited.
   */
  takeHandOver(now: number): boolean {
    if (this.#handOvers === 0) this.#firstHandOver = now
    if (this.#handOvers >= enoughHandOvers && now - this.#firstHandOver >= enoughMillis) {
      this.#handOvers = 0
      return false
    }
    this.#handOvers++
    return true
  }
}
