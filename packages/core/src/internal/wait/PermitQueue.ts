/**
 * The fibers of this process that wait for permits of one semaphore, each with its demand. One asks Redis at a time: a
 * signal gives the turn to the first, and every answer tells what is free, so that the turn goes on to the first whose demand
 * fits, after a grant as well as after a denial. Nobody waits behind somebody who wants more than there is.
 */
import * as Effect from "effect/Effect"
import type { LockStoreError } from "../../LockError.ts"
import type { Alarm } from "../time/AlarmClock.ts"
import type { PermitReply } from "../acquire/acquirePermits.ts"
import { type Linked, LinkedList } from "./LinkedList.ts"
import type { LockClient } from "../client/LockClient.ts"
import type { Listening } from "./Subscriptions.ts"

export class PermitWaiter implements Alarm, Linked<PermitWaiter> {
  readonly permits: number
  /** How many had come before it. */
  readonly number: number
  before: PermitWaiter | undefined = undefined
  behind: PermitWaiter | undefined = undefined
  readonly #line: PermitQueue
  #resume: (() => void) | undefined = undefined
  #isLate = false
  due = 0
  place = -1

  constructor(line: PermitQueue, permits: number, number: number) {
    this.#line = line
    this.permits = permits
    this.number = number
  }

  get hasTurn(): boolean {
    return this.#line.turn === this
  }

  /** Its wait time is over. */
  ring(): void {
    this.#isLate = true
    this.wake()
  }

  wake(): void {
    const resume = this.#resume
    if (resume === undefined) return
    // once, however often it is told before its turn comes
    this.#resume = undefined
    this.#line.client.inOwnTurn(resume)
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
  readonly client: LockClient
  /** By how many permits they want; each in the order in which they came. */
  readonly #waiters = new Map<number, LinkedList<PermitWaiter>>()
  readonly #waiting = new Set<PermitWaiter>()
  #joined = 0
  #listening: Listening | undefined = undefined
  /** Who asks Redis now, or is about to. */
  turn: PermitWaiter | undefined = undefined
  /** Whether there was a signal that the question under way may have come too early for. */
  #signaled = false
  /** When a lease ends next, as far as known; on the monotonic clock. */
  #nextExpiry = Number.POSITIVE_INFINITY
  /** What the store failed with when it was last asked; undefined where it has answered. */
  failure: LockStoreError | undefined = undefined
  due = 0
  place = -1

  constructor(client: LockClient) {
    this.client = client
  }

  get size(): number {
    return this.#waiting.size
  }

  /** Whether somebody waits who would be content with as much: who comes later is served later. */
  isAhead(permits: number): boolean {
    return this.#first(permits) !== undefined
  }

  join(permits: number): PermitWaiter {
    const waiter = new PermitWaiter(this, permits, this.#joined++)
    let waiters = this.#waiters.get(permits)
    if (waiters === undefined) this.#waiters.set(permits, (waiters = new LinkedList()))
    waiters.add(waiter)
    this.#waiting.add(waiter)
    if (this.place === -1 && this.turn === undefined) this.#rest()
    return waiter
  }

  /**
   * Hears the semaphore's channel from now on, for all who wait. `heard` is how many signals had been heard before the
   * question that was denied.
   */
  listen(channel: string, heard: number | undefined): void {
    const { signals } = this.client
    this.#listening ??= signals.listen(channel, () => this.signal())
    // permits may have become free before this line could hear it; a new subscription signals by itself when it stands
    if (heard !== signals.heard(channel)) this.signal()
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

  /** The one whose turn it is begins to ask. */
  ask(): void {
    this.#signaled = false
  }

  /** It has the answer. */
  answered(waiter: PermitWaiter, { available, granted, remaining }: PermitReply<unknown>): void {
    if (granted !== undefined) this.#remove(waiter)
    else this.#nextExpiry = remaining < 0 ? Number.POSITIVE_INFINITY : this.client.now() + remaining + 1
    this.failure = undefined
    this.turn = undefined
    if (this.#signaled) this.signal()
    else this.#give(this.#first(available))
    if (this.turn === undefined && this.size > 0) this.#rest()
  }

  /** It has no answer, for a reason that passes: somebody asks again when the fallback interval is over. */
  failed(failure: LockStoreError): void {
    this.failure = failure
    this.#nextExpiry = Number.POSITIVE_INFINITY
    this.turn = undefined
    if (this.#signaled) this.signal()
    else this.#rest()
  }

  /** Goes; one who goes in the middle of its turn passes it on. */
  leave(waiter: PermitWaiter): void {
    this.client.alarms.cancel(waiter)
    this.#remove(waiter)
    if (this.turn !== waiter) return
    this.turn = undefined
    this.signal()
  }

  end(): void {
    this.client.alarms.cancel(this)
    this.#listening?.stop()
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

  /** Relies on signals until the fallback interval is over, jittered so that processes do not ask together, or a lease. */
  #rest(): void {
    const now = this.client.now()
    const fallback = now + this.client.options.fallbackIntervalMillis * (0.8 + 0.4 * Math.random())
    this.client.alarms.set(this, Math.max(now, Math.min(fallback, this.#nextExpiry)))
  }
}

/**
 * The lines of a client, by semaphore. A line exists while somebody waits.
 */
export class PermitQueues {
  readonly #client: LockClient
  readonly #lines = new Map<string, PermitQueue>()

  constructor(client: LockClient) {
    this.#client = client
  }

  get size(): number {
    return this.#lines.size
  }

  get(key: string): PermitQueue | undefined {
    return this.#lines.get(key)
  }

  /** Wakes the first of each line, to learn that the client closes; the others follow as it leaves. */
  sendHome(): void {
    for (const line of this.#lines.values()) line.signal()
  }

  /** The line of a semaphore, or a new one. */
  open(key: string): PermitQueue {
    let line = this.#lines.get(key)
    if (line === undefined) this.#lines.set(key, (line = new PermitQueue(this.#client)))
    return line
  }

  /** Leaves; the last one to leave ends the line, and its subscription with it. */
  leave(key: string, line: PermitQueue, waiter: PermitWaiter): void {
    line.leave(waiter)
    if (line.size > 0 || this.#lines.get(key) !== line) return
    this.#lines.delete(key)
    line.end()
  }
}
