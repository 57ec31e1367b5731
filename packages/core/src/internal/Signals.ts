/**
 * Wake-up signals from the store: one subscription per channel and client, shared by reference count and kept a little
 * while after the last waiter. Signals are hints: where subscribing fails, waiters go on by polling.
 */
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import * as RcMap from "effect/RcMap"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { LockStore } from "../LockStore.ts"
import type { Wake } from "./Line.ts"

interface Feed {
  readonly listeners: Set<() => void>
  readonly established: Deferred.Deferred<void>
}

export interface Signals {
  /**
   * Feeds the queue with every message of the channel, and whenever messages may have been missed, until the scope closes.
   * Returns at once; the inner effect returns when the subscription stands, or is known to have failed.
   */
  readonly subscribe: (
    channel: string,
    queue: Queue.Enqueue<Wake>
  ) => Effect.Effect<Effect.Effect<void>, never, Scope.Scope>
  /** The same for a callback. */
  readonly listen: (channel: string, onSignal: () => void) => Effect.Effect<Effect.Effect<void>, never, Scope.Scope>
  /** How many signals of the channel this client has heard; nothing while it is not subscribed. */
  readonly heard: (channel: string) => number | undefined
}

// not jittered: each process has its own moment of failure
const resubscribe = Schedule.min([Schedule.exponential("100 millis"), Schedule.spaced("5 seconds")])

export const makeSignals = (
  store: LockStore["Service"],
  idleTime: Duration.Duration
): Effect.Effect<Signals, never, Scope.Scope> => {
  const heard = new Map<string, number>()
  return Effect.map(
    RcMap.make({
      idleTimeToLive: idleTime,
      lookup: Effect.fnUntraced(function* (channel: string) {
        const feed: Feed = { listeners: new Set(), established: Deferred.makeUnsafe() }
        yield* Effect.addFinalizer(() => Effect.sync(() => heard.delete(channel)))
        yield* store.subscribe(channel).pipe(
          Stream.runForEach(() =>
            Effect.sync(() => {
              heard.set(channel, (heard.get(channel) ?? 0) + 1)
              Deferred.doneUnsafe(feed.established, Effect.void)
              for (const listener of [...feed.listeners]) listener()
            })
          ),
          Effect.tapError((error) => {
            const hadSignals = heard.delete(channel)
            const isFirst = Deferred.doneUnsafe(feed.established, Effect.void)
            return hadSignals || isFirst
              ? Effect.annotateLogs(
                  Effect.logWarning(
                    "No wake-up signals: waiting falls back to polling until subscribing succeeds.",
                    error
                  ),
                  { channel }
                )
              : Effect.void
          }),
          Effect.retry(resubscribe),
          Effect.forkScoped
        )
        return feed
      })
    }),
    (feeds) => {
      const listen: Signals["listen"] = (channel, onSignal) =>
        Effect.flatMap(RcMap.get(feeds, channel), (feed) => {
          // every caller its own, also of one and the same function
          const listener = () => onSignal()
          feed.listeners.add(listener)
          return Effect.as(
            Effect.addFinalizer(() => Effect.sync(() => feed.listeners.delete(listener))),
            Deferred.await(feed.established)
          )
        })
      return {
        listen,
        subscribe: (channel, queue) => listen(channel, () => Queue.offerUnsafe(queue, "signal")),
        heard: (channel) => heard.get(channel)
      }
    }
  )
}
