import { TestRedis } from "@effect-redis-lock/testing"
import { ManagedRuntime } from "effect"
import { watchLeftovers } from "./run/leftovers.ts"

/**
 * Finds the Redis of this run, or installs one, and tells the tests by REDIS_URL. At the end no process may be left.
 */
export default async () => {
  const leftovers = watchLeftovers()
  const runtime = ManagedRuntime.make(TestRedis.layerOrInstall)
  const { url } = await runtime.runPromise(TestRedis.TestRedis)
  process.env["REDIS_URL"] = url
  return async () => {
    await runtime.dispose()
    await leftovers.close()
  }
}
