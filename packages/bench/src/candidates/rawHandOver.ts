import { Redis } from "ioredis"
import type { Library } from "../Candidate.ts"
import { dataCommands } from "./dataCommands.ts"
import { owners } from "./polling.ts"
import { overPromises } from "./promises.ts"

/** Denied owners queue in a list, and a release makes the first of them the holder and tells it. */
const scripts = {
  acquire: `
if redis.call('exists', KEYS[1]) == 0 then
  redis.call('hset', KEYS[1], ARGV[1], 1)
  redis.call('pexpire', KEYS[1], ARGV[2])
  return 1
end
redis.call('rpush', KEYS[2], ARGV[1] .. ' ' .. ARGV[3])
return 0`,
  release: `
redis.call('del', KEYS[1])
local owner, channel = string.match(redis.call('lpop', KEYS[2]) or '', '^(%S+) (%S+)$')
if owner then
  redis.call('hset', KEYS[1], owner, 1)
  redis.call('pexpire', KEYS[1], ARGV[1])
  redis.call('publish', channel, owner)
end
return 1`,
  extend: `
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return 0 end
redis.call('pexpire', KEYS[1], ARGV[2])
return 1`
}

interface Waiting {
  readonly name: string
  readonly begin: () => void
}

const handingOver = (isExtended: boolean): Library => ({
  insideScripts: dataCommands,
  open: async ({ leaseMillis, port }) => {
    const client = new Redis({ port })
    const acquireSha = String(await client.script("LOAD", scripts.acquire))
    const releaseSha = String(await client.script("LOAD", scripts.release))
    const extendSha = String(await client.script("LOAD", scripts.extend))
    const channel = crypto.randomUUID()
    const subscriber = client.duplicate()
    const waiting = new Map<string, Waiting>()
    subscriber.on("message", (_channel: string, owner: string) => {
      const waiter = waiting.get(owner)
      if (waiter === undefined) return
      waiting.delete(owner)
      if (isExtended) void client.evalsha(extendSha, 1, waiter.name, owner, leaseMillis)
      waiter.begin()
    })
    await subscriber.subscribe(channel)
    const nextOwner = owners()
    return {
      ...overPromises({
        acquire: async (name) => {
          const owner = nextOwner()
          // before the request is sent: the message may be read before its reply
          const handedOver = new Promise<void>((begin) => waiting.set(owner, { name, begin }))
          if ((await client.evalsha(acquireSha, 2, name, `${name}:waiting`, owner, leaseMillis, channel)) === 1) {
            waiting.delete(owner)
          } else {
            await handedOver
          }
          return name
        },
        release: (name) => client.evalsha(releaseSha, 2, name, `${name}:waiting`, leaseMillis),
        isGivenUp: () => false
      }),
      hold: () => Promise.reject(new Error("nothing extends these locks"))
    }
  }
})

export const candidate = handingOver(false)

/** What is handed over is extended before the section begins, as where a short lease protects against a process that has just died. */
export const extending = { candidate: handingOver(true) }
