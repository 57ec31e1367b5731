/**
 * A held lock as it is shown: what Redis told at the last look, and since when it has been seen held.
 */
import * as Duration from "effect/Duration"
import type { LockChange, NameState } from "effect-redis-lock"

/** Times are milliseconds of the clock that the view is drawn by. */
export interface HeldLock {
  readonly state: NameState
  readonly seenAt: number
  readonly since: number
  /** It was held before the view began. */
  readonly isOlder: boolean
  /** The longest lease seen, milliseconds: a full bar. */
  readonly lease: number
}

/** Milliseconds; the longest, as there may be many readers. Undefined where there is no expiry. */
const remainingOf = ({ holders }: NameState): number | undefined => {
  let longest = 0
  for (const { remaining } of holders) {
    if (remaining === undefined) return undefined
    longest = Math.max(longest, Duration.toMillis(remaining))
  }
  return longest
}

/** After an outage a lock is found again, perhaps in other hands. */
const isSameHold = (before: NameState, now: NameState): boolean =>
  now.holders.some(({ owner }) => before.holders.some((other) => other.owner === owner))

/** The lock after a change; undefined once nobody holds it. */
export const after = (before: HeldLock | undefined, { _tag, state }: LockChange, now: number): HeldLock | undefined => {
  if (_tag === "Released") return undefined
  const same = _tag !== "Acquired" && before !== undefined && isSameHold(before.state, state) ? before : undefined
  return {
    state,
    seenAt: now,
    since: same?.since ?? now,
    isOlder: same?.isOlder ?? _tag === "Found",
    lease: Math.max(same?.lease ?? 0, remainingOf(state) ?? 0)
  }
}

/** Milliseconds until the lease ends, unless it is renewed; undefined where there is no expiry. */
export const leftOf = ({ seenAt, state }: HeldLock, now: number): number | undefined => {
  const remaining = remainingOf(state)
  return remaining === undefined ? undefined : Math.max(0, remaining - (now - seenAt))
}
