/**
 * The interface between the locks and their storage. A store runs one atomic operation at a time and emits wake-up signals; it
 * knows nothing of waiting, leases in progress or fibers.
 *
 * Two stores come with the library and pass the same tests: Redis through a {@link RedisDriver.RedisDriver}, and memory.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Layer from "effect/Layer"
import { makeMemoryStore } from "./internal/store/memory/MemoryStore.ts"
import type * as Table from "./internal/store/operations/StoreOperation.ts"
import { makeRedisStore } from "./internal/store/redis/RedisStore.ts"
import type { Store } from "./internal/store/Store.ts"
import type { RedisDriver } from "./RedisDriver.ts"

/**
 * The names of the atomic operations: the path of each file under `lua/`, which documents its KEYS, ARGV and reply.
 *
 * @category models
 * @since 0.1.0
 */
export type Operation = Table.OperationName

/**
 * A row of the table of operations: its name, whether it carries a deadline, the meaning of a script's reply, and how a
 * quorum of stores decides it.
 *
 * @category models
 * @since 0.3.0
 */
export type StoreOperation<A> = Table.StoreOperation<A>

/**
 * One operation with its keys and arguments, ready to run; `A` is its answer. `keys[0]` is the lock.
 *
 * @category models
 * @since 0.3.0
 */
export type StoreCommand<A> = Table.StoreCommand<A>

/**
 * The interface of a store.
 *
 * @category models
 * @since 0.3.0
 */
export type { Store }

/**
 * Where locks are stored: Redis or memory.
 *
 * @category services
 * @since 0.1.0
 */
export class LockStore extends Context.Service<LockStore, Store>()("effect-redis-lock/LockStore") {}

/**
 * Locks in Redis. Each use of this layer is a store of its own, over the driver provided to it: Effect would otherwise
 * build one store for the whole program, and clients of several servers would share that of the first.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerRedis: Layer.Layer<LockStore, never, RedisDriver> = Layer.fresh(
  Layer.effect(LockStore, makeRedisStore)
)

/**
 * Locks in the memory of this process, on Effect's `Clock`: for tests under `TestClock`, demonstrations, and programs with
 * a single process. Each build of this layer is a store of its own.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerMemory: Layer.Layer<LockStore> = Layer.effect(LockStore, makeMemoryStore)
