/**
 * The other client of a sweep: it holds what the interrupted program waits for.
 */
import { Effect } from "effect"
import { RedisLock } from "effect-redis-lock"
import { asAnotherClient } from "../../kit/anotherClient.ts"
import { forkHolder } from "../../kit/sections.ts"

export const clients = RedisLock.layerFromStore({ subscriptionIdleTime: 1, fallbackInterval: 200 })

/** Runs an effect in a client of its own. */
export const elsewhere = asAnotherClient(clients)

/** Holds a section in another client until let go. */
export const holdElsewhere = Effect.fnUntraced(function* <A, E>(
  around: (body: Effect.Effect<void>) => Effect.Effect<A, E, RedisLock.RedisLock>
) {
  const holder = yield* forkHolder((stay: (acquired: void) => Effect.Effect<void>) => elsewhere(around(stay())))
  yield* holder.entered
  return holder
})

/** Lets the other fibers run so many times. */
export const repeatYield = (times: number): Effect.Effect<void> =>
  times === 0
    ? Effect.void
    : Effect.andThen(
        Effect.yieldNow,
        Effect.suspend(() => repeatYield(times - 1))
      )
