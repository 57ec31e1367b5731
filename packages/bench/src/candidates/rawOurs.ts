import { Redis } from "ioredis"
import { scripts } from "../../../core/dist/internal/store/redis/scripts.generated.js"
import { type Library, namesOf } from "../Candidate.ts"
import { dataCommands } from "./dataCommands.ts"
import { overPromises } from "./promises.ts"

const lockScripts = { acquire: scripts["lock/acquire"], release: scripts["lock/release"] }
const multiScripts = { acquire: scripts["multi_lock/acquire"], release: scripts["multi_lock/release"] }

/** How long a command may take effect, by the clock of the servers, which run on this machine. */
const lifeMillis = 10_000

/** Resolves when `required` of the promises have resolved. */
const keptBy = (required: number, promises: ReadonlyArray<Promise<unknown>>): Promise<void> =>
  new Promise((resolve, reject) => {
    let kept = 0
    for (const promise of promises) {
      promise.then(() => {
        if (++kept === required) resolve()
      }, reject)
    }
  })

export const candidate: Library = {
  insideScripts: dataCommands,
  open: async ({ leaseMillis, otherPorts = [], port }) => {
    const clients = [port, ...otherPorts].map((port) => new Redis({ port }))
    for (const client of clients) {
      for (const { acquire, release } of [lockScripts, multiScripts]) {
        await client.script("LOAD", acquire.lua)
        await client.script("LOAD", release.lua)
      }
    }
    const required = Math.floor(clients.length / 2) + 1
    const askAll = (sha: string, keys: ReadonlyArray<string>, args: ReadonlyArray<string | number>) =>
      keptBy(
        required,
        clients.map((client) => client.evalsha(sha, keys.length, ...keys, ...args))
      )
    const process = crypto.randomUUID()
    let owners = 0
    return {
      ...overPromises({
        acquire: async (name, kind) => {
          const names = kind === "multi" ? namesOf(name) : [name]
          const { acquire, release } = kind === "multi" ? multiScripts : lockScripts
          const owner = `${process}:${++owners}`
          await askAll(
            acquire.sha1,
            [...names, ...names.map((name) => `redisson_lock_token:{${name}}`)],
            [owner, leaseMillis, leaseMillis + 86_400_000, Date.now() + lifeMillis]
          )
          return { names, owner, release }
        },
        release: ({ names, owner, release }) =>
          askAll(
            release.sha1,
            names.flatMap((name) => [name, `redisson_lock__channel:{${name}}`]),
            release === multiScripts.release ? [owner, "", ...names.map(() => "PUBLISH")] : [owner, "PUBLISH"]
          ),
        isGivenUp: () => false
      }),
      hold: () => Promise.reject(new Error("nothing extends these locks"))
    }
  }
}
