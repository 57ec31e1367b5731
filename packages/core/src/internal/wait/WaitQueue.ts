/**
 * The fibers of this process that wait for one lock, first come first served. Only the first talks to Redis; it is woken
 * through a queue of one signal, fed by the releases of this process and by the lock's channel. A signal stays until it is
 * taken, so that none is missed between an attempt and the wait that follows it.
 */
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import type { LockStoreError } from "../../LockError.ts"
import type { Alarm } from "../time/AlarmClock.ts"
import { type Linked, LinkedList } from "./LinkedList.ts"
import type { LockClient } from "../client/LockClient.ts"
import type { Mode } from "../protocol/LockProtocol.ts"
import type { Identity } from "../hold/owner.ts"
import type { Listening } from "./Subscriptions.ts"

/** What wakes the first waiter: a release, or the end of the time that it is willing to rely on being told. */
export type Wake = "signal" | "tick"

export class Waiter implements Alarm, Linked<Waiter> {
  readonly identity: Identity
  readonly #line: WaitQueue
  due = 0
  place = -1
  before: Waiter | undefined = undefined
  behind: Waiter | undefined = undefined
  #resume: (() => void) | undefined = undefined

  constructor(line: WaitQueue, identity: Identity) {
    this.#line = line
    this.identity = identity
  }

  get isFirst(): boolean {
    return this.#line.first === this
  }

  /** The time it wanted to sleep is over. */
  ring(): void {
    if (this.isFirst) this.#line.wake("tick")
    else this.call()
  }

  /** Ends its sleep. */
  call(): void {
    const resume = this.#resume
    if (resume === undefined) return
    // once, however often it is told before its turn comes
    this.#resume = undefined
    this.#line.client.inOwnTurn(resume)
  }

  /** Sleeps until it is the first, or until somebody calls it for another reason. */
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

/**
 * After so many hand-overs in a row within this process, and so long a time, the other processes have their chance.
 */
const enoughHandOvers = 8
const enoughMillis = 5

export class WaitQueue {
  readonly #waiters = new LinkedList<Waiter>()
  readonly client: LockClient
  readonly signals: Queue.Queue<Wake>
  /** What is heard of the lock's channel, once that is needed. */
  listening: Listening | undefined = undefined
  /** Whether others were told that somebody waits here: see {@link LockKind.withdraw}. */
  announced = false
  /** Until when this line leaves the lock to others, on the monotonic clock. */
  quietUntil = 0
  /** What the store failed with when it was last asked; undefined where it has answered. */
  failure: LockStoreError | undefined = undefined
  #handOvers = 0
  #firstHandOver = 0

  #isReserved: boolean

  constructor(client: LockClient, signals: Queue.Queue<Wake>, isReserved: boolean) {
    this.client = client
    this.signals = signals
    this.#isReserved = isReserved
  }

  get isEmpty(): boolean {
    return this.#waiters.first === undefined
  }

  /** The one whose turn it is; nobody while the head is kept for who asks already. */
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

  /** Leaves the line; when the first leaves, the next one's turn has come. */
  leave(waiter: Waiter): void {
    const wasFirst = waiter.isFirst
    this.#waiters.remove(waiter)
    if (wasFirst) this.first?.call()
  }

  /** Who asked already has its answer: the head is its own if it waits, else the next one's turn has come. */
  unreserve(): void {
    this.#isReserved = false
    this.first?.call()
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

  /** Calls those who may share what was just acquired. */
  call(matches: (identity: Identity) => boolean): void {
    for (const waiter of this.#waiters.toArray()) {
      if (matches(waiter.identity)) {
        if (waiter.isFirst) this.signal()
        else waiter.call()
      }
    }
  }

  /** Calls everybody but the first: what it got, or is about to ask for, can be shared. */
  callOthers(): void {
    for (const waiter of this.#waiters.toArray()) {
      if (!waiter.isFirst) waiter.call()
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
 * The lines of a client: one for each lock and side while somebody waits there, for readers and writers do not wait for the
 * same.
 */
export class WaitQueues {
  readonly #client: LockClient
  readonly #lines = new Map<string, WaitQueue>()
  readonly #readers = new Map<string, WaitQueue>()

  constructor(client: LockClient) {
    this.#client = client
  }

  get size(): number {
    return this.#lines.size + this.#readers.size
  }

  #of(mode: Mode): Map<string, WaitQueue> {
    return mode === "read" ? this.#readers : this.#lines
  }

  get(key: string, mode: Mode): WaitQueue | undefined {
    return this.#of(mode).get(key)
  }

  /** Wakes the first of each line, to learn that the client closes; the others follow as it leaves. */
  sendHome(): void {
    for (const lines of [this.#lines, this.#readers]) for (const line of lines.values()) line.signal()
  }

  /** Joins the line of a lock, or begins one; its head may be reserved. */
  join(
    key: string,
    mode: Mode,
    identity: Identity,
    place: { readonly isReserved: () => boolean; readonly atHead: boolean }
  ): Effect.Effect<readonly [WaitQueue, Waiter]> {
    return Effect.suspend(() => {
      const lines = this.#of(mode)
      const line = lines.get(key)
      if (line !== undefined) return Effect.succeed([line, line.join(identity, place.atHead)])
      return Effect.map(Queue.sliding<Wake>(1), (signals) => {
        // another fiber may have begun it in between
        let line = lines.get(key)
        if (line === undefined) lines.set(key, (line = new WaitQueue(this.#client, signals, place.isReserved())))
        return [line, line.join(identity, place.atHead)]
      })
    })
  }

  /** Leaves; the last one to leave ends the line, and its subscription with it. */
  leave(key: string, mode: Mode, line: WaitQueue, waiter: Waiter): void {
    line.leave(waiter)
    if (!line.isEmpty) return
    this.#of(mode).delete(key)
    line.listening?.stop()
  }
}
