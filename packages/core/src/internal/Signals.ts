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

interface Feed {
  readonly queues: Set<Queue.Enqueue<void>>
  readonly established: Deferred.Deferred<void>
}

export interface Signals {
  /**
   * Feeds the queue with every message of the channel, and whenever messages may have been missed, until the scope closes.
   * Returns at once; the inner effect returns when the subscription stands, or is known to have failed.
   */
  readonly subscribe: (
    channel: string,
    queue: Queue.Enqueue<void>
  ) => Effect.Effect<Effect.Effect<void>, never, Scope.Scope>
  /** Whether this client is subscribed to the channel. */
  readonly listens: (channel: string) => boolean
}

// not jittered: each process has its own moment of failure
const resubscribe = Schedule.min([Schedule.exponential("100 millis"), Schedule.spaced("5 seconds")])

export const makeSignals = (
  store: LockStore["Service"],
  idleTime: Duration.Duration
): Effect.Effect<Signals, never, Scope.Scope> => {
  const channels = new Set<string>()
  return Effect.map(
    RcMap.make({
      idleTimeToLive: idleTime,
      lookup: Effect.fnUntraced(function* (channel: string) {
        const feed: Feed = { queues: new Set(), established: Deferred.makeUnsafe() }
        yield* Effect.addFinalizer(() => Effect.sync(() => channels.delete(channel)))
        yield* store.subscribe(channel).pipe(
          Stream.runForEach(() =>
            Effect.sync(() => {
              channels.add(channel)
              Deferred.doneUnsafe(feed.established, Effect.void)
              for (const queue of feed.queues) Queue.offerUnsafe(queue, undefined)
            })
          ),
          Effect.tapError((error) => {
            channels.delete(channel)
            const first = Deferred.doneUnsafe(feed.established, Effect.void)
            return Effect.annotateLogs(
              Effect.logWarning(
                `No wake-up signals${first ? "" : " any more"}: waiting falls back to polling until subscribing succeeds.`,
                error
              ),
              { channel }
            )
          }),
          Effect.retry(resubscribe),
          Effect.forkScoped
        )
        return feed
      })
    }),
    (feeds) => ({
      subscribe: (channel, queue) =>
        Effect.flatMap(RcMap.get(feeds, channel), (feed) => {
          feed.queues.add(queue)
          return Effect.as(
            Effect.addFinalizer(() => Effect.sync(() => feed.queues.delete(queue))),
            Deferred.await(feed.established)
          )
        }),
      listens: (channel) => channels.has(channel)
    })
  )
}
