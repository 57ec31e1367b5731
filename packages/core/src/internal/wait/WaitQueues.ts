/**
 * The queues of a client: one per name and kind of wait, for as long as somebody waits.
 */
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import type { Mode } from "../protocol/LockProtocol.ts"
import type { Waiter, Wake, Wanted } from "./Waiter.ts"
import type { WaitingClient } from "./WaitingClient.ts"
import type { Identity } from "../hold/owner.ts"
import type { LockKeys } from "../store/keys.ts"
import { FairQueue } from "./fair/FairQueue.ts"
import { SpareOwners } from "./fair/SpareOwners.ts"
import { WaitQueue } from "./WaitQueue.ts"

/** What is waited for: a lock in one of its modes, permits, or a latch. */
export type Waited = Mode | "latch"

export class WaitQueues {
  readonly #client: WaitingClient
  readonly #queues: Readonly<Record<Waited, Map<string, WaitQueue>>>
  /** The queues of fair locks, whose waiters have places in Redis. */
  readonly #fair = new Map<string, FairQueue>()
  readonly spareOwners: SpareOwners

  constructor(client: WaitingClient) {
    this.#client = client
    this.spareOwners = new SpareOwners(client)
    const exclusive = new Map<string, WaitQueue>()
    // a lock is free for a writer when it is free for anybody; readers do not wait for readers
    this.#queues = { exclusive, write: exclusive, read: new Map(), permit: new Map(), latch: new Map() }
  }

  get size(): number {
    return this.#all.length + [...this.#fair.values()].filter((queue) => !queue.isEmpty).length
  }

  get #all(): ReadonlyArray<WaitQueue> {
    return [...new Set(Object.values(this.#queues))].flatMap((queues) => [...queues.values()])
  }

  get(key: string, waited: Waited): WaitQueue | undefined {
    return this.#queues[waited].get(key)
  }

  /** Wakes the waiter with the turn in each queue, which finds the client closing; as it leaves, the others follow. */
  sendHome(): void {
    for (const queue of this.#all) queue.signal()
    for (const queue of this.#fair.values()) queue.wakeMatching(() => true)
  }

  /** Wakes the waiters that may share the hold that was just acquired. */
  wakeMatching(key: string, mode: Mode, matches: (identity: Identity) => boolean): void {
    this.get(key, mode)?.wakeMatching(matches)
    this.#fair.get(key)?.wakeMatching(matches)
  }

  /** This client's queue for a fair lock; opens it if necessary. */
  openFair(keys: LockKeys): FairQueue {
    let queue = this.#fair.get(keys.lock)
    if (queue === undefined) {
      const end = () => {
        if (this.#fair.get(keys.lock) === opened) this.#fair.delete(keys.lock)
      }
      this.#client.presence.begin()
      const opened: FairQueue = new FairQueue(this.#client, keys, end, () => this.openFair(keys))
      this.#fair.set(keys.lock, (queue = opened))
    }
    return queue
  }

  /** Joins a queue, or starts one; its turn is reserved if a request is in flight. */
  join(
    key: string,
    waited: Waited,
    wanted: Wanted,
    isReserved: () => boolean = () => false
  ): Effect.Effect<readonly [WaitQueue, Waiter]> {
    return Effect.suspend(() => {
      const queues = this.#queues[waited]
      const queue = queues.get(key)
      if (queue !== undefined) return Effect.succeed([queue, queue.join(wanted)])
      return Effect.map(Queue.sliding<Wake>(1), (signals) => {
        // another fiber may have started one in between
        let queue = queues.get(key)
        if (queue === undefined) {
          this.#client.presence.begin()
          queue = new WaitQueue(this.#client, signals, isReserved(), () => queues.delete(key))
          queues.set(key, queue)
        }
        return [queue, queue.join(wanted)]
      })
    })
  }
}
