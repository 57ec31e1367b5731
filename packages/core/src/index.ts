/**
 * Distributed locks and synchronizers on Redis for Effect, held as scoped resources, sharing keys with Redisson.
 *
 * @since 0.1.0
 */
export type {
  AcknowledgeOptions,
  GrantOptions,
  QuorumOptions,
  TimeOptions,
  TokenOf,
  TokenOptions
} from "./AcquireOptions.ts"
export * as FairLock from "./FairLock.ts"
export * as FencedLock from "./FencedLock.ts"
export type { Holding, HoldingOf, HoldingWithoutToken } from "./Holding.ts"
export * as CountDownLatch from "./CountDownLatch.ts"
export * as DistributedCron from "./DistributedCron.ts"
export * as LeaderElection from "./LeaderElection.ts"
export * as Lock from "./Lock.ts"
export * from "./LockError.ts"
export * as LockMetrics from "./LockMetrics.ts"
export type { HolderState, LockChange, LockState, WaiterState } from "./LockState.ts"
export * as LockStore from "./LockStore.ts"
export * as MultiLock from "./MultiLock.ts"
export * as NonReentrantLock from "./NonReentrantLock.ts"
export * as PermitId from "./PermitId.ts"
export * as PermitSemaphore from "./PermitSemaphore.ts"
export * as ReadWriteLock from "./ReadWriteLock.ts"
export * as RedisDriver from "./RedisDriver.ts"
export * as RedisLock from "./RedisLock.ts"
export * as ScriptDeadlines from "./ScriptDeadlines.ts"
export * as Semaphore from "./Semaphore.ts"
export * as RedLock from "./RedLock.ts"
export * as RunOnce from "./RunOnce.ts"
export * as Singleton from "./Singleton.ts"
export * as SpinLock from "./SpinLock.ts"
