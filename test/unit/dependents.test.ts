import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { RedisLock } from "effect-redis-lock"
import type { LockClient } from "../../packages/core/dist/internal/client/LockClient.js"
import { Lease } from "../../packages/core/dist/internal/hold/Lease.js"
import { reentrant } from "../../packages/core/dist/internal/kinds/kinds.js"
import { LockKeys } from "../../packages/core/dist/internal/store/keys.js"
import { testInMemory } from "../kit/test.ts"

testInMemory(
  "A section that learns of a loss when it begins is told once, and counts until it has ended",
  function* () {
    const client = (yield* RedisLock.RedisLock) as unknown as LockClient
    const now = client.now()
    const subject = { client, kind: reentrant, name: "a", keys: new LockKeys("a") }
    const lease = Lease.granted(subject, { owner: "x:1", token: 1, sentAt: now, leaseMillis: 30_000 }, now)!
    lease.lose("NotOwner")
    let told = 0
    const withdraw = lease.onLost(() => told++)
    assert.strictEqual(told, 0, "not on the caller's stack")
    lease.lose("NotOwner")
    yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
    assert.strictEqual(told, 1)
    assert.isFalse(lease.isUnused)
    withdraw()
    assert.isTrue(lease.isUnused)
  }
)
