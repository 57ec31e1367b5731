/**
 * Real servers whose clocks are wrong.
 */
import { startSkewed } from "@effect-redis-lock/chaos/skewedServer"
import type { RedisServer } from "@effect-redis-lock/testing"
import { Effect, type Scope } from "effect"
import { bare } from "../kit/server/bareRedis.ts"
import type { Place } from "./quorumSite.ts"

export { impossible } from "@effect-redis-lock/chaos/skewedServer"

/** A server whose clock can be stepped. */
export interface SkewedPlace extends Place {
  /** Sets its clock, so many seconds ahead of the machine's. */
  readonly setClock: (skewSeconds: number) => Effect.Effect<void>
}

/** A server for each of these skews, in seconds. */
export const skewedServers = (
  skews: ReadonlyArray<number>
): Effect.Effect<ReadonlyArray<SkewedPlace>, RedisServer.RedisServerError, Scope.Scope> =>
  Effect.forEach(
    skews,
    Effect.fnUntraced(function* (skew) {
      const { server, setClock } = yield* startSkewed(skew * 1000)
      const redis = yield* bare(server)
      const [seconds] = yield* Effect.promise(() => redis.time())
      const off = Number(seconds) - Date.now() / 1000 - skew
      if (Math.abs(off) > 30) return yield* Effect.die(new Error(`the clock is not ${skew} s ahead, but ${off} s more`))
      return { server, redis, setClock: (seconds) => setClock(seconds * 1000) } satisfies SkewedPlace
    }),
    { concurrency: "unbounded" }
  )
