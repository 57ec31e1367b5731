import { TestRedis } from "@effect-redis-lock/testing"
import { ManagedRuntime } from "effect"

/**
 * Finds the Redis of this run, or installs one, and tells the tests by REDIS_URL.
 */
export default async () => {
  const runtime = ManagedRuntime.make(TestRedis.layerOrInstall)
  const { url } = await runtime.runPromise(TestRedis.TestRedis)
  process.env["REDIS_URL"] = url
  return () => runtime.dispose()
}
