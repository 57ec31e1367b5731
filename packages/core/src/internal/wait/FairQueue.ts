/**
 * The waiters of this client in the queues of fair locks. Each has a place and a channel of its own in Redis; all of one lock
 * are kept alive by one command per interval, which also tells when a message has been missed.
 */
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import type { LockStoreError, StoreReason } from "../../LockError.ts"
import type { Alarm } from "../time/AlarmClock.ts"
import { placeTermsOf, waiterTimeoutMillis } from "../protocol/fair.ts"
import type { LockKeys } from "../store/keys.ts"
import { refresh, type RefreshReply } from "../store/operations/fairLock.ts"
import { FairPlaces, type Named, namedAtMost } from "./FairPlaces.ts"
import { Outage } from "./Outage.ts"
import type { FairWaiter } from "./FairWaiter.ts"
import type { WaitingClient } from "./WaitingClient.ts"
import type { Identity } from "../hold/owner.ts"
import { mayHaveRun } from "../store/outcome.ts"
import { transientFailure } from "../store/transient.ts"

/** Those who hear their channels again within so long are looked for together. */
const lookMillis = 20

/**
 * How soon a report that did not get through is tried again, and how often: places outlive a short outage by little. After a
 * longer one they are given more time.
 */
const retryMillis = 100
const retries = 6

const unreachable: ReadonlySet<StoreReason> = new Set<StoreReason>(["NotConnected", "ConnectionLost", "TimedOut"])

export class FairQueue implements Alarm {
  readonly #client: WaitingClient
  readonly #keys: LockKeys
  readonly #end: () => void
  /** The queue of this lock now: this one, or one that was opened after it had ended. */
  readonly #current: () => FairQueue
  readonly #places = new FairPlaces()
  #isRefreshing = false
  #mustLook = false
  readonly #settled = Latch.makeUnsafe(true)
  /** Owners that may have places in Redis at which nobody waits any more. */
  readonly #gone = new Set<string>()
  readonly outage = new Outage()
  /** How often a report was tried again early in the present outage. */
  #retried = 0
  due = 0
  heapIndex = -1

  constructor(client: WaitingClient, keys: LockKeys, end: () => void, current: () => FairQueue) {
    this.#client = client
    this.#keys = keys
    this.#end = end
    this.#current = current
  }

  get isEmpty(): boolean {
    return this.#places.size === 0
  }

  /** Takes in a place before it asks: its owner is known from then on. */
  enter(place: FairWaiter): void {
    this.#places.add(place)
  }

  /** A place was denied the lock, which is held for so many milliseconds more (below zero: who knows), or has no answer. */
  join(place: FairWaiter, left: number): void {
    this.#keepOn()
    if (this.outage.failure !== undefined) this.#places.nameAll()
    this.sleep(place, left)
  }

  /** Lets a place sleep as long as it is willing to wait; the first one of this process not past the end of the lease. */
  sleep(place: FairWaiter, left: number): void {
    this.#wakeAfter(place, place === this.#places.first && left >= 0 ? left + 1 : Number.POSITIVE_INFINITY)
  }

  #wakeAfter(place: FairWaiter, millis: number): void {
    const { alarms, now } = this.#client
    const until = Math.min(place.waitsUntil, now() + millis)
    if (until < Number.POSITIVE_INFINITY) alarms.set(place, until)
  }

  leave(place: FairWaiter): void {
    if (this.#places.remove(place)) this.#restIfIdle()
  }

  /** Has the places of owners removed that do not wait any more, until the store confirms. */
  removePlaces(owners: Iterable<string>): void {
    for (const owner of owners) if (this.#places.get(owner) === undefined) this.#gone.add(owner)
    if (this.#gone.size > 0) this.#keepOn()
  }

  /** Calls those who may share what was just acquired. */
  wakeMatching(matches: (identity: Identity) => boolean): void {
    for (const place of this.#places.values()) {
      if (matches(place.identity)) place.signal()
    }
  }

  /** Looks whether somebody's turn has come, once for all who ask for it at about the same time: a message may have been missed. */
  lookSoon(): void {
    this.#mustLook = true
    if (!this.#places.isNamingAll) this.#places.nameAll()
    // the connection for commands may come back a little later than that for messages
    this.#retried = 0
    this.#ringWithin(lookMillis)
  }

  #ringWithin(millis: number): void {
    const at = this.#client.now() + millis
    if (this.heapIndex === -1 || at < this.due) this.#client.alarms.set(this, at)
  }

  /**
   * Waits for a refresh that is under way. A server that does not know the script yet is sent it a second time, behind what
   * was sent meanwhile: who gives up its place waits for that, or would be given it back.
   */
  get settled(): Effect.Effect<void> {
    return this.#settled.await
  }

  ring(now: number): void {
    if (this.#restIfIdle()) return
    this.#client.alarms.set(this, now + this.#client.options.placeIntervalMillis)
    if (this.#isRefreshing) return
    const atOnce = this.#mustLook
    this.#mustLook = false
    this.#refresh(atOnce)
  }

  /** Refreshes from now on. */
  #keepOn(): void {
    if (this.heapIndex !== -1) return
    this.#client.alarms.set(this, this.#client.now() + this.#client.options.placeIntervalMillis)
  }

  /** Ends where nobody waits; but not while a refresh is under way, which may have to be sent again. */
  #restIfIdle(): boolean {
    if (this.#places.size > 0 || this.#gone.size > 0 || this.#isRefreshing) return false
    this.#client.alarms.cancel(this)
    this.#end()
    return true
  }

  #refresh(atOnce: boolean): void {
    this.#isRefreshing = true
    this.#settled.closeUnsafe()
    this.#client.fork(
      // Who waits is looked up when the command is sent: one that left before must not get a place again.
      Effect.suspend(() => {
        const named = this.#places.named()
        const gone = [...this.#gone].slice(0, namedAtMost)
        // All who wait are asking; of more than one report names, others may not be. What they asked may have been answered
        // before the message that they missed was sent.
        const needsNone = !atOnce && named.owners.length === 0 && this.#places.size <= namedAtMost
        if (needsNone && gone.length === 0) return Effect.sync(() => this.#refreshed())
        for (const owner of gone) this.#gone.delete(owner)
        return Effect.matchCause(this.#command(named, gone), {
          onSuccess: ({ head, headMillis, holder, left, mayHaveLostPlaces }) => {
            this.outage.answered()
            this.#retried = 0
            if (mayHaveLostPlaces && this.#places.size > namedAtMost) this.#places.nameAll()
            const place = holder === undefined ? undefined : this.#places.get(holder)
            if (place !== undefined && !place.asking) {
              // it holds the lock, and does not know
              this.#turnOf(place.owner, 0, atOnce)
            } else if (head !== undefined) {
              this.#removeIfGone(head)
              if (left === -2) this.#turnOf(head, headMillis, atOnce)
              else if (left >= 0) this.#nextIs(head, left)
            }
            // a message may have been missed since this report was sent
            if (this.#mustLook || this.#places.isNamingAll || this.#gone.size > 0) this.#ringWithin(0)
            this.#refreshed()
          },
          // the places outlive a few refreshes; whoever asks next reports what does not pass
          onFailure: (cause) => {
            this.#places.nameAll()
            this.removePlaces(gone)
            if (mayHaveRun(cause)) this.#removeLater(named.owners)
            if (atOnce) this.#mustLook = true
            const failure = transientFailure(cause)
            if (failure !== undefined) this.outage.failed(failure)
            if (failure !== undefined && unreachable.has(failure.reason) && this.#retried++ < retries) {
              this.#ringWithin(retryMillis)
            }
            this.#refreshed()
          }
        })
      })
    )
  }

  /** A place of this process at which nobody waits, as a late command has made it, holds up everybody behind it. */
  #removeIfGone(head: string): void {
    if (head.startsWith(`${this.#client.clientId}:`)) this.removePlaces([head])
  }

  /**
   * A refresh may still take effect after its waiters have left: their releases may overtake it on a new connection. What it
   * queues again then is removed once it can no longer take effect.
   */
  #removeLater(owners: ReadonlyArray<string>): void {
    const { fork, store } = this.#client
    fork(
      Effect.andThen(
        Effect.sleep(store.commandLifeMillis + 1),
        Effect.sync(() => this.#current().removePlaces(owners))
      )
    )
  }

  #command(named: Named, gone: ReadonlyArray<string>): Effect.Effect<RefreshReply, LockStoreError> {
    const terms = placeTermsOf(this.#client, waiterTimeoutMillis)
    return this.#client.store.run(refresh(this.#keys, terms, { waits: this.#places.size > 0, named, gone }))
  }

  #refreshed(): void {
    this.#isRefreshing = false
    this.#settled.openUnsafe()
    this.#restIfIdle()
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
      if (this.heapIndex !== -1 && lookAgainAt < this.due) alarms.set(this, lookAgainAt)
    } else if (atOnce || now() - place.askedAt >= options.fallbackIntervalMillis / 2) {
      place.signal()
    }
  }
}
