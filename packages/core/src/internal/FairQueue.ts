/**
 * The waiters of this client in the queues of fair locks. Each has a place and a channel of its own in Redis; all of one lock
 * are kept alive by one command per interval, which also tells when a message has been missed.
 */
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Queue from "effect/Queue"
import type { LockStoreError } from "../LockError.ts"
import type { Reply } from "../RedisDriver.ts"
import type { Alarm } from "./AlarmClock.ts"
import { fair, patienceMillis } from "./kinds/fair.ts"
import type { LockKeys } from "./keys.ts"
import type { Wake } from "./Line.ts"
import type { LockClient } from "./LockClient.ts"
import type { Identity } from "./owner.ts"
import type { Possession } from "./Possession.ts"

export class Place implements Alarm {
  readonly owner: string
  readonly identity: Identity
  readonly signals: Queue.Queue<Wake>
  /** Whether a command is on its way that may end the wait: until then the place needs no refresh. */
  asking = false
  /** When it last asked. */
  askedAt = Number.NEGATIVE_INFINITY
  /** Until when it is willing to wait. */
  readonly waitsUntil: number
  due = 0
  place = -1

  constructor(owner: string, identity: Identity, signals: Queue.Queue<Wake>, waitsUntil: number) {
    this.owner = owner
    this.identity = identity
    this.signals = signals
    this.waitsUntil = waitsUntil
  }

  /** The time it wanted to wait is over, or the holder's lease. */
  ring(): void {
    Queue.offerUnsafe(this.signals, "tick")
  }

  signal(): void {
    Queue.offerUnsafe(this.signals, "signal")
  }
}

export class FairQueue implements Alarm {
  readonly #client: LockClient
  readonly #keys: LockKeys
  readonly #end: () => void
  readonly #places = new Map<string, Place>()
  /** Owners that nobody uses now, whose channels are still heard. */
  readonly #idle: Array<string> = []
  #refreshedAt = 0
  #refreshing: "no" | "yes" | "again" = "no"
  readonly #settled = Latch.makeUnsafe(true)
  due = 0
  place = -1

  constructor(client: LockClient, keys: LockKeys, end: () => void) {
    this.#client = client
    this.#keys = keys
    this.#end = end
  }

  get isEmpty(): boolean {
    return this.#places.size === 0
  }

  /** Takes in a place that was denied the lock, which is held for so many milliseconds more (below zero: who knows). */
  join(place: Place, left: number): void {
    if (this.#places.size === 0) {
      this.#refreshedAt = this.#client.now()
      this.#client.alarms.set(this, this.#refreshedAt + this.#client.options.placeIntervalMillis)
    }
    this.#places.set(place.owner, place)
    this.sleep(place, left)
  }

  /** Lets a place sleep as long as it is willing to wait; the first one of this process not past the end of the lease. */
  sleep(place: Place, left: number): void {
    const [first] = this.#places.values()
    this.#wakeAfter(place, place === first && left >= 0 ? left + 1 : Number.POSITIVE_INFINITY)
  }

  #wakeAfter(place: Place, millis: number): void {
    const { alarms, now } = this.#client
    const until = Math.min(place.waitsUntil, now() + millis)
    if (until < Number.POSITIVE_INFINITY) alarms.set(place, until)
  }

  leave(place: Place): void {
    this.#places.delete(place.owner)
    if (this.#places.size === 0) this.#rest()
  }

  /** Calls those who may share what was just acquired. */
  call(matches: (identity: Identity) => boolean): void {
    for (const place of this.#places.values()) {
      if (matches(place.identity)) place.signal()
    }
  }

  /** Keeps an owner that has no place and holds nothing, for its channel. */
  keep(owner: string): void {
    this.#idle.push(owner)
    if (this.#places.size === 0) this.#rest()
  }

  /** An owner whose channel is heard already, if there is one. */
  reuse(): string | undefined {
    for (let owner = this.#idle.pop(); owner !== undefined; owner = this.#idle.pop()) {
      if (this.#isHeard(owner)) return owner
    }
    return undefined
  }

  /** Looks at once whether somebody's turn has come: a message may have been missed. */
  look(): void {
    if (this.#refreshing === "no") this.#refresh(this.#client.now(), true)
    else this.#refreshing = "again"
  }

  /**
   * Waits for a refresh that is under way. A server that does not know the script yet is sent it a second time, behind what
   * was sent meanwhile: who gives up its place waits for that, or would be given it back.
   */
  get settled(): Effect.Effect<void> {
    return this.#settled.await
  }

  ring(now: number): void {
    if (this.#places.size === 0) {
      this.#rest()
      return
    }
    this.#client.alarms.set(this, now + this.#client.options.placeIntervalMillis)
    if (this.#refreshing === "no") this.#refresh(now, false)
  }

  #isHeard(owner: string): boolean {
    return this.#client.signals.heard(fair.channel(this.#keys, owner)) !== undefined
  }

  /** Nobody waits: forgets the owners whose channels are heard no more, and ends with the last one. */
  #rest(): void {
    const heard = this.#idle.filter((owner) => this.#isHeard(owner))
    this.#idle.length = 0
    if (heard.length === 0) {
      this.#client.alarms.cancel(this)
      this.#end()
      return
    }
    this.#idle.push(...heard)
    this.#client.alarms.set(this, this.#client.now() + this.#client.options.subscriptionIdleMillis)
  }

  #refresh(now: number, atOnce: boolean): void {
    this.#refreshing = "yes"
    this.#settled.closeUnsafe()
    this.#client.fork(
      // Who waits is looked up when the command is sent: one that left before must not get a place again.
      Effect.suspend(() => {
        const owners = [...this.#places.values()].filter(({ asking }) => !asking).map(({ owner }) => owner)
        if (owners.length === 0) return Effect.sync(() => this.#refreshed())
        return Effect.match(this.#command(owners, now), {
          onSuccess: (reply) => {
            this.#refreshedAt = now
            const [left, head, headMillis] = reply as readonly [number, string | null, number]
            if (head !== null) {
              if (left === -2) this.#turnOf(head, headMillis, atOnce)
              else if (left >= 0) this.#nextIs(head, left)
            }
            this.#refreshed()
          },
          // the places outlive a few refreshes; whoever asks next reports what is wrong
          onFailure: () => this.#refreshed()
        })
      })
    )
  }

  #command(owners: ReadonlyArray<string>, now: number): Effect.Effect<Reply, LockStoreError> {
    const { clientId, options, store } = this.#client
    const { channel, clients, lock, queue, timeouts } = this.#keys
    const elapsed = Math.max(0, Math.floor(now - this.#refreshedAt))
    return store.run(
      "fair_lock/refresh",
      [lock, channel, queue, timeouts, clients],
      [store.publish, patienceMillis, clientId, options.placeLifeMillis, elapsed, ...owners]
    )
  }

  #refreshed(): void {
    const again = this.#refreshing === "again"
    this.#refreshing = "no"
    this.#settled.openUnsafe()
    if (again) this.#refresh(this.#client.now(), true)
  }

  /** The lock is held for so many milliseconds more; then it is the turn of this owner, whom nobody may tell. */
  #nextIs(head: string, left: number): void {
    const place = this.#places.get(head)
    if (place !== undefined && !place.asking) this.#wakeAfter(place, left + 1)
  }

  /** The lock is free, and it is the turn of this owner, which is taken for dead after so long. */
  #turnOf(head: string, millis: number, atOnce: boolean): void {
    const { alarms, now, options } = this.#client
    const place = this.#places.get(head)
    if (place === undefined) {
      const lookAgainAt = now() + millis + 1
      if (this.place !== -1 && lookAgainAt < this.due) alarms.set(this, lookAgainAt)
    } else if (atOnce || now() - place.askedAt >= options.fallbackIntervalMillis / 2) {
      place.signal()
    }
  }
}

/**
 * The fair queues in which this client has a place, or had one a short while ago, by lock key.
 */
export class FairQueues {
  readonly #client: LockClient
  readonly #queues = new Map<string, FairQueue>()

  constructor(client: LockClient) {
    this.#client = client
  }

  /** Queues with waiters. */
  get size(): number {
    return [...this.#queues.values()].filter((queue) => !queue.isEmpty).length
  }

  get(key: string): FairQueue | undefined {
    return this.#queues.get(key)
  }

  open(keys: LockKeys): FairQueue {
    let queue = this.#queues.get(keys.lock)
    if (queue === undefined) {
      queue = new FairQueue(this.#client, keys, () => this.#queues.delete(keys.lock))
      this.#queues.set(keys.lock, queue)
    }
    return queue
  }

  /** The owner of a possession that was released for sure may serve again, if its channel is heard. */
  keep({ keys, kind, owner }: Possession): void {
    if (this.#client.signals.heard(kind.channel(keys, owner)) !== undefined) this.open(keys).keep(owner)
  }
}
