/**
 * A lock over ioredis with no more permissions than docs/runtimes.md names: `least.js <url> <prefix>`. Imports nothing dynamically, for which
 * Deno wants one more.
 */
import { Effect } from "effect"
import { Lock } from "effect-redis-lock"
import { makeLive } from "./ioredis.ts"

const [url, keyPrefix] = process.argv.slice(2) as [string, string]
await Effect.runPromise(Effect.provide(Lock.withLock(Effect.void, "least"), makeLive(url, { keyPrefix })))
console.log("done")
