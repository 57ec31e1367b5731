/**
 * Decides who gets a lock that this process releases: its own next waiter at once, or, after several of these hand-overs,
 * another process: the one with the oldest place, or whichever of those that were woken asks first.
 */
import type { HandOver, ReleasedLease } from "../hold/HoldingClient.ts"
import { type Mode, takesPlaces } from "../protocol/LockProtocol.ts"
import { ownChannel } from "./Place.ts"
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
  readonly nextOwner: () => string
  readonly isHeldHere: (key: string, mode: Mode) => boolean
}

/**
 * Wakes the next waiter of this process before the release is sent. That waiter runs only after the releasing fiber has
 * sent its release, so its request comes right behind. Returns what to do with the reply; undefined if nobody waits here.
 */
export const startHandOver = (client: QueueingClient, lease: ReleasedLease, now: number): HandOver | undefined => {
  const { keys, kind } = lease
  const hasPlaces = takesPlaces(lease)
  const queue = client.waitQueues.get(keys.lock, "exclusive")
  if (kind.mode === "write") {
    const readers = client.waitQueues.get(keys.lock, "read")
    if (readers !== undefined && !isTold(readers, lease)) readers.signal()
  }
  if (queue === undefined) return undefined
  // other holds of this process, or of others, may keep a writer from entering
  const mayStay = !hasPlaces || (kind.mode !== "read" && !client.isHeldHere(keys.lock, kind.mode))
  if (!mayStay || !queue.takeHandOver(now)) return new DeferredHandOver(lease, queue, now)
  client.telemetry.handedOver(lease.kind.name)
  const { publish } = client.store
  if (!hasPlaces) {
    queue.signal()
    return { publish, settle: () => {} }
  }
  // Others are not told: if nobody asks here after all, the release of this owner tells them.
  const ownerRef = { client: lease.client, keys, kind, name: lease.name, owner: client.nextOwner() }
  queue.place ??= { ownerRef, hasAsked: false }
  queue.quietUntil = 0
  queue.signal()
  return { publish: "", settle: () => {} }
}

/** Whether the waiters of a queue have a place, and hear when the lock is handed over to it. */
const isTold = ({ client, place }: WaitQueue, { keys, kind, owner }: ReleasedLease): boolean =>
  place !== undefined &&
  client.subscriptions.messagesSeen(ownChannel(kind.channel(keys, owner), client.clientId)) !== undefined

/** Waits for the release's reply: if other clients were woken to ask, this process leaves the lock to them for a moment. */
class DeferredHandOver implements HandOver {
  readonly #lease: ReleasedLease
  readonly #queue: WaitQueue
  readonly #sentAt: number

  constructor(lease: ReleasedLease, queue: WaitQueue, sentAt: number) {
    this.#lease = lease
    this.#queue = queue
    this.#sentAt = sentAt
  }

  get publish(): string {
    return this.#lease.client.store.publish
  }

  settle(listeners: number): void {
    const { keys, kind, owner } = this.#lease
    const { client } = this.#queue
    const own = client.subscriptions.messagesSeen(kind.channel(keys, owner)) === undefined ? 0 : 1
    if (listeners <= own) {
      // It is free, or handed over: then this process takes a place behind the others. A writer that waits for readers has one.
      if (kind.mode !== "read" || !isTold(this.#queue, this.#lease)) this.#queue.signal()
      return
    }
    const now = client.now()
    const quiet = Math.max(shortestQuietMillis, quietRoundTrips * (now - this.#sentAt))
    this.#queue.quietUntil = now + Math.min(quiet, longestQuietMillis)
    if (this.#queue.turn !== undefined) client.alarms.set(this.#queue.turn, this.#queue.quietUntil)
  }
}
