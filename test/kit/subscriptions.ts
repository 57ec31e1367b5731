/**
 * Clients whose subscriptions close sooner after their last waiter than the usual ten seconds.
 */
import { Effect, Layer } from "effect"
import type * as OptionsModule from "../../packages/core/dist/internal/options/ClientOptions.js"
import { loadInternal } from "./loadInternal.ts"

const { SubscriptionIdleMillis } = await loadInternal<typeof OptionsModule>("options/ClientOptions.js")

/** Layers of clients whose subscriptions close this soon. */
export const closingSubscriptions =
  (millis: number) =>
  <A, E, R>(clients: Layer.Layer<A, E, R>): Layer.Layer<A, E, R> =>
    Layer.provide(clients, Layer.succeed(SubscriptionIdleMillis, millis))

/** The same for clients that an effect makes. */
export const withClosingSubscriptions =
  (millis: number) =>
  <A, E, R>(make: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.provideService(make, SubscriptionIdleMillis, millis)
