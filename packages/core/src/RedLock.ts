/**
 * Locks on a majority of independent servers.
 *
 * @since 0.2.0
 */
import type * as Duration from "effect/Duration"
import { lockOf } from "./internal/locks/LockImpl.ts"
import { checkQuorum } from "./internal/options/quorumOptions.ts"
import { RedLockImpl } from "./internal/locks/RedLockImpl.ts"
import type { AcquireOptions } from "./AcquireOptions.ts"
import type { Lock } from "./Lock.ts"
import type { LockTimeout, QuorumNotReached, TimeoutOf } from "./LockError.ts"
import type { QuorumOptions } from "./QuorumOptions.ts"

/**
 * Options of {@link make}.
 *
 * @category options
 * @since 0.2.0
 */
export interface RedLockOptions<out WaitTime extends Duration.Input | undefined = Duration.Input | undefined>
  extends AcquireOptions<WaitTime>, QuorumOptions {}

/**
 * A lock that is held while a majority of its members is: the Redlock algorithm
 * (https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/). Each member is a lock on a server of its own,
 * bound with `Lock.provide`; a minority of the servers may be down, slow or without their data. Every function of `Lock` works
 * on it.
 *
 * All servers are asked at once; the lock is acquired when a majority grants it and some validity is left: lease - elapsed -
 * (lease x `driftFactor` + 2 ms). Otherwise it is released everywhere, also where the answer is unknown. The watchdog renews on all servers; the lock
 * is lost when no majority confirms before the validity is over. The fencing token is greater than that of every earlier grant,
 * however much the servers' clocks differ.
 *
 * Fails with `QuorumNotReached` when too many servers still fail at the end of `waitTime`; it says what was wrong with each. Fails with `InvalidLockOptions`
 * before any command when an option is out of range, when there are no members, or one of them twice, and with members that a
 * quorum cannot keep: composed or fair ones, or sides of read-write locks mixed with others.
 *
 * **When to use**
 *
 * To keep locks available while a minority of independent servers is down. `RedisLock.layerQuorum` does the same for all locks
 * of a program.
 *
 * **When not to use**
 *
 * - Members on servers that replicate each other: a majority of copies of one server is that server.
 * - A server that comes back without its data may grant again what it had granted: let it stay away for the longest lease
 *   (delayed restart), or keep its data with `appendfsync always`.
 * - As a substitute for fencing: see the README on what no lock with a lease can do.
 * - With names made up at run time that differ from member to member: each such set of names is remembered for as long as the
 *   first member's service lives. Members of one name, whatever it is, cost nothing that stays.
 * - With fair locks: each server would have a queue of its own. And never with semaphores: a quorum of counters is unsound, for
 *   two majorities share only some of their members, each of which may have permits left for both. They are no `Lock`, so
 *   that it does not compile.
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
): Lock<R, Exclude<E, LockTimeout> | TimeoutOf<WaitTime> | QuorumNotReached, T> => {
  const given: ReadonlyArray<Lock<R, E, any>> = Array.isArray(members) ? members : []
  const lock: Lock<R, any, any> = new RedLockImpl<R, E>(given.map(lockOf<R, E, bigint>), options, checkQuorum(options))
  return lock
}
