/**
 * Several locks as one: all or nothing.
 *
 * @since 0.2.0
 */
import type * as Duration from "effect/Duration"
import { lockOf } from "./internal/locks/LockImpl.ts"
import { MultiLockImpl } from "./internal/locks/MultiLockImpl.ts"
import type { AcquireOptions, Failures, Lock, Services, Token } from "./Lock.ts"
import type { LockTimeout, TimeoutOf } from "./LockError.ts"

/**
 * A lock of several locks, which is held while all of them are. Members may be locks of any kind, on the same service or, bound
 * with `Lock.provide`, on different ones. Every function of `Lock` works on it. The token of its `Holding` is a record of
 * its members' tokens by name.
 *
 * All members are asked for at once, those of one server and slot by one command. When one is taken, what was won is given back
 * at once and that one is waited for; after a few rounds members are taken one by one in the order of their names, so that
 * those who want the same locks in any order neither wait for each other for ever nor starve.
 *
 * `waitTime` is the limit for the whole, a fixed `leaseTime` begins with the last member's grant. Losing one member is losing
 * the whole: `LockLost` names it. Releasing frees all, and fails with each failure.
 *
 * **When not to use**
 *
 * To make one lock survive the failure of servers: every member must be had, so that each server more makes it less available.
 * That is what `RedLock` is for.
 *
 * @example
 * ```ts
 * import { Effect } from "effect"
 * import { Lock, MultiLock } from "effect-redis-lock"
 *
 * const transfer = (from: string, to: string) =>
 *   Effect.log(`from ${from} to ${to}`).pipe(
 *     Lock.withLock(MultiLock.make([Lock.make(`account:${from}`), Lock.make(`account:${to}`)]))
 *   )
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const make = <
  const Members extends ReadonlyArray<Lock<unknown, unknown, unknown>>,
  WaitTime extends Duration.Input | undefined = undefined
>(
  members: Members,
  options?: AcquireOptions<WaitTime>
): Lock<
  Services<Members[number]>,
  Exclude<Failures<Members[number]>, LockTimeout> | TimeoutOf<WaitTime>,
  Readonly<Record<string, Token<Members[number]>>>
> =>
  new MultiLockImpl<Services<Members[number]>, any, Token<Members[number]>>(
    (Array.isArray(members) ? members : []).map((member) => lockOf<any, any, any>(member)),
    options
  )
