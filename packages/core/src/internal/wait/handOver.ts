/**
 * Decides who gets a lock that this process releases: its own next waiter at once, or, after several of these hand-overs,
 * the waiters of other processes.
 */
import type { HandOver, ReleasedLease } from "../hold/HoldingClient.ts"
import type { WaitingClient } from "./WaitingClient.ts"
import type { WaitQueue } from "./WaitQueue.ts"
import type { WaitQueues } from "./WaitQueues.ts"

/**
 * The pause after a release that was announced to other processes: a few round trips, as the message takes longer to reach
 * them than a request of ours to reach Redis.
 */
const quietRoundTrips = 4
const shortestQuietMillis = 2
const longestQuietMillis = 100

interface QueueingClient extends WaitingClient {
  readonly waitQueues: WaitQueues
}

/**
 * Wakes the next waiter of this process before the release is sent. That waiter runs only after the releasing fiber has
 * sent its release, so its request comes right behind. Returns what to do with the reply; undefined if the next waiter was
 * woken already, or nobody waits here.
 */
export const startHandOver = (client: QueueingClient, lease: ReleasedLease, now: number): HandOver | undefined => {
  const { keys, kind } = lease
  const queue = client.waitQueues.get(keys.lock, "exclusive")
  const handedOver = queue !== undefined && queue.takeHandOver(now)
  if (kind.mode === "write") client.waitQueues.get(keys.lock, "read")?.signal()
  if (handedOver) {
    client.telemetry.handedOver(lease)
    queue.signal()
  }
  return queue === undefined || handedOver ? undefined : new DeferredHandOver(client, lease, queue, now)
}

/** Waits for the release's reply: if other processes were listening, this one leaves the lock to them for a moment. */
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
