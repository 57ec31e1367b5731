import { TestRedis } from "@effect-redis-lock/testing"
import { Effect, Exit, Option, Scope } from "effect"
import { watchLeftovers } from "./run/leftovers.ts"

/**
 * Finds the Redis of this run, and tells the tests by REDIS_URL; `run/needs.ts` has left out those that need one where there is none.
 * At the end no process may be left.
 */
export default async () => {
  const leftovers = watchLeftovers()
  const scope = Scope.makeUnsafe()
  const redis = await Effect.runPromise(Scope.provide(TestRedis.find, scope))
  if (Option.isSome(redis)) process.env["REDIS_URL"] = redis.value.url
  return async () => {
    await Effect.runPromise(Scope.close(scope, Exit.void))
    await leftovers.close()
  }
}
