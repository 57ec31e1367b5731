/**
 * The part that this example is about: Redis in the place of SQL.
 */
import { RedisRunnerStorage } from "@effect-redis-lock/cluster"
import { IoRedis } from "@effect-redis-lock/ioredis"
import { NodeClusterSocket } from "@effect/platform-node"
import { Layer, Option } from "effect"
import { MessageStorage, RunnerAddress, ShardingConfig } from "effect/cluster"

const url = process.env["REDIS_URL"] ?? "redis://localhost:6379"

/** Without a port: of a client, which runs no entities itself. */
const sharding = (port: number | undefined) =>
  ({
    runnerAddress: port === undefined ? Option.none() : Option.some(RunnerAddress.make("localhost", port)),
    // How long the shards of a runner that dies belong to nobody. Short, as somebody is watching; the default is 35 seconds.
    shardLockExpiration: "3 seconds",
    refreshAssignmentsInterval: "500 millis"
  }) as const

const storage = (port: number | undefined) =>
  RedisRunnerStorage.layer({ prefix: process.env["CLUSTER_PREFIX"] ?? "example_cluster" }).pipe(
    Layer.provide(IoRedis.layer({ url })),
    Layer.provide(ShardingConfig.layer(sharding(port))),
    // messages go from runner to runner and are not kept; ClusterCron and workflows would need a storage of messages
    Layer.merge(MessageStorage.layerNoop)
  )

export const runnerLayer = (port: number) =>
  NodeClusterSocket.layer({ storage: "byo", shardingConfig: sharding(port) }).pipe(Layer.provide(storage(port)))

export const clientLayer = NodeClusterSocket.layer({
  clientOnly: true,
  storage: "byo",
  shardingConfig: sharding(undefined)
}).pipe(Layer.provide(storage(undefined)))
