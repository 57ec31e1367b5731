/**
 * Another client of the same store, as another process of the application would be.
 */
import { Effect, Layer } from "effect"

/** Runs effects as another client, each as one of its own. */
export const asAnotherClient =
  <Client, E2, R2>(clients: Layer.Layer<Client, E2, R2>) =>
  <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E | E2, R2 | Exclude<R, Client>> =>
    Effect.provide(self, Layer.fresh(clients))
