/**
 * The fibers of this process that wait for one lock, first come, first served. Only the first talks to Redis. It takes its
 * wake-ups from a `Queue` of one signal, fed by the releases of this process and by the lock's channel. A signal stays until it
 * is taken, so none is missed between a request and the wait that follows it.
 */
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import type { Alarm } from "../time/AlarmClock.ts"
import { type Linked, LinkedList } from "./LinkedList.ts"
import { Outage } from "./Outage.ts"
import type { WaitingClient } from "./WaitingClient.ts"
import type { Mode } from "../protocol/LockProtocol.ts"
import type { Identity } from "../hold/owner.ts"
import type { Subscription } from "./Subscriptions.ts"

/** What wakes the first waiter: a release, or the end of its pause. */
export type Wake = "signal" | "tick"

export class Waiter implements Alarm, Linked<Waiter> {
  readonly identity: Identity
  readonly #queue: WaitQueue
  due = 0
  heapIndex = -1
  before: Waiter | undefined = undefined
  behind: Waiter | undefined = undefined
  #resume: (() => void) | undefined = undefined

  constructor(queue: WaitQueue, identity: Identity) {
    this.#queue = queue
    this.identity = identity
  }

  get isFirst(): boolean {
    return this.#queue.first === this
  }

  /** Its sleep is over. */
  ring(): void {
    if (this.isFirst) this.#queue.wake("tick")
    else this.wake()
  }

  /** Resumes its fiber. */
  wake(): void {
    const resume = this.#resume
    if (resume === undefined) return
    // once, however often it is woken before it runs
    this.#resume = undefined
    this.#queue.client.inOwnTurn(resume)
  }

  /** Sleeps until it is the first, or is woken for another reason. */
  get awaitTurn(): Effect.Effect<void> {
    return Effect.callback<void>((resume) => {
      if (this.isFirst) {
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

/** After this many hand-overs in a row within this process, and this much time, other processes get their chance. */
const enoughHandOvers = 8
const enoughMillis = 5

export class WaitQueue {
  readonly #waiters = new LinkedList<Waiter>()
  readonly client: WaitingClient
  readonly signals: Queue.Queue<Wake>
  /** The subscription to the lock's channel, once it is needed. */
  subscription: Subscription | undefined = undefined
  /** Whether others were told that somebody waits here: see {@link LockKind.withdraw}. */
  announced = false
  /** Until when this queue leaves the lock to other processes, on the monotonic clock. */
  quietUntil = 0
  readonly outage = new Outage()
  #handOvers = 0
  #firstHandOver = 0

  #isReserved: boolean

  constructor(client: WaitingClient, signals: Queue.Queue<Wake>, isReserved: boolean) {
    this.client = client
    this.signals = signals
    this.#isReserved = isReserved
  }

  get isEmpty(): boolean {
    return this.#waiters.first === undefined
  }

  /** The waiter at the head; undefined while the head is reserved for an in-flight request. */
  get first(): Waiter | undefined {
    return this.#isReserved ? undefined : this.#waiters.first
  }

  /** Joins at the end, or at the head that was reserved. */
  join(identity: Identity, atHead: boolean): Waiter {
    const waiter = new Waiter(this, identity)
    if (atHead) this.#waiters.addFirst(waiter)
    else this.#waiters.add(waiter)
    return waiter
  }

  /** Leaves the queue; when the first waiter leaves, the next one becomes the first. */
  leave(waiter: Waiter): void {
    const wasFirst = waiter.isFirst
    this.#waiters.remove(waiter)
    if (wasFirst) this.first?.wake()
  }

  /** The in-flight request has been answered: its fiber is at the head if it waits, else the next waiter becomes the first. */
  unreserve(): void {
    this.#isReserved = false
    this.first?.wake()
  }

  /** Wakes the first waiter. */
  wake(wake: Wake): void {
    Queue.offerUnsafe(this.signals, wake)
  }

  /** Wakes the first waiter to try again: the lock may be free. */
  signal(): void {
    this.wake("signal")
  }

  /** Forgets a signal that came before an attempt: the attempt answers it. */
  clear(): void {
    Queue.takeUnsafe(this.signals)
  }

  /** Wakes the waiters that may share what was just acquired. */
  wakeMatching(matches: (identity: Identity) => boolean): void {
    for (const waiter of this.#waiters.toArray()) {
      if (matches(waiter.identity)) {
        if (waiter.isFirst) this.signal()
        else waiter.wake()
      }
    }
  }

  /** Wakes every waiter but the first: they can share what it acquired or is about to request. */
  wakeOthers(): void {
    for (const waiter of this.#waiters.toArray()) {
      if (!waiter.isFirst) waiter.wake()
    }
  }

  /**
   * Whether a release may wake the first waiter before the reply is there. Its attempt then reaches Redis right behind the
   * release and ahead of everybody else's, which must not go on for ever.
   */
  mayHandOver(now: number): boolean {
    if (this.#handOvers === 0) this.#firstHandOver = now
    if (this.#handOvers >= enoughHandOvers && now - this.#firstHandOver >= enoughMillis) {
      this.#handOvers = 0
      return false
    }
    this.#handOvers++
    return true
  }
}

/**
 * The queues of a client: one for each lock and side while somebody waits, as readers and writers wait for different things.
 */
export class WaitQueues {
  readonly #client: WaitingClient
  readonly #queues = new Map<string, WaitQueue>()
  readonly #readers = new Map<string, WaitQueue>()

  constructor(client: WaitingClient) {
    this.#client = client
  }

  get size(): number {
    return this.#queues.size + this.#readers.size
  }

  #of(mode: Mode): Map<string, WaitQueue> {
    return mode === "read" ? this.#readers : this.#queues
  }

  get(key: string, mode: Mode): WaitQueue | undefined {
    return this.#of(mode).get(key)
  }

  /** Wakes the first waiter of each queue, which learns that the client closes; the others follow as it leaves. */
  sendHome(): void {
    for (const queues of [this.#queues, this.#readers]) for (const queue of queues.values()) queue.signal()
  }

  /** Joins the queue of a lock, or starts one, whose head may be reserved. */
  join(
    key: string,
    mode: Mode,
    identity: Identity,
    place: { readonly isReserved: () => boolean; readonly atHead: boolean }
  ): Effect.Effect<readonly [WaitQueue, Waiter]> {
    return Effect.suspend(() => {
      const queues = this.#of(mode)
      const queue = queues.get(key)
      if (queue !== undefined) return Effect.succeed([queue, queue.join(identity, place.atHead)])
      return Effect.map(Queue.sliding<Wake>(1), (signals) => {
        // another fiber may have begun it in between
        let queue = queues.get(key)
        if (queue === undefined) queues.set(key, (queue = new WaitQueue(this.#client, signals, place.isReserved())))
        return [queue, queue.join(identity, place.atHead)]
      })
    })
  }

  /** Leaves; the last waiter to leave ends the queue and its subscription. */
  leave(key: string, mode: Mode, queue: WaitQueue, waiter: Waiter): void {
    queue.leave(waiter)
    if (!queue.isEmpty) return
    this.#of(mode).delete(key)
    queue.subscription?.stop()
  }
}
