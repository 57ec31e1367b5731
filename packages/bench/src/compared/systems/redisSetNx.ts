import { Redis } from "ioredis"
import type { Library } from "../../Candidate.ts"
import { owners, polling } from "../../candidates/polling.ts"

const release = `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0`
const renew = `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end return 0`

/** The lock of Redis's documentation: SET NX with an expiry, and a script that compares and deletes. */
export const candidate: Library = {
  insideScripts: ["get", "del", "pexpire"],
  open: async ({ leaseMillis, port }) => {
    const client = new Redis({ port })
    const releaseSha = String(await client.script("LOAD", release))
    const renewSha = String(await client.script("LOAD", renew))
    return polling(
      {
        nextOwner: owners(),
        tryAcquire: async (_kind, name, owner) => (await client.set(name, owner, "PX", leaseMillis, "NX")) === "OK",
        renew: async (name, owner) => (await client.evalsha(renewSha, 1, name, owner, leaseMillis)) === 1,
        release: async (_kind, name, owner) => {
          if ((await client.evalsha(releaseSha, 1, name, owner)) !== 1) throw new Error(`lost ${name}`)
        }
      },
      leaseMillis
    )
  }
}
