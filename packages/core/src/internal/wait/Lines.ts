/**
 * The lines of a client: one for each thing that somebody waits for, a lock, permits or a latch. And who gets a lock that this process
 * releases: its own next waiter at once; or, after several of these hand-overs, another process, the one with the oldest place, or
 * whichever of those that were woken asks first.
 */
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import type { LockClient } from "../client/LockClient.ts"
import { PassingMap } from "../hold/HeldLeases.ts"
import { ownHold } from "../hold/Hold.ts"
import type { LeaseEntry, Lease, Streak, Identity } from "../hold/Lease.ts"
import type { HandOver } from "../hold/release.ts"
import { giveBackPlace } from "../hold/rollback.ts"
import { handsOver, type Mode, ownerRefOf } from "../kinds/kinds.ts"
import type { LockKeys } from "../store/keys.ts"
import { FairQueue, SpareOwners } from "./FairQueue.ts"
import { Line, type Waiter, type Wanted } from "./Line.ts"
import { PermitLine } from "./PermitLine.ts"
import { ownChannel } from "./Subscriptions.ts"

/** What is waited for: a lock in one of its modes, permits, or a latch. */
type Waited = Mode | "latch"

/** The line of those that wait for it. */
type LineFor<W extends Waited> = W extends "permit" ? PermitLine : Line

export class Lines {
  readonly #client: LockClient
  readonly #lines: { readonly [W in Waited]: Map<string, LineFor<W>> }
  /** The queues of fair locks, whose waiters have places in Redis. */
  readonly fairQueues = new Map<string, FairQueue>()
  readonly spareOwners: SpareOwners
  /** Locks for which a request is in flight that others of this process wait for; of readers, which ask at the same time, the one with their place. */
  readonly #asked = { exclusive: new PassingMap<string, true>(), read: new PassingMap<string, true>() }

  constructor(client: LockClient) {
    this.#client = client
    this.spareOwners = new SpareOwners(client)
    const exclusive = new Map<string, Line>()
    // a lock is free for a writer when it is free for anybody; readers do not wait for readers
    this.#lines = { exclusive, write: exclusive, read: new Map(), permit: new Map(), latch: new Map() }
  }

  get size(): number {
    return this.#all.length + [...this.fairQueues.values()].filter((queue) => !queue.isEmpty).length
  }

  get #all(): ReadonlyArray<Line> {
    return [...new Set<Map<string, Line>>(Object.values(this.#lines))].flatMap((lines) => [...lines.values()])
  }

  get<W extends Waited>(key: string, waited: W): LineFor<W> | undefined {
    return this.#lines[waited].get(key)
  }

  /**
   * What a fiber is to do that has not waited. It joins the others where fibers of this process wait, for the lock or for the answer to a
   * request that only one of them can be granted. Else it asks, for all that come after it; or beside a reader that does.
   */
  begin(key: string, mode: Mode): "join" | "ask" | "ask beside" {
    if (this.#lines[mode].has(key)) return "join"
    const asked = mode === "read" ? this.#asked.read : this.#asked.exclusive
    if (asked.has(key)) return mode === "read" ? "ask beside" : "join"
    asked.set(key, true)
    return "ask"
  }

  /** That request was granted, or was answered in another way. */
  settle(key: string, mode: Mode, isGranted: boolean): void {
    if (mode === "read") {
      this.#asked.read.delete(key)
      return
    }
    this.#asked.exclusive.delete(key)
    this.#lines[mode].get(key)?.unreserve(isGranted)
  }

  /** Wakes the waiter with the turn in each line, which finds the client closing; as it leaves, the others follow. */
  sendHome(): void {
    for (const line of this.#all) line.on({ _tag: "Kept", grant: undefined })
    for (const queue of this.fairQueues.values()) queue.wakeMatching(() => true)
  }

  /** This client's queue for a fair lock; opens it if necessary. */
  openFair(keys: LockKeys): FairQueue {
    const open = this.fairQueues.get(keys.lock)
    if (open !== undefined) return open
    this.#client.presence.begin()
    const opened = new FairQueue(this.#client, keys, () => this.fairQueues.delete(keys.lock))
    this.fairQueues.set(keys.lock, opened)
    return opened
  }

  /**
   * Joins a line, or begins one: a request is in flight then if its own was just answered; or if another is, for which the turn is reserved.
   */
  join<W extends Waited>(key: string, waited: W, wanted: Wanted): Effect.Effect<readonly [LineFor<W>, Waiter]> {
    const client = this.#client
    const lines: Map<string, LineFor<W>> = this.#lines[waited]
    const join = (line: LineFor<W>): readonly [LineFor<W>, Waiter] => {
      const isReserved = (lines as Map<string, Line>) === this.#lines.exclusive && this.#asked.exclusive.has(key)
      return [line, line.join(wanted, isReserved)]
    }
    return Effect.suspend(() => {
      const open = lines.get(key)
      if (open !== undefined) return Effect.succeed(join(open))
      return Effect.map(Queue.sliding<void>(1), (wakes) => {
        let line = lines.get(key)
        // else another fiber has begun one in between
        if (line === undefined) {
          client.presence.begin()
          const isHeldHere = () => waited !== "latch" && waited !== "permit" && client.leases.exclude(key, waited)
          const intervalMillis = this.intervalMillis(waited)
          const make = waited === "permit" ? PermitLine : Line
          line = new make(client, wakes, intervalMillis, isHeldHere, () => lines.delete(key)) as LineFor<W>
          lines.set(key, line)
        }
        return join(line)
      })
    })
  }

  /** How often a waiter asks if nothing wakes it, milliseconds, before jitter. One for a latch has no place that it could lose. */
  intervalMillis(waited: Waited): number {
    const { fallbackIntervalMillis, longestIntervals } = this.#client.options
    if (waited === "latch") return fallbackIntervalMillis
    return Math.min(fallbackIntervalMillis, waited === "write" ? longestIntervals.writer : longestIntervals.others)
  }

  /** Wakes the first waiters of a lock, since it may be free. Readers come first, so that writers do not starve them. */
  wake(key: string): void {
    this.get(key, "read")?.changed()
    this.get(key, "exclusive")?.changed()
  }

  /** Wakes waiters that can now re-enter: other fibers than the hold's own can do so only through an explicit owner or a scope. */
  wakeOwners({ by, lease }: LeaseEntry): void {
    if (by.owner.explicit === undefined && by.scope === undefined) return
    const key = lease.keys.lock
    const { mode } = lease.kind
    const mayReenter = (identity: Identity) => ownHold(identity, lease) !== undefined
    this.get(key, mode)?.wakeMatching(mayReenter)
    // a writer may read
    if (mode === "write") this.get(key, "read")?.wakeMatching(mayReenter)
    this.fairQueues.get(key)?.wakeMatching(mayReenter)
  }

  /** Decides, before a release is sent, who gets the lock; undefined if nobody waits for it here. */
  startHandOver(lease: Lease, now: number): HandOver | undefined {
    const readersAsk = this.#wakeReaders(lease)
    const line = this.get(lease.keys.lock, "exclusive")
    if (line === undefined) return undefined
    const streak = this.#mayStay(lease) ? longerStreak(lease.streak, now) : undefined
    return streak === undefined ? leftToOthers(lease, line, now) : leftToUs(lease, line, streak, readersAsk)
  }

  /** Wakes readers behind a writer of this process, unless they hear of its release. Returns whether they ask. */
  #wakeReaders(lease: Lease): boolean {
    const readers = lease.kind.mode === "write" ? this.get(lease.keys.lock, "read") : undefined
    if (readers === undefined || isTold(readers, lease)) return false
    readers.changed()
    return true
  }

  /** Whether a waiter of this process could enter after this release: other holds, of this process or of others, may keep out a writer. */
  #mayStay(lease: Lease): boolean {
    const { keys, kind } = lease
    return !handsOver(lease) || (kind.mode !== "read" && !this.#client.leases.exclude(keys.lock, kind.mode))
  }
}

/**
 * The pause after a release that was announced to other processes: a few round trips, as the message takes longer to reach
 * them than a request of ours to reach Redis.
 */
const quietRoundTrips = 4
const shortestQuietMillis = 2
const longestQuietMillis = 100

/** After this many sections in a row, and this much time, it is another process's turn. */
const mostInARow = 8
const leastStreakMillis = 5

/** The streak with the next section; undefined if this process has had enough. */
const longerStreak = (streak: Streak | undefined, now: number): Streak | undefined => {
  if (streak === undefined) return { count: 1, since: now }
  const isEnough = streak.count >= mostInARow && now - streak.since >= leastStreakMillis
  return isEnough ? undefined : { count: streak.count + 1, since: streak.since }
}

/** Whether the waiters of a line have a place, and hear when the lock is handed over to it. */
const isTold = ({ client, isListening, place }: Line, { keys, kind, owner }: Lease): boolean =>
  place !== undefined &&
  isListening &&
  client.subscriptions.messagesSeen(ownChannel(kind.channel(keys, owner), client.clientId)) !== undefined

/**
 * The next waiter of this process gets the lock. It is woken before the release is sent; the caller sends that before the waiter runs, whose
 * request so comes right behind.
 */
const leftToUs = (lease: Lease, line: Line, streak: Streak, readersAsk: boolean): HandOver => {
  const { client, kind } = lease
  client.telemetry.of(kind.name).handOvers++
  const takesPlace = handsOver(lease) && line.turn?.takesPlace === true
  const place = takesPlace ? (line.place ??= ownerRefOf(lease, client.nextOwner())) : undefined
  line.on({ _tag: "LeftToUs", streak })
  if (place === undefined) return { tell: client.store.publish, replied: () => {} }
  return {
    // others are not told: if nobody asks here after all, the release of this owner tells them
    tell: readersAsk ? "" : place.owner,
    replied: () => {
      // A server that does not know the script is sent the release again, behind what the waiter has sent: it was denied, or has left.
      if (line.place?.owner !== place.owner) return
      if (line.isEmpty) void giveBackPlace(place)
      else line.changed()
    }
  }
}

/** Other processes may get the lock: if the reply says that any were woken to ask, this one leaves it to them for a moment. */
const leftToOthers = (lease: Lease, line: Line, sentAt: number): HandOver => ({
  tell: lease.client.store.publish,
  replied: (listeners) => {
    const { client, keys, kind, owner } = lease
    const own = client.subscriptions.messagesSeen(kind.channel(keys, owner)) === undefined ? 0 : 1
    if (listeners <= own) {
      // It is free, or handed over: then this process takes a place behind the others. A writer that waits for readers has one.
      if (kind.mode !== "read" || !isTold(line, lease)) line.changed()
      return
    }
    const now = client.now()
    const quiet = Math.max(shortestQuietMillis, quietRoundTrips * (now - sentAt))
    line.on({ _tag: "LeftToOthers", until: now + Math.min(quiet, longestQuietMillis) })
  }
})
