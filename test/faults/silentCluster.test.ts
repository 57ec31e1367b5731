import { RedisCluster } from "@effect-redis-lock/testing"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { Lock } from "effect-redis-lock"
import { storeError } from "../kit/exits.ts"
import { freshName } from "../kit/names.ts"
import { queueUp } from "../kit/sections.ts"
import { clusterClient } from "../kit/server/cluster.ts"

it.live("While no node of a cluster answers, requests fail as transient, and a waiter waits on", () =>
  Effect.gen(function* () {
    const cluster = yield* RedisCluster.start()
    const client = yield* clusterClient(cluster, { commandTimeout: "300 millis" })
    const lock = freshName()
    const section = Effect.succeed("done").pipe(Lock.withLock(lock, { waitTime: 0 }), client.run)
    assert.strictEqual(yield* section, "done")
    yield* Effect.forEach(cluster.nodes, (node) => node.pause)
    const waiter = yield* queueUp(client, lock)
    for (let attempt = 0; attempt < 12; attempt++) {
      const error = storeError(yield* Effect.exit(section))
      assert.isTrue(error.isTransient, error.message)
    }
    yield* Effect.forEach(cluster.nodes, (node) => node.resume)
    // a waiter has outlived it
    const next = yield* waiter.entered
    yield* next.finish
  }).pipe(Effect.scoped)
)
