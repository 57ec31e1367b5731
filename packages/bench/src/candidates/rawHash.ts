import { setTimeout as sleep } from "node:timers/promises"
import type { Held, Library } from "../Candidate.ts"
import { dataCommands } from "./dataCommands.ts"
import { overPromises } from "./promises.ts"
import { openRawScripts, type RawScripts } from "./rawScripts.ts"

const pollMillis = 100

/** Extends every lock with its own timer and command, every third of the lease. */
export const holdWithTimers = async (
  scripts: RawScripts,
  names: ReadonlyArray<string>,
  leaseMillis: number
): Promise<Held> => {
  let lost = 0
  const locks = await Promise.all(
    names.map(async (name) => {
      const owner = scripts.nextOwner()
      if (!(await scripts.tryAcquire("lock", name, owner))) throw new Error(`${name} is taken`)
      const timer = setInterval(async () => {
        if (!(await scripts.renew(name, owner))) lost++
      }, leaseMillis / 3)
      return { name, owner, timer }
    })
  )
  return {
    lost: async () => lost,
    release: async () => {
      await Promise.all(
        locks.map(({ name, owner, timer }) => {
          clearInterval(timer)
          return scripts.release("lock", name, owner)
        })
      )
    }
  }
}

export const candidate: Library = {
  insideScripts: dataCommands,
  open: async ({ leaseMillis, port }) => {
    const scripts = await openRawScripts(port, leaseMillis)
    return {
      ...overPromises({
        acquire: async (name) => {
          const owner = scripts.nextOwner()
          while (!(await scripts.tryAcquire("lock", name, owner))) await sleep(pollMillis)
          return { name, owner }
        },
        release: ({ name, owner }) => scripts.release("lock", name, owner),
        isGivenUp: () => false
      }),
      hold: (names) => holdWithTimers(scripts, names, leaseMillis)
    }
  }
}
