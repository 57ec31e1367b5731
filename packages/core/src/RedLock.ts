/**
 * Locks on a majority of independent servers.
 *
 * @since 0.2.0
 */
import type * as Duration from "effect/Duration"
import { lockOf } from "./internal/locks/LockImpl.ts"
import { RedLockImpl } from "./internal/locks/RedLockImpl.ts"
import type { QuorumOptions, TimeOptions } from "./AcquireOptions.ts"
import type { Lock } from "./Lock.ts"
import type { QuorumNotReached, TimeoutOf } from "./LockError.ts"

/**
 * Options of {@link make}.
 *
 * @category options
 * @since 0.2.0
 */
export interface RedLockOptions<out WaitTime extends Duration.Input | undefined = Duration.Input | undefined>
  extends TimeOptions<WaitTime>, QuorumOptions {}

/**
 * A lock that is held while a majority of its members is: the Redlock algorithm
 * (https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/). Each member is a lock on its own server,
 * bound with `Lock.provide`; a minority of the servers may be down, slow or without their data. Every function of `Lock`
 * works on it.
 *
 * The request goes to all servers at once; the lock is acquired when a majority grants it and some validity is left:
 * lease - elapsed - (1 % of the lease + 2 ms). Otherwise it is released everywhere, including servers whose answer is
 * unknown. The watchdog renews on all servers; the lock is lost when no majority confirms before the validity is over.
 * The fencing token is greater than that of every earlier grant, however much the servers' clocks differ.
 *
 * Fails with `QuorumNotReached` when too many servers still fail at the end of `waitTime`; the error says why each of them
 * failed. Fails with `InvalidLockOptions` before any command when an option is out of range, when there are no members or
 * duplicate ones, and when a quorum cannot keep a member: composed or fair locks, sides of read-write locks mixed with
 * others, or a member with a `leaseTime`, `maxHold`, `minHold` or `acknowledge` of its own. The members' own wait times are
 * ignored. (The type keeps their `LockTimeout`, which the end of a `SpinLock`'s schedule still brings.)
 *
 * **When to use**
 *
 * To keep locks available while a minority of independent servers is down. `RedisLock.layerQuorum` does the same for all locks
 * of a program.
 *
 * **When not to use**
 *
 * - With a server and its replicas: a majority of them fails together with that server.
 * - With servers that come back at once without their data: they may grant a lock again that is still held. Keep them away
 *   for the longest lease (delayed restart), or keep their data with `appendfsync always`.
 * - As a substitute for fencing: see docs/fencing.md.
 * - With names made up at run time that differ from member to member: each such set of names is remembered for as long as
 *   the first member's service lives. Members that share one name leave nothing behind.
 * - With fair locks: each server would have a queue of its own. Semaphores are no `Lock` and do not compile: a quorum of
 *   counters is unsound, since two majorities share only some of their members, each of which may have permits left for
 *   both.
 *
 * @example
 * ```ts
 * import { IoRedis } from "@effect-redis-lock/ioredis"
 * import { Context, Effect, Layer } from "effect"
 * import { Lock, RedisLock, RedLock } from "effect-redis-lock"
 *
 * const serviceAt = (url: string) =>
 *   Layer.build(Layer.provide(RedisLock.layer(), IoRedis.layer({ url }))).pipe(
 *     Effect.map((context) => Context.get(context, RedisLock.RedisLock))
 *   )
 *
 * const program = Effect.gen(function*() {
 *   const services = yield* Effect.all(["redis://a", "redis://b", "redis://c"].map(serviceAt))
 *   const ledger = RedLock.make(services.map((service) => Lock.provide(Lock.make("ledger"), service)))
 *   yield* Effect.log("one of us, as long as two of three servers live").pipe(Lock.withLock(ledger))
 * }).pipe(Effect.scoped)
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const make = <
  R,
  E,
  T extends bigint | undefined = bigint,
  WaitTime extends Duration.Input | undefined = undefined
>(
  members: ReadonlyArray<Lock<R, E, T>>,
  options?: RedLockOptions<WaitTime>
): Lock<R, E | TimeoutOf<WaitTime> | QuorumNotReached, T> => {
  const given: ReadonlyArray<Lock<R, E, any>> = Array.isArray(members) ? members : []
  const lock: Lock<R, any, any> = new RedLockImpl<R, E>(given.map(lockOf<R, E, bigint>), options)
  return lock
}
