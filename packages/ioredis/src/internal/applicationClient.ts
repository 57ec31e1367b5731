import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { RedisDriver } from "effect-redis-lock"
import { Cluster, Command, type Redis, type RedisOptions } from "ioredis"
import { makeClusterDriver } from "./clusterDriver.ts"
import { ClusterNodes } from "./connection/ClusterNodes.ts"
import { CommandWriter } from "./command/CommandWriter.ts"
import { connect, connectCluster, usesShardedPubSub, within } from "./connection/connecting.ts"
import { Connection } from "./connection/Connection.ts"
import { scoped } from "./connection/listening.ts"
import { ConnectionLog } from "./connection/ConnectionLog.ts"
import { failed, type Failure, failureOf } from "./failure.ts"
import { makeServerDriver } from "./serverDriver.ts"
import type { Common } from "./ownDriver.ts"
import { reconnectsAlways } from "./options/checks.ts"
import { awaitsHandshake } from "./options/settings.ts"

interface Options extends Pick<Common, "path" | "commandTimeoutMillis" | "warnings"> {
  readonly shardedPubSub: "auto" | "on" | "off" | undefined
}

/** The driver over a client that belongs to the application, which closes it. */
export const makeApplicationDriver = (
  client: Redis | Cluster,
  options: Options
): Effect.Effect<RedisDriver.RedisDriver["Service"], Failure, Scope.Scope> =>
  Effect.gen(function* () {
    const settings = client instanceof Cluster ? settingsOfNodes(client) : client.options
    const unsuitable = unsuitableOption(settings)
    if (unsuitable !== undefined) {
      return yield* failed("Failed", `locks cannot use an ioredis client with the option ${unsuitable}`)
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
    const { commandTimeoutMillis, path, shardedPubSub, warnings } = options
    const log = yield* ConnectionLog.make
    const nodes = yield* scoped(() => new ClusterNodes(cluster, { path, log, isOurs: false, commandTimeoutMillis }))
    if (isAboutToConnect(cluster)) yield* connectCluster(cluster, path, redisOptions, path.startupNodeOf(cluster))
    const sharded = yield* within(commandTimeoutMillis)(usesShardedPubSub(cluster, shardedPubSub))
    return yield* makeClusterDriver(nodes, sharded, warnings)
  })

const overServer = (client: Redis, { commandTimeoutMillis, path, warnings }: Options) =>
  Effect.gen(function* () {
    const log = yield* ConnectionLog.make
    const connection = yield* scoped(() => new Connection(client, { path, log, isOurs: false }))
    const writer = yield* scoped(() => new CommandWriter(connection, commandTimeoutMillis))
    // then the server may have refused a database before anybody here could hear of it
    const wasConnected = client.status === "ready" || client.status === "connect"
    if (isAboutToConnect(client)) yield* connect(connection)
    const database = wasConnected ? checkedDatabaseOf(client) : Effect.sync(() => databaseOf(client))
    connection.database = yield* within(commandTimeoutMillis)(database)
    return yield* makeServerDriver(writer, warnings)
  })

/** What ioredis remembers, in all its versions: of a client's connection, and of the former one until it has reconnected. */
interface Remembered {
  readonly condition?: { readonly select?: number | null } | null
  readonly prevCondition?: { readonly select?: number | null } | null
}

/** The database that a client has selected, and selects again when it reconnects. */
const databaseOf = (client: Redis): number => {
  const { condition, prevCondition } = client as Remembered
  return Number((prevCondition ?? condition)?.select ?? client.options.db ?? 0)
}

/**
 * The same of a client that was connected already; fails if the server does not say that it is there: ioredis ignores a refused SELECT, and
 * takes no notice of `call("SELECT", ...)` and RESET. No SELECT is sent: it would move the application as well.
 */
const checkedDatabaseOf = (client: Redis): Effect.Effect<number, Failure> =>
  Effect.tryPromise({
    try: async () => {
      const database = databaseOf(client)
      // at once, before the application selects another one: `call` may collect it with others (enableAutoPipelining)
      const reply = client.sendCommand(new Command("client", ["INFO"])) as Promise<unknown>
      const answer = await reply.then(String, (error: Error) => {
        // a server or a proxy that does not know it, or the permission is missing
        if (["Failed", "NoPermission"].includes(RedisDriver.reasonOf(error))) return error
        throw error
      })
      if (answer === "QUEUED") throw RedisDriver.inTransaction
      const [, actual] = / db=(\d+)/.exec(String(answer)) ?? []
      // every connection begins in database 0
      if (actual === String(database) || (actual === undefined && database === 0)) return database
      if (actual !== undefined) {
        throw new Error(
          `the client is in database ${actual}, although it has selected ${database}: the server has refused that, or the application has ` +
            `changed it in a way that ioredis does not see (call("SELECT", ...), RESET)`
        )
      }
      throw new Error(
        `cannot tell whether the client is in database ${database}, which it has selected: CLIENT INFO is refused ` +
          `(${answer instanceof Error ? answer.message : answer}). Permit it (+client|info), or build the layer before the client connects`
      )
    },
    catch: (error) => failureOf(error)
  })
