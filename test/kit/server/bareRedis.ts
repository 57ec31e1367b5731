/**
 * ioredis as it is, without this library.
 */
import { Effect, type Scope } from "effect"
import { Redis } from "ioredis"

/** Reconnects at once: the tests are about what happens then, not about when ioredis tries again. */
export const reconnectsAtOnce = { retryStrategy: () => 50 }

/** A bare ioredis client: looks at Redis from outside, and does to it what no application would. */
export const bare = (at: { readonly url: string }): Effect.Effect<Redis, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const redis = new Redis(at.url, { ...reconnectsAtOnce, maxRetriesPerRequest: null })
      redis.on("error", () => {})
      return redis
    }),
    (redis) => Effect.sync(() => redis.disconnect())
  )
