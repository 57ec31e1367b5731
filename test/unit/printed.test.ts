/**
 * What an application sees of our values when it prints or logs them: what they are, and not the client behind them.
 */
import { assert } from "@effect/vitest"
import { CountDownLatch, Lock, MultiLock, PermitSemaphore, RedisLock, RedLock, Semaphore } from "effect-redis-lock"
import { inspect } from "node:util"
import { testInMemory } from "../kit/test.ts"

testInMemory(
  "Locks, semaphores, latches, holdings, permits and the service are printed in short, also as JSON",
  function* () {
    const service = yield* RedisLock.RedisLock
    const lock = Lock.provide(Lock.make("a"), service)
    const holding = yield* Lock.scoped(lock)
    const permit = yield* PermitSemaphore.scoped(PermitSemaphore.make("p", { permits: 1 }))
    const printed: ReadonlyArray<readonly [unknown, Record<string, unknown>]> = [
      [lock, { _id: "effect-redis-lock/Lock", name: "a" }],
      [MultiLock.make(["a", "b"]), { _id: "effect-redis-lock/Lock", name: "a, b" }],
      [RedLock.make([lock]), { _id: "effect-redis-lock/Lock", name: "a" }],
      [PermitSemaphore.provide("p" as never, service), { _id: "effect-redis-lock/PermitSemaphore", name: "p" }],
      [Semaphore.provide(Semaphore.make("s"), service), { _id: "effect-redis-lock/Semaphore", name: "s" }],
      [
        CountDownLatch.provide(CountDownLatch.make("l"), service),
        { _id: "effect-redis-lock/CountDownLatch", name: "l" }
      ],
      [holding, { _id: "effect-redis-lock/Holding", name: "a", owner: holding.owner, token: String(holding.token) }],
      [yield* Lock.scoped(MultiLock.make(["x", "y"])), { _id: "effect-redis-lock/Holding", name: "x, y" }],
      [permit, { _id: "effect-redis-lock/Permit", name: "p", ids: permit.ids[0]! }],
      [service, { _id: "effect-redis-lock/RedisLock", clientId: service.clientId }]
    ]
    for (const [value, expected] of printed) {
      const json = JSON.parse(JSON.stringify(value)) as Record<string, unknown>
      for (const [key, part] of Object.entries(expected)) assert.deepStrictEqual(json[key], part)
      assert.isBelow(JSON.stringify(value).length, 300)
      assert.include(inspect(value), String(expected["_id"]))
      assert.isBelow(inspect(value).length, 300)
    }
  }
)
