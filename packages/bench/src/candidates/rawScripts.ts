import { Redis } from "ioredis"
import { type Kind, permits } from "../Candidate.ts"
import { type Leases, owners } from "./polling.ts"

/** An acquire and a release. */
interface Scripts {
  readonly acquire: string
  readonly release: string
}

/**
 * The least that a lock needs, with which all candidates are compared: a hash `{ owner: 1 }` with an expiry; a release that
 * compares, deletes and publishes; a renewal that compares and extends.
 */
const lock: Scripts = {
  acquire: `
if redis.call('exists', KEYS[1]) == 1 then return 0 end
redis.call('hincrby', KEYS[1], ARGV[1], 1)
redis.call('pexpire', KEYS[1], ARGV[2])
return 1`,
  release: `
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return 0 end
redis.call('del', KEYS[1])
redis.call('publish', KEYS[2], KEYS[1])
return 1`
}

const renewLua = `
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return 0 end
return redis.call('pexpire', KEYS[1], ARGV[2])`

/** The same hash with all readers in it, and a field for a writer. */
const read: Scripts = {
  acquire: `
if redis.call('hexists', KEYS[1], 'writing') == 1 then return 0 end
redis.call('hset', KEYS[1], ARGV[1], 1)
redis.call('pexpire', KEYS[1], ARGV[2])
return 1`,
  release: `
if redis.call('hdel', KEYS[1], ARGV[1]) == 0 then return 0 end
if redis.call('exists', KEYS[1]) == 0 then redis.call('publish', KEYS[2], KEYS[1]) end
return 1`
}

const write: Scripts = {
  acquire: `
if redis.call('exists', KEYS[1]) == 1 then return 0 end
redis.call('hset', KEYS[1], ARGV[1], 1, 'writing', 1)
redis.call('pexpire', KEYS[1], ARGV[2])
return 1`,
  release: lock.release
}

/** A counter of the permits that are taken; those of a dead process are never returned. */
const semaphore: Scripts = {
  acquire: `
if tonumber(redis.call('get', KEYS[1]) or 0) >= ${permits} then return 0 end
redis.call('incr', KEYS[1])
return 1`,
  release: `
redis.call('decr', KEYS[1])
redis.call('publish', KEYS[2], KEYS[1])
return 1`
}

/**
 * A fair lock is compared with the plain scripts, as a bare fair lock would not be bare. Composed locks are not measured
 * with these scripts.
 */
const scriptsOf: Readonly<Record<Kind, Scripts>> = {
  lock,
  fair: lock,
  read,
  write,
  semaphore,
  red: lock,
  multi: lock
}

export const channelOf = (name: string): string => `${name}:released`

export interface RawScripts extends Leases {
  readonly client: Redis
}

export const openRawScripts = async (port: number, leaseMillis: number): Promise<RawScripts> => {
  const client = new Redis({ port })
  const load = async (lua: string) => String(await client.script("LOAD", lua))
  const acquireShas = {} as Record<Kind, string>
  const releaseShas = {} as Record<Kind, string>
  for (const kind of Object.keys(scriptsOf) as Array<Kind>) {
    acquireShas[kind] = await load(scriptsOf[kind].acquire)
    releaseShas[kind] = await load(scriptsOf[kind].release)
  }
  const renewSha = await load(renewLua)
  return {
    client,
    nextOwner: owners(),
    tryAcquire: async (kind, name, owner) =>
      (await client.evalsha(acquireShas[kind], 1, name, owner, leaseMillis)) === 1,
    release: async (kind, name, owner) => {
      if ((await client.evalsha(releaseShas[kind], 2, name, channelOf(name), owner)) !== 1) {
        throw new Error(`lost ${name}`)
      }
    },
    renew: async (name, owner) => (await client.evalsha(renewSha, 1, name, owner, leaseMillis)) === 1
  }
}
