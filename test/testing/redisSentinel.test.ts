import { RedisSentinel } from "@effect-redis-lock/testing"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"

describe("sentinels of our own", () => {
  it.live("Test sentinels name the master, and another one after a failover", () =>
    Effect.gen(function* () {
      const redis = yield* RedisSentinel.start({ sentinels: 3 })
      assert.lengthOf(redis.sentinels, 3)
      const [first, second] = redis.servers
      assert.strictEqual(yield* redis.master, first)
      yield* redis.failover
      assert.strictEqual(yield* redis.master, second)
    }).pipe(Effect.scoped)
  )
})
