import { IoRedis } from "@effect-redis-lock/ioredis"
import { RedisSentinel, TcpProxy } from "@effect-redis-lock/testing"
import { assert, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import type { RedisLock } from "effect-redis-lock"
import { pathOfThisRun } from "../kit/commandPath.ts"
import { clientOf, locksOver } from "../kit/clients.ts"
import { eventually, soon } from "../kit/eventually.ts"
import { enter, queueUp } from "../kit/sections.ts"
import { bare } from "../kit/server/bareRedis.ts"
import { lockKey, subscribers } from "../kit/server/conditions.ts"
import { testLive } from "../kit/test.ts"

const sentinelClient = (redis: RedisSentinel.RedisSentinel, options?: RedisLock.RedisLockOptions) =>
  clientOf(
    locksOver(
      IoRedis.layerSentinel({
        sentinels: redis.sentinels.map(({ url }) => url),
        name: redis.name,
        commandTimeout: "1 second"
      }),
      options
    )
  )

testLive(
  "The master that sentinels name is followed through a failover, by commands and by subscriptions",
  function* () {
    const redis = yield* RedisSentinel.start()
    const options = { fallbackInterval: "1 hour", watchdogLeaseTime: "1 minute" } as const
    const before = yield* redis.master
    const holder = yield* enter(yield* sentinelClient(redis, options), "report")
    const waiter = yield* queueUp(yield* sentinelClient(redis, options), "report", { persistent: true })
    yield* subscribers(yield* bare(before), "report", 1)
    yield* redis.failover
    const after = yield* redis.master
    assert.notStrictEqual(after, before)
    yield* subscribers(yield* bare(after), "report", 1)
    yield* holder.end
    const next = yield* waiter.entered
    yield* next.finish
  }
)

// on the plain path nobody listens for failovers
it.live.skipIf(pathOfThisRun === "plain")("The master that sentinels name may change while a client asks for it", () =>
  Effect.gen(function* () {
    const redis = yield* RedisSentinel.start()
    const sentinel = redis.sentinels[0]!
    const proxy = yield* TcpProxy.make({ target: sentinel })
    // the answer comes by the proxy, the news of the failover by the direct way
    const client = yield* clientOf(
      locksOver(IoRedis.layerSentinel({ sentinels: [proxy.url, sentinel.url], commandTimeout: "30 seconds" }))
    )
    const sentinelItself = yield* bare(sentinel)
    yield* eventually(
      "the client listens to the sentinel both ways",
      async () => (await sentinelItself.client("LIST")) as string,
      (clients) => clients.match(/ sub=1 /g)?.length === 2
    )
    const before = yield* redis.master
    const asked = yield* proxy.stallRepliesAfter("get-master-addr-by-name")
    const former = yield* bare(before)
    yield* Effect.promise(() => former.call("CLIENT", "KILL", "TYPE", "normal"))
    yield* soon("the client asks for the master", asked)
    yield* redis.failover
    yield* proxy.resume
    const section = yield* enter(client, "report", { persistent: true })
    const after = yield* redis.master
    assert.notStrictEqual(after, before)
    yield* lockKey(yield* bare(after), "report", "there")
    yield* section.finish
  }).pipe(Effect.scoped)
)

testLive("The Sentinel layer fails if no sentinel answers", function* () {
  const error = yield* Effect.flip(Layer.build(IoRedis.layerSentinel({ sentinels: ["redis://127.0.0.1:1"] })))
  assert.deepInclude(error, { _tag: "RedisDriverError", reason: "ConnectionRefused" })
})
