import { Redis } from "ioredis"
import {
  createLock,
  createRedlock,
  IoredisAdapter,
  LockAcquisitionError,
  type LockHandle,
  LockManager
} from "redlock-universal"
import { type Library, namesOf } from "../Candidate.ts"
import { holdBySections, overPromises } from "./promises.ts"

export const candidate: Library = {
  insideScripts: ["get", "set", "del", "pttl", "pexpire"],
  // The script for several names calls EXISTS before each SET: every other SET was sent by the client.
  sentNevertheless: (calls) => calls("set") - calls("exists"),
  open: async ({ leaseMillis, otherPorts = [], port }) => {
    const adapter = new IoredisAdapter(new Redis({ port }))
    const adapters = [adapter, ...otherPorts.map((port) => new IoredisAdapter(new Redis({ port })))]
    const manager = new LockManager({ nodes: adapters, defaultTTL: leaseMillis })
    const locks = new Map<string, ReturnType<typeof createLock>>()
    const make = (key: string) =>
      adapters.length === 1
        ? createLock({ adapter, key, ttl: leaseMillis })
        : createRedlock({ adapters, key, ttl: leaseMillis })
    const lockOf = (name: string) => {
      let lock = locks.get(name)
      if (lock === undefined) locks.set(name, (lock = make(name)))
      return lock
    }
    return {
      ...overPromises({
        acquire: async (name, kind): Promise<() => Promise<unknown>> => {
          if (kind === "multi") {
            const handles: Array<LockHandle> = await manager.acquireBatch([...namesOf(name)])
            return () => manager.releaseBatch(handles)
          }
          const lock = lockOf(name)
          const handle = await lock.acquire()
          return () => lock.release(handle)
        },
        release: (release) => release(),
        isGivenUp: (error) => error instanceof LockAcquisitionError
      }),
      hold: (names) => holdBySections(names, (name, section) => lockOf(name).using(section))
    }
  }
}
