/**
 * The other client of a sweep: it holds what the interrupted program waits for.
 */
import { assert } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { RedisLock } from "effect-redis-lock"
import { asAnotherClient } from "../../kit/anotherClient.ts"
import { forkHolder } from "../../kit/sections.ts"
import { sweep } from "./sweep.ts"
import { closingSubscriptions } from "../../kit/subscriptions.ts"

export const clients = closingSubscriptions(1)(RedisLock.layerFromStore({ fallbackInterval: 200 }))

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

/**
 * Sweeps waiters whose holder lets go somewhere in the middle of the wait, elsewhere each time. `hold` is run before each
 * interruption, `check` after it, when the holder has let go.
 */
export const sweepHandOver = Effect.fnUntraced(function* <A, E, R, E2, R2, E3, R3>(options: {
  readonly hold: Effect.Effect<Effect.Success<ReturnType<typeof holdElsewhere>>, E2, R2>
  readonly waiters: ReadonlyArray<Effect.Effect<A, E, R>>
  readonly check: (index: number) => Effect.Effect<void, E3, R3>
}) {
  let holder = yield* options.hold
  let index = 0
  const letGo = Effect.suspend(() => Effect.andThen(holder.letGo, Fiber.join(holder.fiber)))
  const interruptions = yield* sweep({
    program: Effect.all(
      [...options.waiters, Effect.suspend(() => Effect.andThen(repeatYield(index % 40), holder.letGo))],
      { concurrency: "unbounded" }
    ),
    check: (at) =>
      Effect.gen(function* () {
        index = at
        yield* letGo
        yield* options.check(at)
        holder = yield* options.hold
      })
  })
  yield* letGo
  assert.isAbove(interruptions, 50)
})
