/**
 * A lock is handed over while the master dies, or while nothing reaches the client that it is handed over to.
 */
import { assert } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import type { Redis } from "ioredis"
import { client } from "../kit/clients.ts"
import { eventually } from "../kit/eventually.ts"
import { loss } from "../kit/exits.ts"
import { enter } from "../kit/sections.ts"
import { bare } from "../kit/server/bareRedis.ts"
import { behindProxy } from "../kit/server/onServer.ts"
import { placesTaken, takesPlace } from "../kit/server/places.ts"
import { testLive } from "../kit/test.ts"

const lease = 3000

/** All keys as they are now, for a server that takes over without what happens from now on. */
const copyOf = (redis: Redis) =>
  Effect.promise(async () => {
    const keys = await redis.keys("*")
    return Promise.all(
      keys.map(async (key) => ({
        key,
        left: Math.max(0, await redis.pttl(key)),
        value: await redis.dumpBuffer(key)
      }))
    )
  })

testLive(
  "A hand-over that the master's successor knows nothing of is taken from its holder before anybody else gets the lock",
  function* () {
    const { proxy, redis, server } = yield* behindProxy()
    const options = { watchdogLeaseTime: lease } as const
    const process = yield* Scope.make()
    const first = yield* enter(yield* Scope.provide(client(proxy, options), process), "report")
    const second = yield* takesPlace(yield* client(proxy, options), redis, 0)
    const third = yield* takesPlace(yield* client(proxy, options), redis, 1)
    const before = yield* copyOf(redis)
    yield* first.finish
    const handedOver = yield* second.entered
    assert.isTrue(handedOver.holding.token > first.holding.token)
    // so that nobody repeats its release
    yield* Scope.close(process, Exit.void)

    yield* proxy.cut
    yield* server.restart
    const successor = yield* bare(server)
    for (const { key, left, value } of before) {
      yield* Effect.promise(() => successor.restore(key, left, value))
    }
    const startedAt = performance.now()
    const left = yield* Effect.promise(() => successor.pttl("report"))
    yield* proxy.restore

    // the successor believes that the first still holds it
    const next = yield* third.entered
    const waited = performance.now() - startedAt
    // a timer that is due later than the end of the second's lease, should this process have been held up just then
    yield* Effect.sleep(1)
    assert.isTrue(handedOver.wasInterrupted())
    loss(yield* handedOver.exit)
    assert.isFalse(yield* handedOver.holding.isHeld)
    // both are rounded to milliseconds
    assert.isAtLeast(waited + 1, left)
    yield* next.finish
  }
)

testLive(
  "A client whose connections break while a lock is handed over to it finds its lock when they are back",
  function* () {
    const { proxy, redis, server } = yield* behindProxy()
    // nobody asks by the clock
    const options = { watchdogLeaseTime: "5 minutes", fallbackInterval: "5 minutes" } as const
    const first = yield* enter(yield* client(server, options), "report")
    const second = yield* takesPlace(yield* client(proxy, options), redis, 0)
    yield* proxy.stall
    yield* first.finish
    yield* eventually(
      "the lock is handed over",
      () => placesTaken(redis),
      (taken) => taken === 0
    )
    yield* proxy.dropConnections
    yield* proxy.resume
    const next = yield* second.entered
    assert.isTrue(next.holding.token > first.holding.token)
    yield* next.finish
  }
)
