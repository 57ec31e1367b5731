import { Redisson } from "node-redisson"
import type { Library } from "../Candidate.ts"
import { overPromises } from "./promises.ts"

export const candidate: Library = {
  insideScripts: ["exists", "hexists", "hincrby", "pexpire", "pttl", "get", "set", "del", "publish"],
  // An unlock sends DEL for its latch; its script deletes the lock if and only if it publishes.
  sentNevertheless: (calls) => calls("del") - calls("publish"),
  open: async ({ leaseMillis, port }) => {
    const redisson = new Redisson({ redis: { options: { port } }, lockWatchdogTimeout: BigInt(leaseMillis) })
    const acquire = async (name: string) => {
      const lock = redisson.getLock(name)
      await lock.lock()
      return lock
    }
    return {
      ...overPromises({ acquire, release: (lock) => lock.unlock(), isGivenUp: () => false }),
      hold: async (names) => {
        const locks = await Promise.all(names.map(acquire))
        return {
          // It only logs a failed renewal: losses are counted in Redis.
          lost: async () => 0,
          release: async () => {
            await Promise.all(locks.map((lock) => lock.unlock()))
          }
        }
      }
    }
  }
}
