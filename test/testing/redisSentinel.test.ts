import { RedisSentinel } from "@effect-redis-lock/testing"
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { eventually } from "../kit/eventually.ts"
import { bare } from "../kit/server/bareRedis.ts"
import { testLive } from "../kit/test.ts"

testLive("Test sentinels name the master, and another one after a failover", function* () {
  const redis = yield* RedisSentinel.start({ sentinels: 3 })
  assert.lengthOf(redis.sentinels, 3)
  const [first, second] = redis.servers
  assert.strictEqual(yield* redis.master, first)
  yield* redis.failover
  assert.strictEqual(yield* redis.master, second)
})

testLive(
  "The sentinel with the newest configuration is believed, where the first still names the former master",
  function* () {
    const redis = yield* RedisSentinel.start({ sentinels: 3 })
    const [first, second] = redis.servers
    yield* redis.failover
    const behind = yield* bare(redis.sentinels[0]!)
    // another sentinel may correct it at any moment: what it still names afterwards, it named before
    const { master } = yield* eventually(
      "a look while the first sentinel is behind",
      Effect.gen(function* () {
        yield* Effect.promise(async () => {
          await behind.call("SENTINEL", "REMOVE", redis.name)
          await behind.call("SENTINEL", "MONITOR", redis.name, first!.host, first!.port, 2)
        })
        const master = yield* redis.master
        const named = yield* Effect.promise(() => behind.call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", redis.name))
        return { master, named: named as ReadonlyArray<string> }
      }),
      ({ named: [host, port] }) => host === first!.host && port === `${first!.port}`
    )
    assert.strictEqual(master, second)
  }
)
