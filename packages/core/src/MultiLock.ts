/**
 * Several locks as one: all or nothing.
 *
 * @since 0.2.0
 */
import type * as Duration from "effect/Duration"
import { lockOf } from "./internal/locks/LockImpl.ts"
import { MultiLockImpl } from "./internal/locks/MultiLockImpl.ts"
import type { GrantOptions } from "./AcquireOptions.ts"
import type { Failures, Lock, LockOrName, Services, Token } from "./Lock.ts"
import type { TimeoutOf } from "./LockError.ts"

/**
 * A lock composed of several locks, held while all of them are. Members are locks of any kind, on the same service or,
 * bound with `Lock.provide`, on different ones; a name stands for `Lock.make(name)`. Every function of `Lock` works on it.
 * The token of its `Holding` is a record of its members' tokens by name.
 *
 * `waitTime` limits the wait for all members together; the members' own wait times are ignored. (The type keeps their
 * `LockTimeout`, which the end of a `SpinLock`'s schedule still brings.) A fixed `leaseTime` begins with the last member's
 * grant; without one, each member has its own, and a fixed one begins then as well. Losing one member means losing the
 * whole: `LockLost` names it. Releasing frees all members, and fails with each failure.
 *
 * **Details**
 *
 * All members are requested at once. If one is taken, the wait for it holds no other; see docs/primitives/multi-lock.md. Fibers
 * that list the same locks in different orders neither deadlock nor starve. The two sides of one `ReadWriteLock` cannot both be
 * members. On a cluster, a hash tag in their names (`{orders}:1`) puts them into one slot, where fewer commands acquire them.
 *
 * **When to use**
 *
 * To change several things together, such as two accounts between which money is moved.
 *
 * **When not to use**
 *
 * To make one lock survive the failure of servers: every member must be acquired, so each additional server makes it less
 * available. Use `RedLock` for that.
 *
 * @example
 * ```ts
 * import { Effect } from "effect"
 * import { Lock, MultiLock } from "effect-redis-lock"
 *
 * const transfer = (from: string, to: string) =>
 *   Effect.log(`from ${from} to ${to}`).pipe(
 *     Lock.withLock(MultiLock.make([`account:${from}`, `account:${to}`]))
 *   )
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const make = <
  const Members extends ReadonlyArray<LockOrName>,
  WaitTime extends Duration.Input | undefined = undefined
>(
  members: Members,
  options?: GrantOptions<WaitTime>
): Lock<
  Services<Members[number]>,
  Failures<Members[number]> | TimeoutOf<WaitTime>,
  Readonly<Record<string, Token<Members[number]>>>
> =>
  new MultiLockImpl<Services<Members[number]>, any, Token<Members[number]>>(
    (Array.isArray(members) ? members : []).map((member) => lockOf<any, any, any>(member)),
    options
  )
