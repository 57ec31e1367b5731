/**
 * Grants that replicas acknowledge, on a cluster: each master has replicas of its own.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { RedisCluster, type RedisServer } from "@effect-redis-lock/testing"
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { Lock, LockNotReplicated } from "effect-redis-lock"
import { clientOf, locksOver } from "../kit/clients.ts"
import { eventually, soon } from "../kit/eventually.ts"
import { storeError } from "../kit/exits.ts"
import { enter } from "../kit/sections.ts"
import { applicationInUse, clusterClient } from "../kit/server/cluster.ts"
import { bare } from "../kit/server/bareRedis.ts"
import { testLive } from "../kit/test.ts"

const acknowledge = { replicas: "all", within: "2 minutes" } as const
const soonGivenUp = { replicas: "all", within: "100 millis" } as const

/** As many as each master has several of. */
const names = Array.from({ length: 12 }, (_, i) => `lock ${i}`)

/** The replica of a master. */
const replicaOf = Effect.fnUntraced(function* (cluster: RedisCluster.RedisCluster, master: RedisServer.RedisServer) {
  for (const node of cluster.nodes) {
    const redis = yield* bare(node)
    const [role, , port] = (yield* Effect.promise(() => redis.call("ROLE"))) as ReadonlyArray<unknown>
    if (role === "slave" && port === master.port) return node
  }
  return assert.fail(`the master on port ${master.port} has no replica`)
})

for (const [over, clientOn] of [
  ["", (cluster: RedisCluster.RedisCluster) => clusterClient(cluster, { acknowledge, commandTimeout: "1 minute" })],
  [
    " over an application's own Cluster that is in use already",
    Effect.fnUntraced(function* (cluster: RedisCluster.RedisCluster) {
      const application = yield* applicationInUse(cluster)
      return yield* clientOf(
        locksOver(IoRedis.fromClient(application, { warnings: [], commandTimeout: "1 minute" }), { acknowledge })
      )
    })
  ]
] as const) {
  testLive(
    `On a cluster a grant${over} is on its own master's replica before the section begins, and other masters' replicas do not count`,
    function* () {
      const cluster = yield* RedisCluster.start({ replicas: 1 })
      const { run } = yield* clientOn(cluster)
      const replicas = new Map<RedisServer.RedisServer, RedisServer.RedisServer>()
      const owners = new Map<string, RedisServer.RedisServer>()
      for (const name of names) {
        const owner = yield* cluster.ownerOf(yield* cluster.slotOf(name))
        owners.set(name, owner)
        if (!replicas.has(owner)) replicas.set(owner, yield* replicaOf(cluster, owner))
      }
      assert.strictEqual(replicas.size, 3)
      yield* run(
        Effect.forEach(
          names,
          Effect.fnUntraced(function* (name) {
            const replica = yield* bare(replicas.get(owners.get(name)!)!)
            yield* Effect.promise(async () => {
              await replica.call("READONLY")
              assert.strictEqual(await replica.exists(name), 1, name)
            }).pipe(Lock.withLock(name, { waitTime: 0 }))
          }, Effect.scoped),
          { concurrency: "unbounded", discard: true }
        )
      )
      const [stopped, replica] = [...replicas][0]!
      yield* replica.pause
      for (const name of names) {
        const asked = yield* Effect.exit(run(Lock.withLock(Effect.void, name, { acknowledge: soonGivenUp })))
        assert.strictEqual(asked._tag, owners.get(name) === stopped ? "Failure" : "Success", name)
        if (asked._tag === "Success") continue
        const { cause } = storeError(asked)
        assert.instanceOf(cause, LockNotReplicated)
        assert.include(cause, { lock: name, wanted: 1, acknowledged: 0 })
      }
      yield* replica.resume
      for (const name of names) yield* run(Lock.withLock(Effect.void, name))
    }
  )
}

testLive(
  "On a cluster a lock that the replica acknowledged is still held when that has taken over, and its slot may move",
  function* () {
    const cluster = yield* RedisCluster.start({ replicas: 1, nodeTimeout: "1 second" })
    const options = { acknowledge, watchdogLeaseTime: "1 minute", commandTimeout: "1 second" } as const
    const holder = yield* clusterClient(cluster, options)
    const rival = yield* clusterClient(cluster, options)
    const slot = yield* cluster.slotOf("a")
    const section = yield* enter(holder, "a")
    const before = yield* cluster.ownerOf(slot)
    const other = yield* cluster.ownerOf((slot + 8192) % 16384)
    yield* before.kill
    const after = yield* eventually("the replica has taken over", cluster.ownerOf(slot), (owner) => owner !== before)
    assert.strictEqual(
      yield* Effect.scoped(Effect.flatMap(bare(after), (redis) => Effect.promise(() => redis.exists("a")))),
      1
    )
    // it has no replica now, which the cluster's next one must be
    yield* before.restart
    yield* cluster.ok
    assert.isTrue(
      yield* eventually(
        "the cluster answers",
        Effect.orElseSucceed(rival.run(Lock.isLocked("a")), () => false),
        Boolean
      )
    )
    assert.isTrue(yield* section.holding.isHeld)
    yield* section.finish
    yield* cluster.moveSlot(slot, other)
    yield* soon(
      "the lock is acquired where it has moved",
      Effect.retry(rival.run(Lock.withLock(Effect.void, "a")), {
        while: (error) => error._tag === "LockStoreError" && error.isTransient
      })
    )
  }
)
