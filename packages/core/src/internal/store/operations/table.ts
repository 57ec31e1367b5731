/**
 * The table of all operations, by name, for code that handles any of them.
 */
import * as client from "./client.ts"
import * as fairLock from "./fairLock.ts"
import * as grant from "./StoreOperation.ts"
import type { OperationName, StoreOperation } from "./StoreOperation.ts"
import * as latch from "./latch.ts"
import * as lock from "./lock.ts"
import * as multiLock from "./multiLock.ts"
import * as permitSemaphore from "./permitSemaphore.ts"
import * as readWriteLock from "./readWriteLock.ts"
import * as record from "./record.ts"
import * as semaphore from "./semaphore.ts"

const primitives = [client, lock, fairLock, readWriteLock, multiLock, semaphore, permitSemaphore, latch, record, grant]

export const table = Object.fromEntries(
  primitives.flatMap(({ operations }) =>
    Object.values<StoreOperation<unknown>>(operations).map((operation) => [operation.name, operation])
  )
) as Readonly<Record<OperationName, StoreOperation<unknown>>>
