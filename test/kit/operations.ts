/**
 * All operations of a store, by name, for tests of any of them.
 */
import type { LockStore } from "effect-redis-lock"
import { loadInternal } from "./loadInternal.ts"

type Rows = Readonly<Record<string, LockStore.StoreOperation<unknown>>>

const modules = await Promise.all(
  [
    "client",
    "fairLock",
    "latch",
    "lock",
    "multiLock",
    "permitSemaphore",
    "readWriteLock",
    "record",
    "semaphore",
    "StoreOperation"
  ].map((module) => loadInternal<{ readonly operations: Rows }>(`store/operations/${module}.js`))
)

export const operations = Object.fromEntries(
  modules.flatMap(({ operations }) => Object.values(operations).map((operation) => [operation.name, operation]))
) as Readonly<Record<LockStore.Operation, LockStore.StoreOperation<unknown>>>
