/**
 * Who gets a lock that this process releases: the next waiter of this process at once, or, after a while of that, the waiters
 * of other processes.
 */
import type { HandOver, ReleasedLease } from "../hold/HoldingClient.ts"
import type { WaitingClient } from "./WaitingClient.ts"
import type { WaitQueue } from "./WaitQueue.ts"
import type { WaitQueues } from "./WaitQueues.ts"

/** The pause after a release that other processes were told of: a few round trips, as the message takes longer to them than the lock to us. */
const quietRoundTrips = 4
const shortestQuietMillis = 2
const longestQuietMillis = 100

interface QueueingClient extends WaitingClient {
  readonly waitQueues: WaitQueues
}

/**
 * Wakes the next waiter of this process before the release is sent. It starts only after the releasing fiber has sent its
 * release, so its request comes right behind. Undefined where that has settled it, or nobody waits here.
 */
export const startHandOver = (client: QueueingClient, lease: ReleasedLease, now: number): HandOver | undefined => {
  const { keys, kind } = lease
  const queue = client.waitQueues.get(keys.lock, "exclusive")
  const handedOver = queue !== undefined && queue.mayHandOver(now)
  if (kind.mode === "write") client.waitQueues.get(keys.lock, "read")?.signal()
  if (handedOver) queue.signal()
  return queue === undefined || handedOver ? undefined : new DeferredHandOver(client, lease, queue, now)
}

/** A release whose reply decides: where listeners in other processes were told, this process leaves the lock to them. */
class DeferredHandOver implements HandOver {
  readonly #client: QueueingClient
  readonly #lease: ReleasedLease
  readonly #queue: WaitQueue
  readonly #sentAt: number

  constructor(client: QueueingClient, lease: ReleasedLease, queue: WaitQueue, sentAt: number) {
    this.#client = client
    this.#lease = lease
    this.#queue = queue
    this.#sentAt = sentAt
  }

  settle(listeners: number): void {
    const { keys, kind, owner } = this.#lease
    const { alarms, subscriptions } = this.#client
    const own = subscriptions.messagesSeen(kind.channel(keys, owner)) === undefined ? 0 : 1
    if (listeners <= own) {
      this.#queue.signal()
      return
    }
    const now = this.#client.now()
    const quiet = Math.max(shortestQuietMillis, quietRoundTrips * (now - this.#sentAt))
    this.#queue.quietUntil = now + Math.min(quiet, longestQuietMillis)
    if (this.#queue.turn !== undefined) alarms.set(this.#queue.turn, this.#queue.quietUntil)
  }
}
