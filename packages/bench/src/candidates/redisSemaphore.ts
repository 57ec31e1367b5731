import { Redis } from "ioredis"
import { Mutex, TimeoutError } from "redis-semaphore"
import type { Library } from "../Candidate.ts"
import { overPromises } from "./promises.ts"

export const candidate: Library = {
  insideScripts: ["get", "del", "pexpire"],
  keyOf: (name) => `mutex:${name}`,
  open: async ({ leaseMillis, port }) => {
    const client = new Redis({ port })
    let lost = 0
    const acquire = async (name: string): Promise<Mutex> => {
      // by default, a loss is an uncaught exception
      const mutex = new Mutex(client, name, {
        lockTimeout: leaseMillis,
        onLockLost: () => {
          lost++
        }
      })
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
        const mutexes = await Promise.all(names.map(acquire))
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
