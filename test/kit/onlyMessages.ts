/**
 * Clients whose waiters are woken by messages alone where their `fallbackInterval` is minutes or hours: nobody falls back to asking within a
 * test's time.
 */
import { Duration, Layer } from "effect"
import type { RedisLock } from "effect-redis-lock"
import type * as OptionsModule from "../../packages/core/dist/internal/options/ClientOptions.js"
import { loadInternal } from "./loadInternal.ts"

const { LongestIntervals } = await loadInternal<typeof OptionsModule>("options/ClientOptions.js")

const longest = { writer: Number.POSITIVE_INFINITY, others: Number.POSITIVE_INFINITY }

export const onlyMessages =
  ({ fallbackInterval = 0 }: RedisLock.RedisLockOptions) =>
  <A, E, R>(clients: Layer.Layer<A, E, R>): Layer.Layer<A, E, R> =>
    Duration.toMillis(Duration.fromInputUnsafe(fallbackInterval)) < 60_000
      ? clients
      : Layer.provide(clients, Layer.succeed(LongestIntervals, longest))
