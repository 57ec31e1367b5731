/**
 * The two halves of the memory store: the operations that a server runs on its keyspace, and the client that sends them.
 */
import { Effect, type Exit } from "effect"
import type { LockStore, RedisDriver } from "effect-redis-lock"
import type * as CommandsModule from "../../packages/core/dist/internal/store/commands.js"
import type * as LuaModule from "../../packages/core/dist/internal/store/memory/LuaScripts.js"
import type * as KeyspaceModule from "../../packages/core/dist/internal/store/memory/Keyspace.js"
import type * as StoreModule from "../../packages/core/dist/internal/store/memory/MemoryStore.js"
import type * as ClockModule from "../../packages/core/dist/internal/store/commands.js"
import type * as AcknowledgementsModule from "../../packages/core/dist/internal/store/acknowledgements.js"
import type * as RedisCommandsModule from "../../packages/core/dist/internal/store/memory/redisCommands.js"
import { loadInternal } from "../kit/loadInternal.ts"
import { operations } from "../kit/operations.ts"

const { Keyspace } = await loadInternal<typeof KeyspaceModule>("store/memory/Keyspace.js")
export const { runCommand } = await loadInternal<typeof RedisCommandsModule>("store/memory/redisCommands.js")
const { loadScripts } = await loadInternal<typeof LuaModule>("store/memory/LuaScripts.js")
const { evalOn } = await loadInternal<typeof StoreModule>("store/memory/MemoryStore.js")
const lua = await Effect.runPromise(loadScripts)
export const { acknowledgements } = await loadInternal<typeof AcknowledgementsModule>("store/acknowledgements.js")
export const { ServerClocks } = await loadInternal<typeof ClockModule>("store/commands.js")
export const { sending } = await loadInternal<typeof CommandsModule>("store/commands.js")

export type Database = KeyspaceModule.Keyspace

/** An empty database of a server whose clock this is, milliseconds since the epoch. */
export const makeDatabase = (now: () => number): Database => new Keyspace(now)

/** Copies the keys of one database into another, and returns it. */
export const copyOf = (from: Database, to: Database): Database => {
  for (const key of from.keys()) {
    const type = from.type(key) as keyof KeyspaceModule.Values
    to.set(key, type, structuredClone(from.get(key, type)!))
    const left = from.pttl(key)
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
): Result => Effect.runSyncExit(evalOn(db, lua)(operations[operation].script, keys, args))
