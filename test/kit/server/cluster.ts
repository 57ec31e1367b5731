/**
 * What the tests on a cluster share: the cluster itself, and clients of the library over it.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { RedisCluster, type RedisServer } from "@effect-redis-lock/testing"
import { Context, Effect, Layer } from "effect"
import type { RedisLock } from "effect-redis-lock"
import { Cluster } from "ioredis"
import { clientOf, locksOver } from "../clients.ts"
import { eventually } from "../eventually.ts"
import { bare } from "./bareRedis.ts"

/** The cluster of a file's tests. */
export class TheCluster extends Context.Service<TheCluster, RedisCluster.RedisCluster>()("test/TheCluster") {
  static readonly layer = (options?: RedisCluster.Options) => Layer.effect(TheCluster, RedisCluster.start(options))
}

export interface ClusterClientOptions
  extends RedisLock.RedisLockOptions, Omit<IoRedis.IoRedisClusterOptions, "nodes" | "ioredis"> {}

/** A client of the library. */
export const clusterClient = (cluster: RedisCluster.RedisCluster, options: ClusterClientOptions = {}) =>
  clientOf(
    locksOver(
      IoRedis.layerCluster({
        nodes: cluster.urls,
        commandTimeout: options.commandTimeout,
        connectTimeout: options.connectTimeout ?? "1 minute",
        shardedPubSub: options.shardedPubSub
      }),
      options
    )
  )

/** An application's own client that is connected to all masters. */
export const applicationInUse = (cluster: RedisCluster.RedisCluster) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const application = new Cluster([...cluster.urls]).on("error", () => {})
      await application.exists("any")
      await Promise.all(application.nodes("master").map((node) => node.ping()))
      return application
    }),
    (application) => Effect.sync(() => application.disconnect())
  )

export const channelOf = (lock: string) => `redisson_lock__channel:{${lock}}`

/** Waits until so many connections are subscribed to the lock's channel at that node. */
export const shardSubscribers = Effect.fnUntraced(function* (
  node: RedisServer.RedisServer,
  lock: string,
  count: number
) {
  const redis = yield* bare(node)
  yield* eventually(
    `${count} connections are subscribed to the channel of lock "${lock}" on port ${node.port}`,
    () => redis.call("PUBSUB", "SHARDNUMSUB", channelOf(lock)) as Promise<ReadonlyArray<unknown>>,
    ([, subscribed]) => Number(subscribed) === count
  )
}, Effect.scoped)

/** The master that serves a lock, and another one. */
export const mastersOf = Effect.fnUntraced(function* (cluster: RedisCluster.RedisCluster, lock: string) {
  const slot = yield* cluster.slotOf(lock)
  const owner = yield* cluster.ownerOf(slot)
  // the slots after the last ones are the first
  const other = yield* cluster.ownerOf((slot + 8192) % 16384)
  return { slot, owner, other }
})
