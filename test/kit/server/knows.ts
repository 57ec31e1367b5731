/**
 * What the servers that tests start can do, for tests that some of them cannot pass.
 */
import { RedisServer } from "@effect-redis-lock/testing"
import { Effect } from "effect"
import { bare } from "./bareRedis.ts"

/** Whether those servers have a command. */
export const serverKnows = (command: string): Promise<boolean> =>
  Effect.gen(function* () {
    const redis = yield* bare(yield* RedisServer.start())
    const [found] = (yield* Effect.promise(() => redis.call("COMMAND", "INFO", command))) as [unknown]
    return Boolean(found)
  }).pipe(Effect.scoped, Effect.runPromise)
