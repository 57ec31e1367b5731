/**
 * The fibers of this process that wait for one latch. They share one subscription, and one look at the count for all: when
 * somebody comes, at every signal, and when the fallback interval is over.
 */
import type * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { LatchTimeout, type LockStoreError } from "../../LockError.ts"
import type { Alarm } from "../time/AlarmClock.ts"
import { latchChannel } from "../store/keys.ts"
import { latchTitle } from "../protocol/latch.ts"
import type { WaitingClient } from "./WaitingClient.ts"
import { transientFailure } from "../store/transient.ts"
import { Outage } from "./Outage.ts"
import type { Subscription } from "./Subscriptions.ts"
import { count } from "../store/operations/latch.ts"
import { runOrDescribe } from "../store/wrongType.ts"

type Outcome = Effect.Effect<void, LatchTimeout | LockStoreError>

class LatchWaiter implements Alarm {
  readonly #queue: LatchQueue
  readonly #name: string
  readonly #resume: (outcome: Outcome) => void
  readonly #startedAt: number
  /** Whether a look that began after it came has been answered. */
  #looked = false
  #isLate: boolean
  due = 0
  heapIndex = -1

  constructor(
    queue: LatchQueue,
    name: string,
    startedAt: number,
    waitMillis: number,
    resume: (outcome: Outcome) => void
  ) {
    this.#isLate = waitMillis <= 0
    this.#queue = queue
    this.#name = name
    this.#startedAt = startedAt
    this.#resume = resume
  }

  /** Its wait time is over. It gives up once it knows the count, or that the count cannot be known. */
  ring(now: number): void {
    this.#isLate = true
    if (this.#looked || this.#queue.outage.failure !== undefined) this.#giveUp(now)
  }

  looked(now: number): void {
    this.#looked = true
    if (this.#isLate) this.#giveUp(now)
  }

  /** A look has failed, for a reason that passes. */
  failed(now: number): void {
    if (this.#isLate) this.#giveUp(now)
  }

  end(outcome: Outcome): void {
    this.#queue.leave(this)
    this.#queue.client.inOwnTurn(() => this.#resume(outcome))
  }

  #giveUp(now: number): void {
    const { failure } = this.#queue.outage
    if (failure !== undefined) {
      this.end(Effect.fail(failure))
      return
    }
    const waited = Duration.millis(now - this.#startedAt)
    this.end(Effect.fail(new LatchTimeout({ latch: this.#name, waited, count: this.#queue.count })))
  }
}

class LatchQueue implements Alarm {
  readonly client: WaitingClient
  readonly #key: string
  readonly #end: () => void
  readonly #waiters = new Set<LatchWaiter>()
  #subscription: Subscription | undefined = undefined
  #isLooking = false
  #lookAgain = false
  /** The last count seen. */
  count = 0
  readonly outage = new Outage()
  due = 0
  heapIndex = -1

  constructor(client: WaitingClient, key: string, end: () => void) {
    this.client = client
    this.#end = end
    this.#key = key
  }

  join(waiter: LatchWaiter): void {
    this.#waiters.add(waiter)
    this.look()
  }

  /** The last one to leave ends the queue, and its subscription with it. */
  leave(waiter: LatchWaiter): void {
    this.client.alarms.cancel(waiter)
    if (!this.#waiters.delete(waiter) || this.#waiters.size > 0) return
    this.client.alarms.cancel(this)
    this.#end()
    this.#subscription?.stop()
  }

  /** The fallback interval is over. */
  ring(): void {
    this.look()
  }

  /** Asks for the count, for all who wait by now. Who comes while the question is under way is answered by the next one. */
  look(): void {
    if (this.#waiters.size === 0) return
    if (this.#isLooking) {
      this.#lookAgain = true
      return
    }
    this.#isLooking = true
    const asked = [...this.#waiters]
    const messagesSeen = this.client.subscriptions.messagesSeen(latchChannel(this.#key))
    this.client.fork(
      Effect.matchCause(runOrDescribe(this.client, latchTitle, count(this.#key)), {
        onFailure: (cause) => this.#failed(asked, cause),
        onSuccess: (count) => this.#answered(asked, count, messagesSeen)
      })
    )
  }

  #answered(asked: ReadonlyArray<LatchWaiter>, count: number, messagesSeen: number | undefined): void {
    this.#isLooking = false
    this.count = count
    this.outage.answered()
    const now = this.client.now()
    for (const waiter of asked) {
      // who has left in the meantime has nothing to be told
      if (!this.#waiters.has(waiter)) continue
      if (count === 0) waiter.end(Effect.void)
      else waiter.looked(now)
    }
    if (this.#waiters.size === 0) return
    if (this.#subscription === undefined) this.#subscribe(messagesSeen)
    this.#goOn(now)
  }

  #failed(asked: ReadonlyArray<LatchWaiter>, cause: Cause.Cause<LockStoreError>): void {
    this.#isLooking = false
    const failure = transientFailure(cause)
    if (failure === undefined) this.outage.answered()
    else this.outage.failed(failure)
    const now = this.client.now()
    for (const waiter of asked) {
      if (!this.#waiters.has(waiter)) continue
      if (failure === undefined) waiter.end(Effect.failCause(cause))
      else waiter.failed(now)
    }
    if (this.#waiters.size === 0) return
    // to hear when the store is back
    if (this.#subscription === undefined) this.#subscribe(undefined)
    this.#goOn(now)
  }

  #goOn(now: number): void {
    if (this.#lookAgain) {
      this.#lookAgain = false
      this.look()
    } else {
      this.client.alarms.set(this, now + this.outage.pauseMillis(this.client.options.fallbackIntervalMillis))
    }
  }

  #subscribe(messagesSeen: number | undefined): void {
    const channel = latchChannel(this.#key)
    const { subscriptions } = this.client
    this.#subscription = subscriptions.subscribe(channel, () => this.look())
    // the latch may have opened before this could hear it; a new subscription signals by itself when it stands
    if (messagesSeen !== subscriptions.messagesSeen(channel)) this.look()
  }
}

/**
 * The watches of a client, by latch. A queue exists while somebody waits.
 */
export class LatchQueues {
  readonly #client: WaitingClient
  readonly #queues = new Map<string, LatchQueue>()

  constructor(client: WaitingClient) {
    this.#client = client
  }

  get size(): number {
    return this.#queues.size
  }

  /** Everybody looks once more, and learns that the client closes. */
  sendHome(): void {
    for (const queue of this.#queues.values()) queue.look()
  }

  /** Waits until the count is zero. */
  await(name: string, key: string, waitMillis: number): Outcome {
    return Effect.suspend(() =>
      this.#client.isClosing ? Effect.asVoid(this.#client.store.run(count(key))) : this.#wait(name, key, waitMillis)
    )
  }

  #wait(name: string, key: string, waitMillis: number): Outcome {
    return Effect.callback<void, LatchTimeout | LockStoreError>((resume) => {
      let queue = this.#queues.get(key)
      if (queue === undefined)
        this.#queues.set(key, (queue = new LatchQueue(this.#client, key, () => this.#queues.delete(key))))
      const now = this.#client.now()
      const waiter = new LatchWaiter(queue, name, now, waitMillis, resume)
      if (waitMillis < Number.POSITIVE_INFINITY) this.#client.alarms.set(waiter, now + waitMillis)
      queue.join(waiter)
      return Effect.sync(() => queue.leave(waiter))
    })
  }
}
