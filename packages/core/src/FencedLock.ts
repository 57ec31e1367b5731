/**
 * Locks that share their fencing tokens with Java.
 *
 * @since 0.2.0
 */
import type * as Duration from "effect/Duration"
import { fenced } from "./internal/protocol/exclusive.ts"
import { LockImpl } from "./internal/locks/LockImpl.ts"
import type { AcquireOptions } from "./AcquireOptions.ts"
import type { Lock } from "./Lock.ts"
import type { TimeoutOf } from "./LockError.ts"
import type { RedisLock } from "./RedisLock.ts"

/**
 * A reentrant lock whose fencing token is the counter of Redisson's `RFencedLock`: 1 for the first grant of its name, and one
 * more for each. Every function of `Lock` works on it.
 *
 * Unlike in Redisson, the token belongs to the holding: re-entering does not change it, and it can be read after the lock was
 * lost, when it tells the resource that this holder is late.
 *
 * **Gotchas**
 *
 * Plain locks of the same name count on, but where one has begun the counting it is server time in microseconds, which Redis
 * forgets a day after the last plain lock. Keep a name to one kind.
 *
 * **When not to use**
 *
 * Where no Java client takes part: every other lock has a token, too, which also rises when Redis has lost its data. The counter
 * begins anew then, and its key stays in Redis until somebody deletes it: see docs/memory.md.
 *
 * @example
 * ```ts
 * import { Effect } from "effect"
 * import { FencedLock, Lock } from "effect-redis-lock"
 *
 * const ledger = FencedLock.make("ledger")
 *
 * const program = Effect.scoped(Effect.gen(function*() {
 *   const { token } = yield* Lock.scoped(ledger)
 *   yield* Effect.log(`write with token ${token}`)
 * }))
 * ```
 *
 * @category constructors
 * @since 0.2.0
 */
export const make = <WaitTime extends Duration.Input | undefined = undefined>(
  name: string,
  options?: AcquireOptions<WaitTime>
): Lock<RedisLock, TimeoutOf<WaitTime>> => new LockImpl(name, fenced, options, undefined)
