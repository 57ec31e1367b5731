/**
 * Locks that share their fencing tokens with Java.
 *
 * @since 0.2.0
 */
import type * as Duration from "effect/Duration"
import { fenced } from "./internal/kinds/kinds.ts"
import { LockImpl } from "./internal/locks/LockImpl.ts"
import type { AcquireOptions } from "./AcquireOptions.ts"
import type { Lock } from "./Lock.ts"
import type { TimeoutOf } from "./LockError.ts"
import type { RedisLock } from "./RedisLock.ts"

/**
 * A reentrant lock whose fencing token is the counter of Redisson's `RFencedLock`: 1 for the first grant of its name, and
 * a higher one for each further grant. Every function of `Lock` works on it.
 *
 * Unlike in Redisson, the token belongs to the holding: re-entry does not change it, and it can be read after a loss, to
 * tell the resource that this holder is late.
 *
 * **Gotchas**
 *
 * Plain locks of the same name continue the counter, but if a plain lock was the first, the counter is server time in
 * microseconds, which Redis forgets a day later unless a `FencedLock` is granted first. Use one kind per name.
 *
 * **When not to use**
 *
 * Where no Java client takes part: every other lock has a token as well, which rises even after Redis has lost its data.
 * The counter then starts again at 1, and its key stays in Redis until somebody deletes it: see docs/memory.md.
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
