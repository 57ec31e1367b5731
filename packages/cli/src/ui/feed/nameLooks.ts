/**
 * One look at a name for all pages that show it.
 */
import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as RcMap from "effect/RcMap"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { Lock, type LockState, type RedisLock } from "effect-redis-lock"
import { jsonOf } from "../../names/nameState.ts"
import { waiterKey } from "../../watch/heldLock.ts"
import type { Event } from "../events.ts"
import type { Inspected } from "../page/connection/wire.ts"
import type { LockFeed } from "./LockFeed.ts"

export interface Looking {
  readonly feed: LockFeed
  /** Between two looks. */
  readonly interval: Duration.Duration
  /** Whether the page may free what it shows. */
  readonly mayRelease: boolean
}

/** By name, what there is to tell of it: a stream that ends for a name that no lock can have. */
export type NameLooks = RcMap.RcMap<string, Stream.Stream<Event>>

export const makeNameLooks = (looking: Looking): Effect.Effect<NameLooks, never, RedisLock.RedisLock | Scope.Scope> =>
  RcMap.make({
    // who comes later is told at once what was seen last
    lookup: (name: string) =>
      Effect.flatMap(Effect.context<RedisLock.RedisLock>(), (context) =>
        Stream.share(Stream.provideContext(looks(name, looking), context), {
          capacity: 1,
          replay: 1,
          strategy: "sliding"
        })
      )
  })

/** Other than the table, this also shows semaphores without leases and latches. */
const looks = (
  name: string,
  { feed, interval, mayRelease }: Looking
): Stream.Stream<Event, never, RedisLock.RedisLock> => {
  const look = Lock.inspect(name).pipe(
    Effect.flatMap((state) =>
      Effect.map(Clock.currentTimeMillis, (now): Event => {
        const held = feed.heldLock(name)
        const data = {
          now,
          state: shownState(feed, state, now),
          holds: feed.history.of(name),
          lease: held?.lease ?? 0,
          renewedAt: Object.fromEntries(held?.renewedAt ?? []),
          mayRelease
        }
        return { event: "lock", data }
      })
    ),
    Effect.catchTag("InvalidLockName", ({ message }) => Effect.succeed<Event>({ event: "refused", data: { message } })),
    Effect.catch(({ message }) => Effect.succeed<Event>({ event: "trouble", data: { message } }))
  )
  return Stream.fromEffectSchedule(look, Schedule.spaced(interval))
}

/** With the labels and the waits that Redis does not tell, but earlier looks have shown. */
const shownState = (feed: LockFeed, state: LockState, now: number): Inspected => {
  const shown = jsonOf(feed.labels.labelled(state))
  const waits = feed.heldLock(state.name)?.waits
  return {
    ...shown,
    waiters: shown.waiters.map((waiter) => {
      const wait = waits?.get(waiterKey(waiter))
      return waiter.waitedMillis !== null || wait === undefined
        ? waiter
        : { ...waiter, waitedMillis: Math.max(0, now - wait.since), isOlder: wait.isOlder }
    })
  }
}

/** What one page is told of a name. */
export const newsOf = (all: NameLooks, name: string): Stream.Stream<Event> =>
  Stream.takeUntil(Stream.unwrap(RcMap.get(all, name)), ({ event }) => event === "refused")
