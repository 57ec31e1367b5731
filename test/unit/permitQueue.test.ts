import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { RedisLock } from "effect-redis-lock"
import type { LockClient } from "../../packages/core/dist/internal/client/LockClient.js"

it.effect("A waiter for permits whose wait time ends before it sleeps does not sleep", () =>
  Effect.gen(function* () {
    const client = (yield* RedisLock.RedisLock) as unknown as LockClient
    const line = client.permitQueues.open("pool")
    const first = line.join(1)
    const second = line.join(1)
    line.signal()
    assert.isTrue(first.hasTurn)
    second.ring()
    yield* second.awaitTurn
    assert.isFalse(second.hasTurn)
    for (const waiter of [first, second]) client.permitQueues.leave("pool", line, waiter)
    assert.strictEqual(client.permitQueues.size, 0)
  }).pipe(Effect.provide(RedisLock.layerMemory))
)
