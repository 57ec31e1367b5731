import { Redis } from "ioredis"
import { createLock, IoredisAdapter, LockAcquisitionError } from "redlock-universal"
import type { Library } from "../Candidate.ts"
import { holdBySections, overPromises } from "./promises.ts"

export const candidate: Library = {
  insideScripts: ["get", "del", "pttl", "pexpire"],
  open: async ({ leaseMillis, port }) => {
    const adapter = new IoredisAdapter(new Redis({ port }))
    const locks = new Map<string, ReturnType<typeof createLock>>()
    const lockOf = (name: string) => {
      let lock = locks.get(name)
      if (lock === undefined) locks.set(name, (lock = createLock({ adapter, key: name, ttl: leaseMillis })))
      return lock
    }
    return {
      ...overPromises({
        acquire: async (name) => {
          const lock = lockOf(name)
          return { lock, handle: await lock.acquire() }
        },
        release: ({ handle, lock }) => lock.release(handle),
        isGivenUp: (error) => error instanceof LockAcquisitionError
      }),
      hold: (names) => holdBySections(names, (name, section) => lockOf(name).using(section))
    }
  }
}
