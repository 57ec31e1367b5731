/**
 * What sweeps share: the other client, which holds what the interrupted program waits for, and what must be left of it.
 */
import { assert, type Vitest } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { type LockStore, RedisLock } from "effect-redis-lock"
import type { LockClient } from "../../../packages/core/dist/internal/client/LockClient.js"
import { asAnotherClient } from "../../kit/anotherClient.ts"
import { eventually, until } from "../../kit/eventually.ts"
import { bare } from "../../kit/server/bareRedis.ts"
import { redisUrl } from "../../kit/server/redisUrl.ts"
import { testLive, testsOf } from "../../kit/test.ts"
import { forkHolder } from "../../kit/sections.ts"
import { sweep } from "./sweep.ts"
import { closingSubscriptions } from "../../kit/subscriptions.ts"

export const clients = closingSubscriptions(1)(RedisLock.layerFromStore({ fallbackInterval: 200 }))

/** Runs an effect in a client of its own. */
export const elsewhere = asAnotherClient(clients)

/** Tests of a store, each in a client of its own. */
export const testsElsewhere = (it: Pick<Vitest.MethodsNonLive<LockStore.LockStore>, "effect">) =>
  testsOf<LockStore.LockStore | RedisLock.RedisLock>((title, self, timeout) =>
    it.effect(title, (context) => elsewhere(self(context)), timeout)
  )

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

/** Nobody of this client asks, waits, holds or is watched. */
export const assertIdle = Effect.fnUntraced(function* (index: number) {
  const client = (yield* RedisLock.RedisLock) as unknown as LockClient
  // closing would wait for a request that is counted and was never sent; on a busy machine a rollback goes on in the background
  yield* until("nothing is under way", () => client.underWay === 0 && client.overdueRollbacks === 0)
  assert.strictEqual(client.lines.size, 0, `a waiter is left after ${index}`)
  assert.deepStrictEqual(client.leases.all, [], `a lease is kept after ${index}`)
  assert.strictEqual(client.watchdog.leases.length, 0, `a holding is left after ${index}`)
})

/** No channel of names that begin with this is left on the server, and no key but those that last: of these, each has `valueOfLasting`, if given. */
export const testLeavesNothing = (
  title: string,
  {
    isLasting = (key) => key.startsWith("redisson_lock_token:"),
    prefix,
    valueOfLasting
  }: {
    readonly prefix: string
    readonly isLasting?: (key: string) => boolean
    readonly valueOfLasting?: string
  }
) =>
  testLive(title, function* () {
    const observer = yield* bare({ url: redisUrl })
    const channels = () => observer.pubsub("CHANNELS", `*{${prefix}:*`) as Promise<Array<string>>
    yield* eventually("no channel is left", channels, (left) => left.length === 0)
    // the time of the last turn of clients without places lives a tenth of a second longer than the last place
    const lasting = yield* eventually(
      "no key is left but those that last",
      () => observer.keys(`*${prefix}:*`),
      (left) => left.every(isLasting),
      // a place that was left behind would live for a minute
      "20 seconds"
    )
    if (valueOfLasting === undefined) return
    for (const key of lasting) assert.strictEqual(yield* Effect.promise(() => observer.get(key)), valueOfLasting)
  })
