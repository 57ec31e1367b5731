/**
 * The two halves of the memory store: the operations that a server runs on its keyspace, and the client that sends them.
 */
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { pathToFileURL } from "node:url"
import { Effect, type Exit } from "effect"
import { LockStore, type RedisDriver } from "effect-redis-lock"
import type * as CommandsModule from "../../packages/core/dist/internal/store/commands.js"
import type * as LuaModule from "../../packages/core/dist/internal/store/memory/LuaScripts.js"
import type * as KeyspaceModule from "../../packages/core/dist/internal/store/memory/Keyspace.js"
import type * as StoreModule from "../../packages/core/dist/internal/store/memory/MemoryStore.js"
import type * as ClockModule from "../../packages/core/dist/internal/store/ServerClock.js"

// resolved from the package, so that they are found both from here and from dist/
const core = dirname(createRequire(import.meta.url).resolve("effect-redis-lock"))
const load = (path: string) => import(pathToFileURL(join(core, "internal/store", path)).href)

const { Keyspace } = (await load("memory/Keyspace.js")) as typeof KeyspaceModule
const { loadScripts } = (await load("memory/LuaScripts.js")) as typeof LuaModule
const { evalOn } = (await load("memory/MemoryStore.js")) as typeof StoreModule
const lua = await Effect.runPromise(loadScripts)
export const { ServerClocks } = (await load("ServerClock.js")) as typeof ClockModule
export const { sending } = (await load("commands.js")) as typeof CommandsModule

export type Database = KeyspaceModule.Keyspace

/** An empty database of a server whose clock this is, milliseconds since the epoch. */
export const makeDatabase = (now: () => number): Database => new Keyspace(now)

/** Copies the keys of one database into another, and returns it. */
export const copyOf = (from: Database, to: Database): Database => {
  for (const key of from.keys()) {
    const left = from.pttl(key)
    switch (from.type(key)) {
      case "hash":
        for (const [field, text] of from.hash(key)!) to.hset(key, field, text)
        break
      case "list":
        for (const item of from.list(key)) to.rpush(key, item)
        break
      case "zset":
        for (const [member, score] of from.zset(key)) to.zadd(key, score, member)
        break
      default:
        to.setString(key, from.getString(key)!)
    }
    if (left >= 0) to.expire(key, left)
  }
  return to
}

export type Result = Exit.Exit<RedisDriver.Reply, RedisDriver.RedisDriverError>

/** Runs one operation as a server does. */
export const execute = (
  db: Database,
  operation: LockStore.Operation,
  keys: ReadonlyArray<string>,
  args: ReadonlyArray<string | number>
): Result => Effect.runSyncExit(evalOn(db, lua)(LockStore.operations[operation].script, keys, args))
