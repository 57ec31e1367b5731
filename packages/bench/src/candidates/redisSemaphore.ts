import { Redis } from "ioredis"
import { Mutex, Semaphore, TimeoutError } from "redis-semaphore"
import { type Kind, type Library, permits } from "../Candidate.ts"
import { overPromises } from "./promises.ts"

export const candidate: Library = {
  insideScripts: ["get", "del", "pexpire", "zremrangebyscore", "zcard", "zadd", "zscore"],
  keyOf: (name) => `mutex:${name}`,
  open: async ({ leaseMillis, port }) => {
    const client = new Redis({ port })
    let lost = 0
    const options = {
      lockTimeout: leaseMillis,
      // by default, a loss is an uncaught exception
      onLockLost: () => {
        lost++
      }
    }
    const acquire = async (name: string, kind: Kind = "lock"): Promise<Mutex | Semaphore> => {
      const mutex =
        kind === "semaphore" ? new Semaphore(client, name, permits, options) : new Mutex(client, name, options)
      await mutex.acquire()
      return mutex
    }
    return {
      ...overPromises({
        acquire,
        release: (mutex) => mutex.release(),
        isGivenUp: (error) => error instanceof TimeoutError
      }),
      hold: async (names) => {
        const mutexes = await Promise.all(names.map((name) => acquire(name)))
        return {
          lost: async () => lost,
          release: async () => {
            await Promise.all(mutexes.map((mutex) => mutex.release()))
          }
        }
      }
    }
  }
}
