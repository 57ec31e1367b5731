import { Redis } from "ioredis"
import Redlock, { ExecutionError } from "redlock"
import type { Library } from "../Candidate.ts"
import { holdBySections, overPromises } from "./promises.ts"

export const candidate: Library = {
  insideScripts: ["exists", "get", "set", "del"],
  open: async ({ leaseMillis, port }) => {
    const redlock = new Redlock([new Redis({ port })])
    return {
      ...overPromises({
        acquire: (name) => redlock.acquire([name], leaseMillis),
        release: (lock) => lock.release(),
        isGivenUp: (error) => error instanceof ExecutionError
      }),
      hold: (names) => holdBySections(names, (name, section) => redlock.using([name], leaseMillis, section))
    }
  }
}
