/**
 * What passes between clients and their store: whether waiters listen, have been answered, and sleep.
 */
import { assert } from "@effect/vitest"
import { Context, Effect, Fiber, Layer } from "effect"
import { LockStore } from "effect-redis-lock"
import { runStream, startableStream } from "../../packages/core/dist/internal/store/startable.js"
import { until } from "./eventually.ts"
import { type Store, wrappedStore } from "./wrappedStore.ts"

interface Listener {
  isReady: boolean
}

/** So many turns of the event loop in a row without a request: what a reply or a signal has set off is done. */
const calmTurns = 50

const patienceMillis = 240_000

const turn = Effect.promise(() => new Promise<void>((resume) => setImmediate(resume)))

class Traffic {
  #requests = 0
  #requestsInFlight = 0
  readonly #listeners = new Map<string, Set<Listener>>()
  readonly #signals = new Map<string, number>()

  /** How many signals of a channel, and of the clients' own channels below it, clients were given, "subscribed" included. */
  signals(channel: string): number {
    let signals = 0
    for (const [each, count] of this.#signals) if (each === channel || each.startsWith(`${channel}:`)) signals += count
    return signals
  }

  /**
   * Waits until clients listen to a channel, by default to any, and all that they have asked is answered, so that only what comes from
   * outside wakes them. No time of the test's clock passes.
   */
  sleeps(channel?: string): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      const giveUpAt = performance.now() + patienceMillis
      for (let calm = 0, requests = -1; calm < calmTurns; requests = this.#requests) {
        yield* turn
        calm = this.#isReady(channel) && this.#requestsInFlight === 0 && requests === this.#requests ? calm + 1 : 0
        if (performance.now() > giveUpAt) assert.fail(`nobody sleeps, waiting for ${channel ?? "a message"}`)
      }
    })
  }

  /** Whether nobody listens to a channel any more: the last waiter has left, and its subscription is closed. */
  isUnheard(channel: string): boolean {
    return !this.#listeners.has(channel)
  }

  /** Waits until nobody listens to a channel any more, in real time. */
  unheard(channel: string): Effect.Effect<void> {
    return until(`nobody listens to "${channel}"`, () => this.isUnheard(channel))
  }

  watch(store: Store): Store {
    return {
      ...wrappedStore(store, ({ run }) =>
        Effect.suspend(() => {
          this.#requests++
          this.#requestsInFlight++
          return Effect.ensuring(
            run(),
            Effect.sync(() => this.#requestsInFlight--)
          )
        })
      ),
      // started as a client starts it: Stream.tap would put a fiber in place of the driver's callbacks
      subscribe: (channel) =>
        startableStream((onSignal, onFailure) => {
          const listener = this.#listen(channel)
          const subscription = runStream(store.subscribe(channel), (signal) => {
            listener.isReady = true
            this.#signals.set(channel, (this.#signals.get(channel) ?? 0) + 1)
            onSignal(signal)
          })
          const fiber = Effect.runForkWith(Fiber.getCurrent()?.context ?? Context.empty())(
            subscription.pipe(
              Effect.ensuring(Effect.sync(() => this.#leave(channel, listener))),
              Effect.catch((error) => Effect.sync(() => onFailure(error)))
            )
          )
          return { cancel: () => fiber.interruptUnsafe() }
        })
    }
  }

  #isReady(channel: string | undefined): boolean {
    const channels = channel === undefined ? [...this.#listeners.values()] : [this.#listeners.get(channel) ?? []]
    const listeners = channels.flatMap((listening) => [...listening])
    return listeners.length > 0 && listeners.every(({ isReady }) => isReady)
  }

  #listen(channel: string): Listener {
    const listener: Listener = { isReady: false }
    this.#listeners.set(channel, (this.#listeners.get(channel) ?? new Set()).add(listener))
    return listener
  }

  #leave(channel: string, listener: Listener): void {
    const listeners = this.#listeners.get(channel)
    listeners?.delete(listener)
    if (listeners?.size === 0) this.#listeners.delete(channel)
  }
}

/** Tells what passes between the clients of a test and their store. */
export class ObservedStore extends Context.Service<ObservedStore, Traffic>()("test/ObservedStore") {}

/** A store, and what passes between it and its clients. */
export const observedStore = <E, R>(
  store: Layer.Layer<LockStore.LockStore, E, R>
): Layer.Layer<LockStore.LockStore | ObservedStore, E, R> =>
  Layer.effectContext(
    Effect.map(LockStore.LockStore, (store) => {
      const traffic = new Traffic()
      return Context.make(LockStore.LockStore, traffic.watch(store)).pipe(Context.add(ObservedStore, traffic))
    })
  ).pipe(Layer.provide(store))

/** Waits until all that wait for messages of a channel sleep: {@link Traffic.sleeps} at the store of this test. */
export const waiterSleepsOn = (channel: string) => Effect.flatMap(ObservedStore, (traffic) => traffic.sleeps(channel))

/** Waits until somebody waits for a message of any channel, and all who do sleep. */
export const waiterSleeps = Effect.flatMap(ObservedStore, (traffic) => traffic.sleeps())
