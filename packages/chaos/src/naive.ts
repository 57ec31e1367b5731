/**
 * A lock that is wrong on purpose, which the checker must find: SET NX with an expiry, and DEL without a look at the owner.
 */
import type { Library } from "@effect-redis-lock/bench/Candidate"
import { Redis } from "ioredis"
import { setTimeout as sleep } from "node:timers/promises"

export const candidate: Pick<Library, "open"> = {
  open: async ({ leaseMillis, port }) => {
    const redis = new Redis({ port })
    redis.on("error", () => {})
    return {
      work: () => Promise.reject(new Error("only held")),
      wait: () => ({ failed: () => 0 }),
      hold: async ([name]) => {
        while ((await redis.set(name!, "", "PX", leaseMillis, "NX")) === null) await sleep(20)
        return {
          lost: async () => 0,
          release: async () => {
            await redis.del(name!)
          }
        }
      }
    }
  }
}
