/**
 * Fair locks: first come, first served.
 *
 * @since 0.2.0
 */
import type * as Duration from "effect/Duration"
import { fair } from "./internal/kinds/kinds.ts"
import { makeLock } from "./internal/locks/LockImpl.ts"
import type { AcquireOptions, TokenOf, TokenOptions } from "./AcquireOptions.ts"
import type { Lock } from "./Lock.ts"
import type { TimeoutOf } from "./LockError.ts"
import type { RedisLock } from "./RedisLock.ts"

/**
 * A reentrant lock that is granted in the order of the requests, among all fibers of all processes. It uses the queue,
 * scores and channels of Redisson's fair lock, so that Java and TypeScript wait in one queue. Every function of `Lock`
 * works on it.
 *
 * A waiting fiber keeps its place however long it waits. A waiter whose process has died or was stopped is skipped after 1.5
 * seconds; if the process comes back, its waiter rejoins at the end. See docs/primitives/fair-lock.md for how the queue works.
 *
 * `Lock.tryScoped` and `Lock.withLockIfAvailable` never take the lock ahead of a waiter.
 *
 * **Gotchas**
 *
 * A plain lock of the same name excludes it and is excluded by it, but ignores the queue. The places of a dead process
 * remain in Redis until somebody else acquires or releases the lock. A waiting Java client whose process has died holds up
 * the queue for Redisson's `fairLockWaitTimeout` (5 minutes by default).
 *
 * **When to use**
 *
 * Where waiters of several processes must be served in the order of their requests.
 *
 * **When not to use**
 *
 * Where order does not matter: each hand-over costs a round trip to one particular waiter, and each release reads the
 * queue. Fibers of one process are served in order by every kind of lock.
 *
 * @example
 * ```ts
 * import { Effect } from "effect"
 * import { FairLock, Lock } from "effect-redis-lock"
 *
 * const turnstile = FairLock.make("turnstile")
 *
 * const program = Effect.log("my turn").pipe(Lock.withLock(turnstile, { waitTime: "1 minute" }))
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const make = <WaitTime extends Duration.Input | undefined = undefined, Tokens extends "time" | "none" = "time">(
  name: string,
  options?: AcquireOptions<WaitTime> & TokenOptions<Tokens>
): Lock<RedisLock, TimeoutOf<WaitTime>, TokenOf<Tokens>> => makeLock(name, fair, options)
