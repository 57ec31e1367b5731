/**
 * What a section under permits costs, however many clients contend for them, and that nobody is forgotten who does not ask by the clock.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, type Scope } from "effect"
import { LockStore, PermitSemaphore, Semaphore } from "effect-redis-lock"
import { semaphores } from "../contract/suite/permitPlaces.ts"
import { client } from "../kit/clients.ts"
import { until } from "../kit/eventually.ts"
import { bare } from "../kit/server/bareRedis.ts"
import { scriptsRun } from "../kit/server/commandsOf.ts"
import { onServer } from "../kit/server/onServer.ts"
import { redisUrl } from "../kit/server/redisUrl.ts"
import { clientId, listenTo } from "../kit/storeOperations.ts"
import { onRedis } from "../kit/stores.ts"
import { testLive as test } from "../kit/test.ts"

// nobody asks by the clock
const patient = { fallbackInterval: "1 hour", watchdogLeaseTime: "1 hour" } as const

const kinds = {
  Semaphore: (permits: number, wanted: number) => {
    const semaphore = Semaphore.make("pool", { permits })
    return Semaphore.withPermits(Effect.sleep(2), semaphore, wanted)
  },
  PermitSemaphore: (permits: number, wanted: number) => {
    const semaphore = PermitSemaphore.make("pool", { permits })
    return PermitSemaphore.withPermits(Effect.sleep(2), semaphore, wanted)
  }
}

for (const [kind, section] of Object.entries(kinds)) {
  describe(`a ${kind} for which many clients contend`, () => {
    for (const [count, permits, wanted] of [
      [2, 1, 1],
      [24, 1, 1],
      [24, 4, 1],
      [24, 4, 2]
    ] as const) {
      test(`${count} clients that want ${wanted} of ${permits} permits need about three scripts a section`, function* () {
        const { redis, server } = yield* onServer()
        const each = 10
        const clients = yield* Effect.forEach(Array.from({ length: count }), () => client(server, patient))
        const all = (times: number) =>
          Effect.forEach(clients, ({ run }) => run(Effect.repeat(section(permits, wanted), { times: times - 1 })), {
            concurrency: "unbounded",
            discard: true
          })
        // all have subscribed after these
        yield* all(2)
        yield* Effect.promise(() => redis.config("RESETSTAT"))
        yield* all(each)
        const scripts = (yield* scriptsRun(redis)) / (count * each)
        if (process.env["PRINT"] !== undefined) console.log(kind, count, permits, wanted, scripts)
        assert.isBelow(scripts, 3.6)
        // the counter stays
        yield* Effect.promise(() => redis.flushall())
      })
    }
  })
}

describe("what clients want was evicted without their places", () => {
  const [waits, others] = ["a", "b"].map(clientId) as [string, string]
  for (const [kind, make] of Object.entries(semaphores)) {
    /** A client waits, and its client listens; then only its place is left. */
    const test = (
      title: string,
      body: (
        semaphore: ReturnType<typeof make>,
        listen: (suffix: string) => Effect.Effect<ReadonlyArray<string>, never, Scope.Scope>,
        evict: Effect.Effect<unknown>
      ) => Effect.Effect<unknown, unknown, Scope.Scope>
    ) =>
      it.live(`${kind}: it is noted for a minute at most ${title}`, () =>
        Effect.gen(function* () {
          const store = yield* LockStore.LockStore
          const redis = yield* bare({ url: redisUrl })
          const semaphore = make(store, 1)
          const wants = `effect_redis_lock_permit_wants:{${semaphore.key}}`
          yield* semaphore.ask("holder")
          yield* semaphore.ask(waits)
          yield* body(
            semaphore,
            (suffix) => Effect.map(listenTo(store, semaphore.channel + suffix), ({ heard }) => heard),
            Effect.promise(() => redis.del(wants))
          )
          const left = yield* Effect.promise(() => redis.pttl(wants))
          assert.isAbove(left, 0)
          assert.isAtMost(left, 60_000)
          yield* Effect.promise(() => redis.del(semaphore.key))
        }).pipe(Effect.scoped, Effect.provide(onRedis))
      )

    test("when the client is told", ({ add }, listen, evict) =>
      Effect.gen(function* () {
        yield* listen(":ours")
        const told = yield* listen(`:${waits}`)
        yield* evict
        yield* add(1)
        yield* until("the client is told", () => told.length > 0)
      }))

    test("when it is the turn of clients that take no places", ({ add }, listen, evict) =>
      Effect.gen(function* () {
        yield* listen("")
        yield* evict
        yield* add(1)
      }))

    test("when a permit is kept for the client", ({ add, ask, giveBack }, listen, evict) =>
      Effect.gen(function* () {
        yield* listen(":ours")
        yield* listen(`:${waits}`)
        yield* add(1)
        const isKept = Effect.gen(function* () {
          yield* evict
          const { grant, isGranted } = yield* ask(others, { ifDenied: 0 })
          if (isGranted) yield* giveBack(grant)
          return !isGranted
        })
        yield* until("a permit is kept", isKept)
      }))
  }
})
