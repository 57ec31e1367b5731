/**
 * Wake-up signals from the store: one subscription per channel and client, kept a little while after the last waiter.
 * Signals are hints: if subscribing fails, waiters poll.
 */
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import { LockStoreError } from "../../LockError.ts"
import type { Signal } from "../../RedisDriver.ts"
import type { LockClient } from "../client/LockClient.ts"
import type { Mode } from "../kinds/kinds.ts"
import { runStream } from "../store/startable.ts"
import { type Alarm, reconnecting } from "../time/clock.ts"
import type { Event } from "./stage.ts"

/** The pause between the failure of an established subscription and a new one. */
const pauseMillis = 100

/** A subscription to one channel, shared by its listeners. */
class SharedSubscription implements Alarm {
  readonly #client: LockClient
  readonly #channel: string
  readonly #end: () => void
  /** Shared by all subscriptions of the client, so that a failure is logged once. */
  readonly #health: { isTold: boolean }
  readonly #listeners = new Set<(signal: Signal) => void>()
  readonly #fiber: Fiber.Fiber<void, LockStoreError>
  #state: "new" | "established" | "failing" = "new"
  /** Signals so far, also over connections before: what was missed in between must show. */
  #seen = 0
  due = 0
  heapIndex = -1

  constructor(client: LockClient, channel: string, health: { isTold: boolean }, end: () => void) {
    this.#health = health
    this.#client = client
    this.#channel = channel
    this.#end = end
    this.#fiber = client.fork(Effect.forever(Effect.retry(this.#subscription, reconnecting)))
  }

  add(onSignal: (signal: Signal) => void): () => void {
    this.#client.alarms.cancel(this)
    this.#listeners.add(onSignal)
    return () => {
      if (!this.#listeners.delete(onSignal) || this.#listeners.size > 0) return
      this.#client.alarms.set(this, this.#client.now() + this.#client.options.subscriptionIdleMillis)
    }
  }

  get messagesSeen(): number | undefined {
    return this.#state === "established" ? this.#seen : undefined
  }

  /** There was no listener for `subscriptionIdleMillis`. */
  ring(): void {
    this.#end()
    this.#fiber.interruptUnsafe()
  }

  /** Fails while the store cannot be reached; ends shortly after an established subscription has failed. */
  get #subscription(): Effect.Effect<void, LockStoreError> {
    return Effect.suspend(() =>
      Effect.catch(
        Effect.andThen(
          runStream(this.#client.store.subscribe(this.#channel), this.#signal),
          Effect.failSync(this.#ended)
        ),
        this.#failed
      )
    )
  }

  readonly #ended = (): LockStoreError => {
    const cause = new Error("the stream of messages has ended")
    return new LockStoreError({ operation: "subscribe", lock: this.#channel, reason: "ConnectionLost", cause })
  }

  readonly #signal = (signal: Signal): void => {
    this.#seen++
    this.#state = "established"
    this.#health.isTold = false
    for (const listener of [...this.#listeners]) listener(signal)
  }

  readonly #failed = (error: LockStoreError): Effect.Effect<void, LockStoreError> => {
    const state = this.#state
    const isNews = state !== "failing" && !this.#health.isTold
    this.#state = "failing"
    this.#health.isTold = true
    const told = isNews
      ? Effect.annotateLogs(
          Effect.logWarning("No wake-up signals: waiting falls back to polling until subscribing succeeds.", error),
          { channel: this.#channel }
        )
      : Effect.void
    return Effect.andThen(told, state === "established" ? Effect.sleep(pauseMillis) : Effect.fail(error))
  }
}

export class Subscriptions {
  readonly #client: LockClient
  readonly #shared = new Map<string, SharedSubscription>()
  readonly #health = { isTold: false }

  constructor(client: LockClient) {
    this.#client = client
  }

  /**
   * Calls `onSignal`, a function of this listener alone, for every message of the channel, and whenever messages may have been missed. The
   * result ends that; the subscription is kept a little longer.
   */
  subscribe(channel: string, onSignal: (signal: Signal) => void): () => void {
    let shared = this.#shared.get(channel)
    if (shared === undefined) {
      shared = new SharedSubscription(this.#client, channel, this.#health, () => this.#shared.delete(channel))
      this.#shared.set(channel, shared)
    }
    return shared.add(onSignal)
  }

  get isEmpty(): boolean {
    return this.#shared.size === 0
  }

  /**
   * The number of messages of this channel that have arrived, with `takesPlaces` also of those that hand the lock over to this client;
   * undefined while not subscribed.
   */
  messagesSeen(channel: string, takesPlaces = false): number | undefined {
    const seen = this.#shared.get(channel)?.messagesSeen
    if (seen === undefined || !takesPlaces) return seen
    return seen + (this.#shared.get(ownChannel(channel, this.#client.clientId))?.messagesSeen ?? 0)
  }
}

/** The channel on which a client hears that the lock was handed over to it. */
export const ownChannel = (channel: string, clientId: string): string => `${channel}:${clientId}`

/**
 * A message that hands a lock over, as `lua/include/hand_over/tell_owner.lua` writes it: the side of a read-write lock, the secret by which
 * it proves itself, and what it grants, unless it only tells that it is the owner's turn.
 */
export const handOverIn = (message: string) => {
  const [side, secret, token, serverMicros, leaseMillis] = message.split(" ")
  if (leaseMillis === undefined) return { side, secret, granted: undefined }
  const granted = { token: Number(token), serverMicros: Number(serverMicros), leaseMillis: Number(leaseMillis) }
  return { side, secret, granted }
}

/**
 * What a message on a client's own channel tells: that the lock was handed over to it in this mode, or that permits are free. Undefined if
 * it is for the other side of a read-write lock.
 */
export const keptBy = (mode: Mode, clientId: string, message: string): Extract<Event, { _tag: "Kept" }> | undefined => {
  if (mode === "permit") return { _tag: "Kept", grant: undefined }
  const { granted, secret, side } = handOverIn(message)
  if (side !== (mode === "write" ? "1" : "0")) return undefined
  return { _tag: "Kept", grant: granted && { ...granted, owner: `${clientId}:${secret}` } }
}

/** The channel on which all clients that take places hear that it is the turn of those that take none. */
export const oursChannel = (channel: string): string => `${channel}:ours`
