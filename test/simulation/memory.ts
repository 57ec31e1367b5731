/**
 * The two halves of the memory store: the operations that a server runs on its keyspace, and the client that sends them.
 */
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { pathToFileURL } from "node:url"
import { Effect, type Exit } from "effect"
import type { LockStore, LockStoreError, RedisDriver } from "effect-redis-lock"
import type * as DeadlinesModule from "../../packages/core/dist/internal/store/CommandDeadlines.js"
import type * as KeyspaceModule from "../../packages/core/dist/internal/store/memory/keyspace/Keyspace.js"
import type * as StoreModule from "../../packages/core/dist/internal/store/memory/MemoryStore.js"
import type * as WithDeadlinesModule from "../../packages/core/dist/internal/store/withDeadlines.js"

// resolved from the package, so that they are found both from here and from dist/
const core = dirname(createRequire(import.meta.url).resolve("effect-redis-lock"))
const load = (path: string) => import(pathToFileURL(join(core, "internal/store", path)).href)

const { Keyspace } = (await load("memory/keyspace/Keyspace.js")) as typeof KeyspaceModule
const { executeOn } = (await load("memory/MemoryStore.js")) as typeof StoreModule
export const { CommandDeadlines } = (await load("CommandDeadlines.js")) as typeof DeadlinesModule
export const { withDeadlines } = (await load("withDeadlines.js")) as typeof WithDeadlinesModule

export type Database = KeyspaceModule.Keyspace

/** An empty database of a server whose clock this is, milliseconds since the epoch. */
export const makeDatabase = (now: () => number): Database => new Keyspace(now)

export type Result = Exit.Exit<RedisDriver.Reply, LockStoreError>

/** Runs one operation as a server does. */
export const execute = (
  db: Database,
  operation: LockStore.Operation,
  keys: ReadonlyArray<string>,
  args: ReadonlyArray<string | number>
): Result => Effect.runSyncExit(executeOn(db)(operation, keys, args))
