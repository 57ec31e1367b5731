import { Redis } from "ioredis"

/**
 * The least that a lock needs: what everybody is compared with. A hash `{ owner: 1 }` with an expiry; a release that
 * compares, deletes and tells; a renewal that compares and extends.
 */
const acquireLua = `
if redis.call('exists', KEYS[1]) == 1 then return 0 end
redis.call('hincrby', KEYS[1], ARGV[1], 1)
redis.call('pexpire', KEYS[1], ARGV[2])
return 1`

const releaseLua = `
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return 0 end
redis.call('del', KEYS[1])
redis.call('publish', KEYS[2], KEYS[1])
return 1`

const renewLua = `
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return 0 end
return redis.call('pexpire', KEYS[1], ARGV[2])`

export const insideScripts = ["exists", "hexists", "hincrby", "pexpire", "del", "publish"]

export const channelOf = (name: string): string => `${name}:released`

export interface RawScripts {
  readonly client: Redis
  readonly nextOwner: () => string
  /** One attempt; whether it was granted. */
  readonly tryAcquire: (name: string, owner: string) => Promise<boolean>
  readonly release: (name: string, owner: string) => Promise<void>
  readonly renew: (name: string, owner: string) => Promise<boolean>
}

export const openRawScripts = async (port: number, leaseMillis: number): Promise<RawScripts> => {
  const client = new Redis({ port })
  const load = async (lua: string) => String(await client.script("LOAD", lua))
  const acquireSha = await load(acquireLua)
  const releaseSha = await load(releaseLua)
  const renewSha = await load(renewLua)
  const process = crypto.randomUUID()
  let owners = 0
  return {
    client,
    nextOwner: () => `${process}:${++owners}`,
    tryAcquire: async (name, owner) => (await client.evalsha(acquireSha, 1, name, owner, leaseMillis)) === 1,
    release: async (name, owner) => {
      if ((await client.evalsha(releaseSha, 2, name, channelOf(name), owner)) !== 1) throw new Error(`lost ${name}`)
    },
    renew: async (name, owner) => (await client.evalsha(renewSha, 1, name, owner, leaseMillis)) === 1
  }
}
