import type { Reply } from "../../../RedisDriver.ts"
import type { Keyspace } from "./keyspace/Keyspace.ts"

/** One atomic operation on memory. Arguments arrive as text, as they do in a Lua script. */
export type MemoryOperation = (db: Keyspace, keys: ReadonlyArray<string>, args: ReadonlyArray<string>) => Reply
