/**
 * The fibers of this process that wait for permits of one semaphore, each for a number of them. One asks Redis at a time: a
 * message gives the turn to the first, and every reply tells how many permits are free, so the turn passes to the first waiter
 * that they are enough for, after a grant as well as after a denial. Nobody waits behind a waiter that wants more than are free.
 */
import * as Effect from "effect/Effect"
import type { LockStoreError } from "../../LockError.ts"
import type { Alarm } from "../time/AlarmClock.ts"
import type { PermitReply } from "../protocol/PermitReply.ts"
import { type Linked, LinkedList } from "./LinkedList.ts"
import { Outage } from "./Outage.ts"
import type { WaitingClient } from "./WaitingClient.ts"
import type { Subscription } from "./Subscriptions.ts"

export class PermitWaiter implements Alarm, Linked<PermitWaiter> {
  readonly permits: number
  /** Its number in order of arrival. */
  readonly number: number
  before: PermitWaiter | undefined = undefined
  behind: PermitWaiter | undefined = undefined
  readonly #queue: PermitQueue
  #resume: (() => void) | undefined = undefined
  #isLate = false
  due = 0
  heapIndex = -1

  constructor(queue: PermitQueue, permits: number, number: number) {
    this.#queue = queue
    this.permits = permits
    this.number = number
  }

  get hasTurn(): boolean {
    return this.#queue.turn === this
  }

  /** Its wait time is over. */
  ring(): void {
    this.#isLate = true
    this.wake()
  }

  wake(): void {
    const resume = this.#resume
    if (resume === undefined) return
    // once, however often it is woken before it runs
    this.#resume = undefined
    this.#queue.client.inOwnTurn(resume)
  }

  /** Sleeps until it has the turn, or until its wait time is over. */
  get awaitTurn(): Effect.Effect<void> {
    return Effect.callback<void>((resume) => {
      if (this.hasTurn || this.#isLate) {
        resume(Effect.void)
        return
      }
      this.#resume = () => resume(Effect.void)
      return Effect.sync(() => {
        this.#resume = undefined
      })
    })
  }
}

export class PermitQueue implements Alarm {
  readonly client: WaitingClient
  /** By the number of permits they want, each list in order of arrival. */
  readonly #waiters = new Map<number, LinkedList<PermitWaiter>>()
  readonly #waiting = new Set<PermitWaiter>()
  #joined = 0
  #subscription: Subscription | undefined = undefined
  /** The waiter that asks Redis now, or is about to. */
  turn: PermitWaiter | undefined = undefined
  /** Whether a message arrived that the in-flight request may not reflect. */
  #signaled = false
  /** When a lease ends next, as far as known; on the monotonic clock. */
  #nextExpiry = Number.POSITIVE_INFINITY
  readonly outage = new Outage()
  due = 0
  heapIndex = -1

  constructor(client: WaitingClient) {
    this.client = client
  }

  get size(): number {
    return this.#waiting.size
  }

  /** Whether a waiter that wants at most this many came first: later requests are served later. */
  isAhead(permits: number): boolean {
    return this.#first(permits) !== undefined
  }

  join(permits: number): PermitWaiter {
    const waiter = new PermitWaiter(this, permits, this.#joined++)
    let waiters = this.#waiters.get(permits)
    if (waiters === undefined) this.#waiters.set(permits, (waiters = new LinkedList()))
    waiters.add(waiter)
    this.#waiting.add(waiter)
    if (this.heapIndex === -1 && this.turn === undefined) this.#rest()
    return waiter
  }

  /**
   * Subscribes to the semaphore's channel for all waiters. `messagesSeen` is the number of messages that had arrived before the
   * denied request.
   */
  listen(channel: string, messagesSeen: number | undefined): void {
    const { subscriptions } = this.client
    this.#subscription ??= subscriptions.subscribe(channel, () => this.signal())
    // permits may have become free before the subscription was ready; a new subscription signals when it is
    if (messagesSeen !== subscriptions.messagesSeen(channel)) this.signal()
  }

  /** The fallback interval is over, or a lease. */
  ring(): void {
    this.signal()
  }

  /** There may be permits. */
  signal(): void {
    if (this.turn === undefined) this.#give(this.#first(Number.POSITIVE_INFINITY))
    else this.#signaled = true
  }

  /** The waiter that has the turn sends its request. */
  ask(): void {
    this.#signaled = false
  }

  /** Its request has been answered. */
  answered(waiter: PermitWaiter, { available, granted, remaining }: PermitReply<unknown>): void {
    if (granted !== undefined) this.#remove(waiter)
    else this.#nextExpiry = remaining < 0 ? Number.POSITIVE_INFINITY : this.client.now() + remaining + 1
    this.outage.answered()
    this.turn = undefined
    if (this.#signaled) this.signal()
    else this.#give(this.#first(available))
    if (this.turn === undefined && this.size > 0) this.#rest()
  }

  /** Its request failed for a transient reason: the first waiter asks again after a pause. */
  failed(failure: LockStoreError): void {
    this.outage.failed(failure)
    this.#nextExpiry = Number.POSITIVE_INFINITY
    this.turn = undefined
    if (this.#signaled) this.signal()
    else this.#rest()
  }

  /** Leaves; a waiter that leaves during its turn passes the turn on. */
  leave(waiter: PermitWaiter): void {
    this.client.alarms.cancel(waiter)
    this.#remove(waiter)
    if (this.turn !== waiter) return
    this.turn = undefined
    this.signal()
  }

  end(): void {
    this.client.alarms.cancel(this)
    this.#subscription?.stop()
  }

  #first(available: number): PermitWaiter | undefined {
    let first: PermitWaiter | undefined
    for (const [permits, waiters] of this.#waiters) {
      const waiter = waiters.first!
      if (permits <= available && (first === undefined || waiter.number < first.number)) first = waiter
    }
    return first
  }

  #remove(waiter: PermitWaiter): void {
    if (!this.#waiting.delete(waiter)) return
    const waiters = this.#waiters.get(waiter.permits)!
    waiters.remove(waiter)
    if (waiters.first === undefined) this.#waiters.delete(waiter.permits)
  }

  #give(waiter: PermitWaiter | undefined): void {
    this.turn = waiter
    waiter?.wake()
  }

  /** Relies on messages until the fallback interval or a lease is over. */
  #rest(): void {
    const now = this.client.now()
    const fallback = now + this.outage.pauseMillis(this.client.options.fallbackIntervalMillis)
    this.client.alarms.set(this, Math.max(now, Math.min(fallback, this.#nextExpiry)))
  }
}

/**
 * The queues of a client, by semaphore. A queue exists while somebody waits.
 */
export class PermitQueues {
  readonly #client: WaitingClient
  readonly #queues = new Map<string, PermitQueue>()

  constructor(client: WaitingClient) {
    this.#client = client
  }

  get size(): number {
    return this.#queues.size
  }

  get(key: string): PermitQueue | undefined {
    return this.#queues.get(key)
  }

  /** Wakes the first waiter of each queue, which learns that the client closes; the others follow as it leaves. */
  sendHome(): void {
    for (const queue of this.#queues.values()) queue.signal()
  }

  /** The queue of a semaphore, or a new one. */
  open(key: string): PermitQueue {
    let queue = this.#queues.get(key)
    if (queue === undefined) this.#queues.set(key, (queue = new PermitQueue(this.#client)))
    return queue
  }

  /** Leaves; the last waiter to leave ends the queue and its subscription. */
  leave(key: string, queue: PermitQueue, waiter: PermitWaiter): void {
    queue.leave(waiter)
    if (queue.size > 0 || this.#queues.get(key) !== queue) return
    this.#queues.delete(key)
    queue.end()
  }
}
