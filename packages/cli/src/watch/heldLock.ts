/**
 * A held lock as it is shown: what Redis told at the last look, and since when it has been seen held.
 */
import * as Duration from "effect/Duration"
import type { LockChange, LockState } from "effect-redis-lock"
import { clientOf } from "../visible.ts"

/** Times are milliseconds of the clock that the view is drawn by. */
export interface HeldLock {
  readonly state: LockState
  readonly seenAt: number
  readonly since: number
  /** It was held before the view began. */
  readonly isOlder: boolean
  /** The longest lease seen, milliseconds: a full bar. */
  readonly lease: number
  /** By owner or permit, when its lease was last seen renewed. */
  readonly renewedAt: ReadonlyMap<string, number>
  /** By `waiterKey`, since when it waits. */
  readonly waits: ReadonlyMap<string, Wait>
}

export interface Wait {
  readonly since: number
  /** It waited before it was seen. */
  readonly isOlder: boolean
}

const millisOf = ({ remaining }: { readonly remaining: Duration.Duration | undefined }): number =>
  remaining === undefined ? Number.POSITIVE_INFINITY : Duration.toMillis(remaining)

/**
 * Milliseconds: the longest of all readers, who hold the lock together, but the shortest of all permits, each of which is lost by itself.
 * Infinite where there is no expiry.
 */
const remainingOf = ({ holders, permits }: LockState): number =>
  permits.length > 0 ? Math.min(...permits.map(millisOf)) : Math.max(...holders.map(millisOf))

/** The longest lease that is left, milliseconds; 0 where none ends. */
const longestOf = ({ holders, permits }: LockState): number =>
  Math.max(0, ...[...holders, ...permits].map(millisOf).filter(Number.isFinite))

/** After an outage a lock is found again, perhaps in other hands. */
const isSameHold = (before: LockState, now: LockState): boolean => {
  const holdsBefore = new Set(holdsOf(before))
  return holdsOf(now).some((id) => holdsBefore.has(id))
}

/** The owners of a lock, or the ids of permits. */
export const holdsOf = ({ holders, permits }: LockState): ReadonlyArray<string> => [
  ...holders.map(({ owner }) => owner),
  ...permits.map(({ id }) => id)
]

/** The lock after a change; undefined once nobody holds it. */
export const after = (before: HeldLock | undefined, { _tag, state }: LockChange, now: number): HeldLock | undefined => {
  if (_tag === "Released") return undefined
  const same = _tag !== "Acquired" && before !== undefined && isSameHold(before.state, state) ? before : undefined
  const lease = Math.max(same?.lease ?? 0, longestOf(state))
  return {
    state,
    seenAt: now,
    since: same?.since ?? now,
    isOlder: same?.isOlder ?? _tag === "Found",
    lease,
    renewedAt: renewalsOf(same, state, lease, now),
    waits: waitsOf(before, state, _tag === "Found", now)
  }
}

/** When each lease ends. */
const endsOf = ({ holders, permits }: LockState, now: number): ReadonlyMap<string, number> =>
  new Map([
    ...holders.map((holder) => [holder.owner, now + millisOf(holder)] as const),
    ...permits.map((permit) => [permit.id, now + millisOf(permit)] as const)
  ])

/** A lease that ends later by more than this part of it was renewed: a watchdog adds a third, and looks are not exact. */
const renewedPart = 1 / 6

const renewalsOf = (
  before: HeldLock | undefined,
  state: LockState,
  lease: number,
  now: number
): ReadonlyMap<string, number> => {
  const renewals = new Map<string, number>()
  if (before === undefined) return renewals
  const endsBefore = endsOf(before.state, before.seenAt)
  for (const [id, ends] of endsOf(state, now)) {
    const isRenewed = ends > (endsBefore.get(id) ?? ends) + lease * renewedPart
    const at = isRenewed ? now : before.renewedAt.get(id)
    if (at !== undefined) renewals.set(id, at)
  }
  return renewals
}

/** Tells the waiters of one name apart. */
export const waiterKey = ({ mode, owner }: { readonly mode?: string | null; readonly owner: string }): string =>
  `${mode ?? ""} ${owner}`

/** Since Redis tells it, else since the waiter was first seen. */
const waitsOf = (
  before: HeldLock | undefined,
  { waiters }: LockState,
  isFound: boolean,
  now: number
): ReadonlyMap<string, Wait> =>
  new Map(
    waiters.map((waiter): readonly [string, Wait] => {
      const key = waiterKey(waiter)
      return waiter.since === undefined
        ? [key, before?.waits.get(key) ?? { since: now, isOlder: isFound || before === undefined }]
        : [key, { since: now - Duration.toMillis(waiter.since), isOlder: false }]
    })
  )

/** The wait that has lasted longest; undefined where nobody is known to wait. */
export const longestWait = ({ waits }: HeldLock): Wait | undefined => {
  let longest: Wait | undefined
  for (const wait of waits.values()) {
    if (longest === undefined || wait.since < longest.since) longest = wait
  }
  return longest
}

/** Milliseconds until the lease ends, unless it is renewed; undefined where there is no expiry. */
export const leftOf = ({ seenAt, state }: HeldLock, now: number): number | undefined => {
  const remaining = remainingOf(state)
  return Number.isFinite(remaining) ? Math.max(0, remaining - (now - seenAt)) : undefined
}

/** How many processes wait, as far as Redis knows: in the queue of a fair lock, each of their fibers has a place. */
export const waitingProcesses = ({ waiters }: LockState): number =>
  new Set(waiters.map(({ owner }) => clientOf(owner))).size
