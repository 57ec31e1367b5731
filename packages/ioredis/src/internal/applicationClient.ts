import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type * as Duration from "effect/Duration"
import type { RedisDriver } from "effect-redis-lock"
import { Cluster, type Redis, type RedisOptions } from "ioredis"
import { makeClusterDriver, usesShardedPubSub } from "./clusterDriver.ts"
import { ClusterNodes } from "./connection/ClusterNodes.ts"
import type { CommandPath } from "./command/CommandPath.ts"
import { CommandWriter } from "./command/CommandWriter.ts"
import { connect, connectCluster, within } from "./connection/connecting.ts"
import { Connection } from "./connection/Connection.ts"
import { ConnectionLog } from "./connection/ConnectionLog.ts"
import { failureOf } from "./command/failure.ts"
import { makeServerDriver } from "./serverDriver.ts"
import type { Warnings } from "./serverWarnings.ts"
import { reconnectsAlways } from "./options/options.ts"
import { awaitsHandshake } from "./options/settings.ts"

interface Options {
  readonly path: CommandPath
  readonly commandTimeout: Duration.Duration
  readonly warnings: Warnings
  readonly shardedPubSub: "auto" | "on" | "off" | undefined
}

/** The driver over a client that belongs to the application, which closes it. */
export const makeApplicationDriver = (
  client: Redis | Cluster,
  options: Options
): Effect.Effect<RedisDriver.RedisDriver["Service"], RedisDriver.RedisDriverError, Scope.Scope> =>
  Effect.gen(function* () {
    const settings = client instanceof Cluster ? settingsOfNodes(client) : client.options
    const unsuitable = unsuitableOption(settings)
    if (unsuitable !== undefined) {
      return yield* failureOf(new Error(`locks cannot use an ioredis client with the option ${unsuitable}`))
    }
    return yield* client instanceof Cluster ? overCluster(client, settings, options) : overServer(client, options)
  })

const settingsOfNodes = ({ options }: Cluster): RedisOptions => ({
  ...options.redisOptions,
  ...(options.keyPrefix ? { keyPrefix: options.keyPrefix } : {})
})

const unsuitableOption = (options: RedisOptions): string | undefined => {
  const { db = 0, enableReadyCheck, keyPrefix, reconnectOnError, replyMapping, stringNumbers } = options
  if (keyPrefix) return "keyPrefix: give it to RedisLock.layer instead"
  if (stringNumbers) return "stringNumbers"
  if (replyMapping === "resp3") return `replyMapping: "resp3"`
  if (reconnectsAlways(reconnectOnError)) {
    return "reconnectOnError where it is true of every error: the first reply over a connection may be one"
  }
  // its commands would go to database 0 before it is known that the server refuses another one
  return !awaitsHandshake && db !== 0 && enableReadyCheck === false
    ? "enableReadyCheck: false where the database is not 0"
    : undefined
}

const isAboutToConnect = ({ status }: Redis | Cluster): boolean =>
  status === "wait" || status === "connecting" || status === "connect"

const overCluster = (cluster: Cluster, redisOptions: RedisOptions, options: Options) =>
  Effect.gen(function* () {
    const { commandTimeout, path, shardedPubSub, warnings } = options
    const log = yield* ConnectionLog.make
    if (isAboutToConnect(cluster)) {
      yield* connectCluster({ cluster, path, redisOptions, startupNode: path.startupNodeOf(cluster) })
    }
    const nodes = yield* ClusterNodes.make(cluster, { path, log, timeoutMillis: undefined })
    const sharded = yield* within(commandTimeout, usesShardedPubSub(cluster, shardedPubSub))
    return yield* makeClusterDriver(nodes, log, { commandTimeout, warnings, sharded })
  })

const overServer = (client: Redis, { commandTimeout, path, warnings }: Options) =>
  Effect.gen(function* () {
    const log = yield* ConnectionLog.make
    const connection = yield* Connection.make(client, { path, log, isOurs: false })
    const writer = yield* CommandWriter.make(connection, undefined)
    const wasConnected = client.status === "ready"
    if (isAboutToConnect(client)) yield* connect(connection)
    // the plain path has to ask the server
    if (client.status === "ready" || path.name === "fast") {
      const database = databaseOf(client, path, wasConnected)
      connection.staysIn(yield* within(commandTimeout, database))
    }
    return yield* makeServerDriver(writer, log, commandTimeout, warnings)
  })

/**
 * The database of the locks. A client that was already connected may be in another one than it assumes: ioredis ignores a refused SELECT, which
 * is therefore sent again.
 */
const databaseOf = (
  client: Redis,
  path: CommandPath,
  wasConnected: boolean
): Effect.Effect<number, RedisDriver.RedisDriverError> =>
  Effect.tryPromise({
    try: async () => {
      const db = await path.databaseOf(client)
      if (wasConnected && db !== 0) await client.select(db)
      return db
    },
    catch: (error) => failureOf(error)
  })
