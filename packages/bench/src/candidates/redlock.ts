import { Redis } from "ioredis"
import Redlock, { ExecutionError } from "redlock"
import { type Library, namesOf } from "../Candidate.ts"
import { holdBySections, overPromises } from "./promises.ts"

export const candidate: Library = {
  insideScripts: ["exists", "get", "set", "del"],
  open: async ({ leaseMillis, otherPorts = [], port }) => {
    const redlock = new Redlock([port, ...otherPorts].map((port) => new Redis({ port })))
    return {
      ...overPromises({
        acquire: (name, kind) => redlock.acquire(kind === "multi" ? [...namesOf(name)] : [name], leaseMillis),
        release: (lock) => lock.release(),
        isGivenUp: (error) => error instanceof ExecutionError
      }),
      hold: (names) => holdBySections(names, (name, section) => redlock.using([name], leaseMillis, section))
    }
  }
}
