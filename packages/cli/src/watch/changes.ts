/**
 * What happens to the held locks, through outages of Redis.
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import {
  type InvalidLockOptions,
  Lock,
  type LockChange,
  LockStoreError,
  type LockState,
  type RedisLock
} from "effect-redis-lock"

export interface Looking {
  /** Which names: a Redis glob. */
  readonly pattern: string
  /** The pause between two looks, which has been checked. */
  readonly interval: Duration.Duration
}

/** A lock that was held at a look. */
interface Seen {
  readonly state: LockState
  /** How many outages there had been before. */
  readonly outages: number
}

interface Event {
  readonly change: LockChange
  /** Of a release during an outage: what was seen before it. */
  readonly before?: Seen
}

/**
 * Changes without end. After a failure it looks again: what is held then is `Found` once more, and what is not is `Released`. `tell`
 * gets each failure, and `undefined` once Redis answers again. What Redis refuses before a whole look has succeeded it refuses at every
 * look: that fails, or is waited for as an outage is.
 */
export const changesOf = <R>(
  { interval, pattern }: Looking,
  ifRefused: "fails" | "waits",
  tell: (failure: LockStoreError | undefined) => Effect.Effect<void, never, R>
): Stream.Stream<LockChange, LockStoreError | InvalidLockOptions, R | RedisLock.RedisLock> =>
  Stream.suspend(() => {
    const seen = new Map<string, Seen>()
    let outages = -1
    let hasLooked = ifRefused === "waits"

    const isOutage = (failure: unknown): failure is LockStoreError =>
      failure instanceof LockStoreError && (hasLooked || failure.isTransient)

    const changes = Stream.map(Lock.watch(pattern, { interval }), (change): Event => ({ change }))
    // of a look that finds nothing, no change tells
    const firstLook = Stream.concat(
      Stream.drain(Lock.list(pattern)),
      Stream.fromEffectDrain(Effect.sync(() => (hasLooked = true)))
    )
    const looking = Stream.suspend(() => (hasLooked ? changes : Stream.merge(changes, firstLook)))

    const missing = () => Array.from(seen.values()).filter((before) => before.outages < outages)

    const releasedMeanwhile = Effect.suspend(() => Effect.filter(missing(), isFree, { concurrency: 16 })).pipe(
      Effect.map((all) => all.map((before): Event => ({ change: { _tag: "Released", state: before.state }, before }))),
      Effect.delay(interval)
    )
    const released = Stream.fromEffectRepeat(releasedMeanwhile).pipe(
      Stream.takeUntil((all) => missing().length === all.length),
      Stream.flattenIterable
    )

    const answering = Stream.concat(
      Stream.drain(Stream.take(Lock.list(pattern), 1)),
      Stream.fromEffectDrain(tell(undefined))
    )

    return Stream.suspend(() => {
      outages++
      return outages === 0
        ? looking
        : Stream.concat(answering, seen.size === 0 ? looking : Stream.merge(looking, released))
    }).pipe(
      Stream.tapError((failure) => (isOutage(failure) ? tell(failure) : Effect.void)),
      Stream.retry(Schedule.spaced(interval).pipe(Schedule.while(({ input }) => isOutage(input)))),
      // what has been found in between has not been released
      Stream.filter(({ before, change: { state } }) => before === undefined || seen.get(state.name) === before),
      Stream.map(({ change }) => {
        hasLooked = true
        const { _tag, state } = change
        if (_tag === "Released") seen.delete(state.name)
        else seen.set(state.name, { state, outages })
        return change
      })
    )
  })

const isFree = ({ state }: Seen): Effect.Effect<boolean, LockStoreError, RedisLock.RedisLock> =>
  Lock.inspect(state.name).pipe(
    Effect.map(({ held, holders }) => holders.length === 0 && held === 0),
    // a look finds no such names
    Effect.catchTag(["InvalidLockName", "InvalidLockOptions"], () => Effect.succeed(true))
  )
