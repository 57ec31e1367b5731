/**
 * What is held at this moment, found by the keys that Redis has; and as a Stream of changes, by looking again and again: Redis sends no
 * message about the releases of others.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import { type InvalidLockOptions, LockStoreError } from "../../LockError.ts"
import type { LockChange, LockState } from "../../LockState.ts"
import type { LockClient } from "../client/LockClient.ts"
import { inspect } from "../kinds/inspect.ts"
import { parsePeriod } from "../options/acquireOptions.ts"
import { checkCollision, checkSlot, checkText, LockKeys, permitIds, permitIdsOf } from "../store/keys.ts"

/** Everything that is held under a name that matches a glob pattern, each name once. */
export const listHeld = (
  client: LockClient,
  pattern: string
): Stream.Stream<LockState, LockStoreError | InvalidLockOptions> =>
  Stream.suspend((): Stream.Stream<LockState, LockStoreError | InvalidLockOptions> => {
    const invalid = checkText("pattern", pattern)
    if (invalid !== undefined) return Stream.fail(invalid)
    if (client.isClosing) return Stream.fail(new LockStoreError({ operation: "scan", lock: pattern, reason: "Closed" }))
    // SCAN may find a key twice
    const seen = new Set<string>()
    const { keyPrefix } = client.options
    return keysIn(client, keyPrefix.replace(/[[\]*?\\^]/g, "\\$&") + pattern).pipe(
      Stream.filter((key) => !seen.has(key) && seen.add(key).size > 0),
      // a hash of an application may have a name that no lock can have
      Stream.filter((key) => checkSlot(key, new LockKeys(key), (each) => client.store.slot(each)) === undefined),
      Stream.mapEffect((key) => inspect(client, new LockKeys(key), key.slice(keyPrefix.length)), { concurrency: 16 }),
      Stream.filter(({ held, holders }) => holders.length > 0 || held > 0)
    )
  })

/** The keys of hashes, such as locks, and of semaphores with leased permits that are held. A quorum keeps none of the latter. */
const keysIn = ({ isQuorum, store }: LockClient, pattern: string): Stream.Stream<string, LockStoreError> => {
  const locks = store.scan(pattern, "hash")
  if (isQuorum) return locks
  const semaphores = Stream.fromIterable(permitIdsOf(pattern)).pipe(
    Stream.flatMap(({ name, pattern }) => Stream.map(store.scan(pattern, "zset"), (key) => ({ key, name: name(key) }))),
    Stream.filter(({ key, name }) => permitIds(name) === key && checkCollision(name, name) === undefined),
    Stream.map(({ name }) => name)
  )
  return Stream.concat(locks, semaphores)
}

/** A name as it was when it was last looked at. */
interface Seen {
  readonly state: LockState
  /** When the lease of each hold and each permit ends at the earliest, on the monotonic clock; infinite for one without end. */
  readonly ends: ReadonlyMap<string, number>
  /** By how much later they may end: how long it took to look. */
  readonly tookMillis: number
}

type Known = Map<string, Seen>

/** First what is held, then each change, found by one look per interval. */
export const watchLocks = (
  client: LockClient,
  pattern: string,
  interval: Duration.Input
): Stream.Stream<LockChange, LockStoreError | InvalidLockOptions> => {
  const intervalMillis = parsePeriod("interval", interval)
  if (typeof intervalMillis !== "number") return Stream.fail(intervalMillis)
  const look = Effect.suspend(() => {
    const startedAt = client.now()
    return Stream.runFold(
      listHeld(client, pattern),
      (): Known => new Map(),
      (held, state) =>
        held.set(state.name, { state, ends: endsOf(state, startedAt), tookMillis: client.now() - startedAt })
    )
  })
  const looks = Stream.fromEffectSchedule(look, Schedule.spaced(intervalMillis))
  return Stream.mapAccum(
    looks,
    (): Known | undefined => undefined,
    (known, now) => [now, changesOf(known, now)]
  )
}

const changesOf = (before: Known | undefined, now: Known): ReadonlyArray<LockChange> => {
  if (before === undefined) return Array.from(now.values(), ({ state }) => ({ _tag: "Found", state }))
  const changes: Array<LockChange> = []
  for (const [name, seen] of now) {
    const _tag = changeOf(before.get(name), seen)
    if (_tag !== undefined) changes.push({ _tag, state: seen.state })
  }
  for (const [name, { state }] of before) {
    if (!now.has(name)) changes.push({ _tag: "Released", state })
  }
  return changes
}

/** Leases are whole milliseconds, and a reply takes a while: a lease that ends this much later has been renewed. */
const renewedByMillis = 250

const changeOf = (before: Seen | undefined, { ends, state }: Seen): LockChange["_tag"] | undefined => {
  if (before === undefined || ![...ends.keys()].some((id) => before.ends.has(id))) return "Acquired"
  if (textOf(before.state) !== textOf(state)) return "Changed"
  const isRenewed = [...ends].some(([id, end]) => {
    const earlier = before.ends.get(id)!
    // or a lease without end has been given one
    return (
      end > earlier + before.tookMillis + renewedByMillis || (earlier === Number.POSITIVE_INFINITY && end < earlier)
    )
  })
  return isRenewed ? "Renewed" : undefined
}

const endsOf = ({ holders, permits }: LockState, now: number): ReadonlyMap<string, number> => {
  const endOf = (left: Duration.Duration = Duration.infinity) => now + Duration.toMillis(left)
  return new Map([
    ...holders.map(({ mode, owner, remaining }) => [`${mode} ${owner}`, endOf(remaining)] as const),
    ...permits.map(({ id, remaining }) => [id, endOf(remaining)] as const)
  ])
}

/** Everything but the leases and how long somebody has held or waited. */
const textOf = ({ permits, ...state }: LockState): string =>
  // the permits whose leases end first come first: a renewal changes the order
  JSON.stringify({ ...state, permits: permits.map(({ id }) => id).sort() }, (key, value: unknown) =>
    key === "remaining" || key === "since" ? undefined : typeof value === "bigint" ? String(value) : value
  )
