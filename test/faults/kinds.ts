/**
 * What the fault tests of the kinds of lock share: holds by hand, waiters, and a look at the queue of a fair lock.
 */
import { Effect, Fiber, Scope } from "effect"
import {
  type AcquireError,
  type Holding,
  Lock,
  type LockReentered,
  type LockTimeout,
  type RedisLock
} from "effect-redis-lock"
import type { Redis } from "ioredis"
import type { Client } from "../kit/clients.ts"
import { eventually, soon } from "../kit/eventually.ts"

export type AnyLock = Lock.Lock<RedisLock.RedisLock, LockReentered | LockTimeout>

/** Acquires for as long as the test's scope is open, or until released by hand. Nobody re-enters it. */
export const hold = (
  who: Client,
  lock: AnyLock,
  options?: Lock.AcquireOptions
): Effect.Effect<Holding, AcquireError | LockReentered, Scope.Scope> =>
  Effect.flatMap(Effect.flatMap(Effect.scope, Scope.fork), (scope) =>
    Lock.scoped(lock, options).pipe(Lock.withOwner, Scope.provide(scope), who.run)
  )

/** Forks {@link hold}: the inner effect completes with the holding, in time. */
export const waitFor = (who: Client, lock: AnyLock, options?: Lock.AcquireOptions) =>
  Effect.map(Effect.forkScoped(hold(who, lock, options), { startImmediately: true }), (fiber) => ({
    entered: soon(`lock "${lock.name}" is acquired`, Fiber.join(fiber)),
    hasEntered: () => fiber.pollUnsafe() !== undefined
  }))

export const queueOf = (name: string) => `redisson_lock_queue:{${name}}`
export const timeoutsOf = (name: string) => `redisson_lock_timeout:{${name}}`
export const clientsOf = (name: string) => `effect_redis_lock_clients:{${name}}`

/** Waits until so many stand in the queue of a fair lock; they are the answer, in order. */
export const queued = (redis: Redis, name: string, count: number) =>
  eventually(
    `${count} wait for lock "${name}"`,
    () => redis.lrange(queueOf(name), 0, -1),
    (owners) => owners.length === count
  )
