/**
 * A server in memory with a replica, which a failover makes the master without the writes that it has not heard of.
 */
import { Effect, Queue, Stream } from "effect"
import type { RedisDriver } from "effect-redis-lock"
import { memoryStore } from "./testStore.ts"
import type { Store } from "./wrappedStore.ts"

/** In sync at first. */
export const replicatedStore = Effect.gen(function* () {
  const [old, successor] = [yield* memoryStore(0), yield* memoryStore(0)]
  let master = old
  let lags = false
  const listeners = new Set<() => void>()
  /** An element for each failover. */
  const failovers = Stream.callback<void>((elements) =>
    Effect.acquireRelease(
      Effect.sync(() => {
        const listener = () => Queue.offerUnsafe(elements, undefined)
        listeners.add(listener)
        return listener
      }),
      (listener) => Effect.sync(() => listeners.delete(listener))
    )
  )
  const of = (server: Store, channel: string) => Stream.filter(server.subscribe(channel), () => master === server)
  const subscribedAgain: RedisDriver.Signal = { _tag: "Subscribed" }
  const store: Store = {
    ...old,
    run: (command) =>
      Effect.suspend(() => {
        const ran = master.run(command)
        return master === old && !lags ? Effect.tap(ran, () => Effect.ignore(successor.run(command))) : ran
      }),
    subscribe: (channel) =>
      Stream.mergeAll([of(old, channel), of(successor, channel), Stream.map(failovers, () => subscribedAgain)], {
        concurrency: "unbounded"
      }),
    scan: (pattern, type) => Stream.suspend(() => master.scan(pattern, type)),
    reconnects: failovers
  }
  return {
    store,
    /** From now on the replica hears nothing. */
    lag: Effect.sync(() => {
      lags = true
    }),
    /** The replica becomes the master, and all clients are connected to it. */
    failOver: Effect.sync(() => {
      master = successor
      for (const listener of listeners) listener()
    })
  }
})
