/**
 * Wake-up signals from the store: one subscription per channel and client, kept a little while after the last waiter. Signals
 * are hints: where subscribing fails, waiters go on by polling.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import type { LockStoreError } from "../../LockError.ts"
import type { Signal } from "../../RedisDriver.ts"
import type { Alarm } from "../time/AlarmClock.ts"
import type { LockClient } from "../client/LockClient.ts"
import { fromCallback } from "../store/cancellable.ts"
import { reconnecting } from "../time/schedules.ts"

/** Somebody who hears a channel. */
export interface Listening {
  /** Returns when the subscription stands, or is known to have failed. */
  readonly established: Effect.Effect<void>
  /** Hears no more. */
  stop(): void
}

/** A subscription, and everybody who shares it. */
class Feed implements Alarm {
  readonly #client: LockClient
  readonly #channel: string
  readonly #end: () => void
  /** Of all subscriptions of the client: one failure is told for all. */
  readonly #health: { isTold: boolean }
  readonly #listeners = new Set<(signal: Signal) => void>()
  readonly #established = Deferred.makeUnsafe<void>()
  readonly #fiber: Fiber.Fiber<void, LockStoreError>
  heard: number | undefined = undefined
  due = 0
  place = -1

  constructor(client: LockClient, channel: string, health: { isTold: boolean }, end: () => void) {
    this.#health = health
    this.#client = client
    this.#channel = channel
    this.#end = end
    this.#fiber = client.fork(Effect.retry(Effect.tapError(this.#subscription, this.#failed), reconnecting))
  }

  listen(onSignal: (signal: Signal) => void): Listening {
    this.#client.alarms.cancel(this)
    // every caller its own, also of one and the same function
    const listener = (signal: Signal) => onSignal(signal)
    this.#listeners.add(listener)
    return {
      established: Deferred.await(this.#established),
      stop: () => {
        if (!this.#listeners.delete(listener) || this.#listeners.size > 0) return
        this.#client.alarms.set(this, this.#client.now() + this.#client.options.subscriptionIdleMillis)
      }
    }
  }

  /** Nobody has listened for a while. */
  ring(): void {
    this.#end()
    this.#fiber.interruptUnsafe()
  }

  get #subscription(): Effect.Effect<void, LockStoreError> {
    const { subscribe, subscribeUnsafe } = this.#client.store
    return subscribeUnsafe === undefined
      ? Stream.runForEach(subscribe(this.#channel), (signal) => Effect.sync(() => this.#signal(signal)))
      : fromCallback((resume) => subscribeUnsafe(this.#channel, this.#signal, (error) => resume(Effect.fail(error))))
  }

  readonly #signal = (signal: Signal): void => {
    this.heard = (this.heard ?? 0) + 1
    this.#health.isTold = false
    for (const listener of [...this.#listeners]) listener(signal)
    this.#client.inOwnTurn(() => Deferred.doneUnsafe(this.#established, Effect.void))
  }

  readonly #failed = (error: LockStoreError): Effect.Effect<void> => {
    const hadSignals = this.heard !== undefined
    this.heard = undefined
    const isFirst = !Deferred.isDoneUnsafe(this.#established)
    if (isFirst) this.#client.inOwnTurn(() => Deferred.doneUnsafe(this.#established, Effect.void))
    const isTold = this.#health.isTold
    this.#health.isTold = true
    return !isTold && (hadSignals || isFirst)
      ? Effect.annotateLogs(
          Effect.logWarning("No wake-up signals: waiting falls back to polling until subscribing succeeds.", error),
          { channel: this.#channel }
        )
      : Effect.void
  }
}

export class Subscriptions {
  readonly #client: LockClient
  readonly #feeds = new Map<string, Feed>()
  readonly #health = { isTold: false }

  constructor(client: LockClient) {
    this.#client = client
  }

  /** Calls back for every message of the channel, and whenever messages may have been missed. */
  listen(channel: string, onSignal: (signal: Signal) => void): Listening {
    let feed = this.#feeds.get(channel)
    if (feed === undefined) {
      feed = new Feed(this.#client, channel, this.#health, () => this.#feeds.delete(channel))
      this.#feeds.set(channel, feed)
    }
    return feed.listen(onSignal)
  }

  /** How many signals of the channel this client has heard; nothing while it is not subscribed. */
  heard(channel: string): number | undefined {
    return this.#feeds.get(channel)?.heard
  }
}
