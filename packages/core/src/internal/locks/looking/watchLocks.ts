/**
 * Held locks as a Stream of changes: looked at again and again, as Redis tells of no release of somebody else's.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { InvalidLockOptions, LockStoreError } from "../../../LockError.ts"
import type { LockChange, NameState } from "../../../LockState.ts"
import type { LockClient } from "../../client/LockClient.ts"
import { parsePeriod } from "../../options/durations.ts"
import { lockKeysIn, stateAt } from "./held.ts"

/** A name as it was when it was last looked at, on the monotonic clock. */
interface Seen {
  readonly state: NameState
  readonly at: number
}

type Known = Map<string, Seen>

/** Leases are whole milliseconds, and a reply takes a while: a lease that ends this much later has been renewed. */
const renewedByMillis = 250

export const watchLocks = (
  client: LockClient,
  pattern: string,
  interval: Duration.Input
): Stream.Stream<LockChange, LockStoreError | InvalidLockOptions> => {
  const intervalMillis = parsePeriod("interval", interval)
  if (typeof intervalMillis !== "number") return Stream.fail(intervalMillis)
  return Stream.suspend(() => {
    let known: Known | undefined
    const look = Effect.map(heldNow(client, pattern), (now) => {
      const changes = known === undefined ? found(now) : changesOf(known, now)
      known = now
      return changes
    })
    const again = Effect.delay(look, intervalMillis)
    return Stream.flattenIterable(Stream.concat(Stream.fromEffect(look), Stream.fromEffectRepeat(again)))
  })
}

/** All held locks whose names match. */
const heldNow = (client: LockClient, pattern: string): Effect.Effect<Known, LockStoreError> =>
  Stream.runFold(
    Stream.mapEffect(lockKeysIn(client, pattern), (key) => stateAt(client, key), { concurrency: 16 }),
    (): Known => new Map(),
    (held, state) => {
      if (state.holders.length > 0) held.set(state.name, { state, at: client.now() })
      return held
    }
  )

const found = (now: Known): ReadonlyArray<LockChange> =>
  Array.from(now.values(), ({ state }) => ({ _tag: "Found", state }))

const changesOf = (before: Known, now: Known): ReadonlyArray<LockChange> => {
  const changes: Array<LockChange> = []
  for (const [name, seen] of now) {
    const change = changeOf(before.get(name), seen)
    if (change !== undefined) changes.push(change)
  }
  for (const [name, { state }] of before) {
    if (!now.has(name)) changes.push({ _tag: "Released", state })
  }
  return changes
}

const changeOf = (before: Seen | undefined, { at, state }: Seen): LockChange | undefined => {
  if (before === undefined || isOtherGrant(before.state, state)) return { _tag: "Acquired", state }
  if (text(before.state) !== text(state)) return { _tag: "Changed", state }
  return state.holders.some((holder, i) => {
    const earlier = before.state.holders[i]!.remaining
    if (holder.remaining === undefined || earlier === undefined) return holder.remaining !== earlier
    const expected = Duration.toMillis(earlier) - (at - before.at)
    return Duration.toMillis(holder.remaining) > expected + renewedByMillis
  })
    ? { _tag: "Renewed", state }
    : undefined
}

/** None of the holders of before is among those of now. */
const isOtherGrant = (before: NameState, now: NameState): boolean =>
  !now.holders.some(({ owner }) => before.holders.some((other) => other.owner === owner))

/** Everything but the leases. */
const text = ({ holders, kind, token, waiters, waiting }: NameState): string =>
  JSON.stringify([
    kind,
    String(token),
    waiting,
    waiters.map(({ owner }) => owner),
    holders.map(({ holdCount, label, mode, owner }) => [owner, mode, holdCount, label])
  ])
