import { RedisCluster, type RedisServer } from "@effect-redis-lock/testing"
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { Redis } from "ioredis"
import { eventually } from "../kit/eventually.ts"
import { testLive } from "../kit/test.ts"

const ask = <A>(node: RedisServer.RedisServer, f: (redis: Redis) => Promise<A>) =>
  Effect.acquireUseRelease(
    Effect.sync(() => new Redis(node.url)),
    (redis) => Effect.promise(() => f(redis)),
    (redis) => Effect.sync(() => redis.disconnect())
  )

testLive("A test cluster serves all slots, and moves one with its keys", function* () {
  const cluster = yield* RedisCluster.start()
  assert.lengthOf(cluster.nodes, 3)
  const slot = yield* cluster.slotOf("orders")
  const from = yield* cluster.ownerOf(slot)
  yield* ask(from, (redis) => redis.set("orders", "7"))
  const to = cluster.nodes.find((node) => node !== from)!
  const finish = yield* cluster.beginMoveSlot(slot, to)
  const asked = yield* ask(from, (redis) => redis.get("orders").catch((error: Error) => error.message))
  assert.strictEqual(asked, `ASK ${slot} 127.0.0.1:${to.port}`)
  yield* finish
  assert.strictEqual(yield* cluster.ownerOf(slot), to)
  assert.strictEqual(yield* ask(to, (redis) => redis.get("orders")), "7")
})

testLive("A test cluster lets a replica take over, and takes the killed master back as its replica", function* () {
  const cluster = yield* RedisCluster.start({ replicas: 1, nodeTimeout: "1 second" })
  assert.lengthOf(cluster.nodes, 6)
  const slot = yield* cluster.slotOf("orders")
  const master = yield* cluster.ownerOf(slot)
  yield* master.kill
  yield* eventually("another node owns the slot", cluster.ownerOf(slot), (owner) => owner !== master)
  yield* master.restart
  yield* cluster.ok
  let role: unknown
  while (role !== "slave") role = yield* ask(master, async (redis) => ((await redis.role()) as Array<unknown>)[0])
})
