/**
 * Layers that connect the locks to Redis with ioredis.
 *
 * @since 0.1.0
 */
import * as Config from "effect/Config"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { InvalidLockOptions, RedisDriver } from "effect-redis-lock"
import { Cluster, type ClusterOptions, Redis, type RedisOptions } from "ioredis"
import { ClusterNodes, addressOf } from "./internal/ClusterNodes.ts"
import { Connection } from "./internal/Connection.ts"
import { ConnectionLog } from "./internal/ConnectionLog.ts"
import { Connector } from "./internal/Connector.ts"
import { makeEval } from "./internal/evaluate.ts"
import { CommandWriter } from "./internal/CommandWriter.ts"
import { makeEvalOnCluster } from "./internal/evaluateOnCluster.ts"
import { failureOf, hiding } from "./internal/failure.ts"
import { hashSlot } from "./internal/hashSlot.ts"
import { type Address, addressOf as addressOfUrl, checkIoredis, serversOf } from "./internal/options.ts"
import { SentinelConnector } from "./internal/fast/SentinelConnector.ts"
import { Subscriber } from "./internal/subscriber.ts"

/**
 * How to connect. Everything may be left out: a Redis on localhost:6379.
 *
 * @category options
 * @since 0.1.0
 */
export interface IoRedisOptions {
  /**
   * `redis://[[user]:password@]host[:port][/database]`, `rediss://` for TLS, `unix:///path[?db=database]` or just the path for a
   * socket; see {@link RedisUrl.parse}. What it says wins over `ioredis`. Redact it where it carries a password.
   */
  readonly url?: string | Redacted.Redacted | undefined
  /**
   * How long a command may take before it fails with `TimedOut`. A connection on which nothing has come back for twice as long is
   * sent a PING, and one that then stays silent for twice as long again is replaced: a dead connection is noticed within six
   * times this period, also where only subscriptions use it. Default: 3 seconds.
   */
  readonly commandTimeout?: Duration.Input | undefined
  /**
   * How long connecting may take. Default: 10 seconds.
   */
  readonly connectTimeout?: Duration.Input | undefined
  /**
   * Any other option of ioredis: `tls`, `username`, `family`, `retryStrategy`, ... What would let commands wait for a
   * connection, or be sent again behind our back, is overruled; values that ioredis takes for something else (`db: "abc"`) are
   * refused.
   */
  readonly ioredis?: Omit<RedisOptions, "keyPrefix" | "stringNumbers" | "replyMapping"> | undefined
}

/**
 * One connection for commands and, once somebody waits, one for subscriptions; both to one server, both closed with the
 * layer. Commands are never queued while disconnected: they fail with `NotConnected`, and ioredis reconnects with growing
 * pauses.
 *
 * Fails when the first connection cannot be made: `ConnectionRefused`, `TimedOut`, `NotAuthenticated`, ...; with `NoPermission`
 * or `Failed` where the server refuses the database, now or after a reconnect: commands never go to another one. Fails with
 * `InvalidLockOptions` where the URL or an option is wrong. No error and no log line shows a password.
 *
 * Logs a warning when a connection is lost, another one when connecting again is refused, and a line when it is back.
 *
 * @example
 * ```ts
 * import { IoRedis } from "@effect-redis-lock/ioredis"
 * import { Effect, Layer } from "effect"
 * import { Lock, RedisLock } from "effect-redis-lock"
 *
 * const live = Layer.provide(RedisLock.layer(), IoRedis.layer({ url: "redis://localhost:6379" }))
 *
 * const program = Effect.log("only one of us").pipe(Lock.withLock("report"), Effect.provide(live))
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (
  options: IoRedisOptions = {}
): Layer.Layer<RedisDriver.RedisDriver, RedisDriver.RedisDriverError | InvalidLockOptions> =>
  Layer.effect(
    RedisDriver.RedisDriver,
    Effect.gen(function* () {
      const commandTimeout = yield* RedisDriver.checkTimeout("commandTimeout", options.commandTimeout ?? "3 seconds")
      const connectTimeout = yield* RedisDriver.checkTimeout("connectTimeout", options.connectTimeout ?? "10 seconds")
      const ioredis = yield* Effect.fromResult(checkIoredis(options.ioredis))
      const address = options.url === undefined ? {} : yield* Effect.fromResult(addressOfUrl(options.url))
      const way = { Connector: ioredis?.sentinels ? SentinelConnector : Connector }
      const client = yield* open(() => new Redis(settingsOf(at(address, { ...way, ...ioredis }), connectTimeout)))
      const log = yield* ConnectionLog.make
      const connection = yield* Connection.make(client, { log })
      const writer = yield* CommandWriter.make(client, Duration.toMillis(commandTimeout), connection)
      yield* connect(connection)
      return yield* makeDriver(writer, log, commandTimeout)
    })
  )

/**
 * What all layers with connections of their own have in common.
 */
const settingsOf = <A extends RedisOptions>(ioredis: A, connectTimeout: Duration.Duration) => ({
  ...ioredis,
  // ioredis would speak plain text to the master otherwise
  ...(ioredis.sentinels && ioredis.tls ? { enableTLSForSentinelMode: true } : {}),
  connectTimeout: Duration.toMillis(connectTimeout),
  lazyConnect: true,
  // A command that waits for a connection, or is sent again after one was lost, may take a lock for a caller that
  // has long given up.
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
  autoResendUnfulfilledCommands: false,
  // what would change keys or replies
  keyPrefix: "",
  stringNumbers: false,
  replyMapping: "legacy" as const
})

/** Where the server is, over the other options of ioredis. */
const at = (address: Address, ioredis: RedisOptions): RedisOptions => {
  const tls = ioredis.tls || address.tls
  const { path: _, ...others } = ioredis as RedisOptions & { readonly path?: string }
  return { ...(address.host === undefined ? ioredis : others), ...address, ...(tls ? { tls } : {}) }
}

/** What goes wrong with it is listened to also when it is closed: ioredis would print it. */
const open = <A extends Redis | Cluster>(make: () => A) =>
  Effect.acquireRelease(
    Effect.try({
      try: () => {
        const client = make()
        client.on("error", () => {})
        return client
      },
      catch: (error) => failureOf(error)
    }),
    (client) => Effect.sync(() => client.disconnect())
  )

/**
 * How waiters are woken on a cluster; all services that share locks must agree on it.
 *
 * - `auto`: sharded pub/sub (`SPUBLISH`, Redis 7) where the cluster knows it when the layer is built, as Redisson decides
 * - `on`, `off`: always, never
 *
 * @category options
 * @since 0.1.0
 */
export type ShardedPubSub = "auto" | "on" | "off"

/**
 * How to connect to a cluster.
 *
 * @category options
 * @since 0.1.0
 */
export interface IoRedisClusterOptions {
  /**
   * Some of the nodes, from which the others are learnt: `redis://host:port`. User, password and TLS (`rediss://`) are those
   * of the first, for all nodes; the others may repeat them. Redact what carries a password.
   */
  readonly nodes: ReadonlyArray<string | Redacted.Redacted>
  /**
   * How long a command may take, redirections and the opening of a connection included, before it fails with `TimedOut`. A
   * connection that has been silent for twice as long while commands wait is replaced. Default: 3 seconds.
   */
  readonly commandTimeout?: Duration.Input | undefined
  /**
   * How long connecting may take, to the cluster and to each node. Default: 10 seconds.
   */
  readonly connectTimeout?: Duration.Input | undefined
  /**
   * Plain or sharded pub/sub. Default: `auto`.
   */
  readonly shardedPubSub?: ShardedPubSub | undefined
  /**
   * Any other option of ioredis' Cluster: `natMap`, `dnsLookup`, `redisOptions` with `tls`, ... What would let commands wait
   * for a lost connection, be sent again behind our back, or go to replicas, is overruled.
   */
  readonly ioredis?:
    | (Omit<ClusterOptions, "keyPrefix" | "redisOptions"> & {
        readonly redisOptions?:
          | Omit<NonNullable<ClusterOptions["redisOptions"]>, "keyPrefix" | "stringNumbers" | "replyMapping">
          | undefined
      })
    | undefined
}

/**
 * Redis Cluster. Scripts run on the master that serves the lock's slot; redirections are followed, and a command whose
 * outcome is unknown is never sent again. Waiters subscribe at that master, too, and are subscribed anew where the slot goes
 * when it moves or its master fails.
 *
 * While a master is gone and no replica has taken over, and for locks in a slot that is just being moved, commands fail with
 * `NotConnected`, `ConnectionLost`, `TimedOut` or `ClusterDown`, all transient. Names whose braces do not make a hash tag
 * (`a{b`) fail with `InvalidLockName`, as their keys would live in different slots.
 *
 * Building the layer fails when no node can be asked: `ConnectionRefused`, `TimedOut`, `NotAuthenticated`, ...; with
 * `InvalidLockOptions` where a timeout is out of range.
 *
 * **When not to use**
 *
 * Replication is asynchronous: a master that fails may take the newest grants with it, and two owners may hold one lock until
 * the first notices (`LockLost`). Guard what must not happen twice with the fencing token, or take several independent
 * servers.
 *
 * @example
 * ```ts
 * import { IoRedis } from "@effect-redis-lock/ioredis"
 * import { Effect, Layer } from "effect"
 * import { Lock, RedisLock } from "effect-redis-lock"
 *
 * const live = Layer.provide(
 *   RedisLock.layer(),
 *   IoRedis.layerCluster({ nodes: ["redis://10.0.0.1:6379", "redis://10.0.0.2:6379"] })
 * )
 *
 * const program = Effect.log("only one of us").pipe(Lock.withLock("report"), Effect.provide(live))
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layerCluster = (
  options: IoRedisClusterOptions
): Layer.Layer<RedisDriver.RedisDriver, RedisDriver.RedisDriverError | InvalidLockOptions> =>
  Layer.effect(
    RedisDriver.RedisDriver,
    Effect.gen(function* () {
      const commandTimeout = yield* RedisDriver.checkTimeout("commandTimeout", options.commandTimeout ?? "3 seconds")
      const connectTimeout = yield* RedisDriver.checkTimeout("connectTimeout", options.connectTimeout ?? "10 seconds")
      const given = yield* Effect.fromResult(checkIoredis(options.ioredis?.redisOptions, "ioredis.redisOptions"))
      if (Number((given as RedisOptions | undefined)?.db ?? 0) !== 0) {
        return yield* new InvalidLockOptions({
          option: "ioredis.redisOptions.db",
          problem: "a cluster has only database 0"
        })
      }
      const { addresses, credentials, tls } = yield* Effect.fromResult(serversOf("nodes", options.nodes, 6379))
      const redisOptions = settingsOf(
        at({ ...credentials, ...(tls ? { tls: {} } : {}) }, { Connector, ...given }),
        connectTimeout
      )
      const cluster = yield* open(
        () =>
          new Cluster([...addresses], {
            slotsRefreshTimeout: Duration.toMillis(commandTimeout),
            slotsRefreshInterval: 15_000,
            ...options.ioredis,
            // a cluster that is partly down serves what it can
            enableReadyCheck: false,
            lazyConnect: true,
            enableOfflineQueue: false,
            scaleReads: "master",
            clusterNodeRetryStrategy: null,
            retryDelayOnFailover: 0,
            redisOptions
          })
      )
      const log = yield* ConnectionLog.make
      const nodes = yield* ClusterNodes.make(cluster, Duration.toMillis(commandTimeout), log)
      yield* within(connectTimeout, connectCluster(cluster, redisOptions))
      return yield* makeClusterDriver(nodes, log, commandTimeout, options.shardedPubSub)
    })
  )

/**
 * How to connect by way of Redis Sentinel.
 *
 * @category options
 * @since 0.1.0
 */
export interface IoRedisSentinelOptions {
  /**
   * Where the sentinels are: `redis://[[user]:password@]host[:port]`, `rediss://` for TLS; default port: 26379. User, password and
   * TLS are those of the first, for all sentinels, and not for the master: that one has its own in `ioredis`. Redact what carries
   * a password.
   */
  readonly sentinels: ReadonlyArray<string | Redacted.Redacted>
  /**
   * The name under which they know the master. Default: `mymaster`.
   */
  readonly name?: string | undefined
  /**
   * How long a command may take before it fails with `TimedOut`. A connection that has been silent for twice as long while
   * commands wait is replaced. Default: 3 seconds.
   */
  readonly commandTimeout?: Duration.Input | undefined
  /**
   * How long connecting may take, to a sentinel as to the master. Default: 10 seconds.
   */
  readonly connectTimeout?: Duration.Input | undefined
  /**
   * Any other option of ioredis: `username`, `password`, `db` and `tls` of the master; `sentinelTLS`, `natMap`, ...
   */
  readonly ioredis?: Omit<RedisOptions, "keyPrefix" | "stringNumbers" | "replyMapping" | "role"> | undefined
}

/**
 * The master that Redis Sentinel names, as {@link layer} connects to it. After a failover the connections go to the new
 * master; until then commands fail with `NotConnected`, `ConnectionLost`, `TimedOut` or `ReadOnly`, all transient.
 *
 * Building the layer fails when no sentinel names a master that can be reached: `ConnectionRefused`, `TimedOut`, ...; with
 * `InvalidLockOptions` where a timeout is out of range.
 *
 * **When not to use**
 *
 * Where two owners at once must be impossible: a failover may lose the newest grants, as on a cluster.
 *
 * @example
 * ```ts
 * import { IoRedis } from "@effect-redis-lock/ioredis"
 * import { Effect, Layer } from "effect"
 * import { Lock, RedisLock } from "effect-redis-lock"
 *
 * const live = Layer.provide(
 *   RedisLock.layer(),
 *   IoRedis.layerSentinel({ sentinels: ["redis://10.0.0.1:26379", "redis://10.0.0.2:26379"], name: "locks" })
 * )
 *
 * const program = Effect.log("only one of us").pipe(Lock.withLock("report"), Effect.provide(live))
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layerSentinel = (
  options: IoRedisSentinelOptions
): Layer.Layer<RedisDriver.RedisDriver, RedisDriver.RedisDriverError | InvalidLockOptions> =>
  Layer.effect(
    RedisDriver.RedisDriver,
    Effect.gen(function* () {
      const commandTimeout = yield* RedisDriver.checkTimeout("commandTimeout", options.commandTimeout ?? "3 seconds")
      const connectTimeout = yield* RedisDriver.checkTimeout("connectTimeout", options.connectTimeout ?? "10 seconds")
      const ioredis = yield* Effect.fromResult(checkIoredis(options.ioredis))
      const { addresses, credentials, tls } = yield* Effect.fromResult(serversOf("sentinels", options.sentinels, 26379))
      const { password, username } = credentials
      const again = ioredis?.sentinelRetryStrategy ?? ((times: number) => Math.min(times * 100, 2000))
      let hasConnected = false
      const settings = settingsOf(
        {
          sentinelCommandTimeout: Duration.toMillis(commandTimeout),
          // what the sentinels say of a failover ends a connection to a master that hangs
          failoverDetector: true,
          Connector: SentinelConnector,
          ...ioredis,
          sentinels: [...addresses],
          ...(username === undefined ? {} : { sentinelUsername: username }),
          ...(password === undefined ? {} : { sentinelPassword: password }),
          ...(tls ? { sentinelTLS: ioredis?.sentinelTLS || {} } : {}),
          name: options.name ?? "mymaster",
          role: "master" as const,
          // the first time it is the application that decides whether to try again
          sentinelRetryStrategy: (times: number) => (hasConnected ? again(times) : null)
        },
        connectTimeout
      )
      const client = yield* open(() => new Redis(settings))
      const log = yield* ConnectionLog.make
      const connection = yield* Connection.make(client, { log })
      const writer = yield* CommandWriter.make(client, Duration.toMillis(commandTimeout), connection)
      yield* within(connectTimeout, connect(connection))
      hasConnected = true
      return yield* makeDriver(writer, log, commandTimeout)
    })
  )

/**
 * {@link layer} with its options from `Config`. Without an argument: `REDIS_URL` (default `redis://localhost:6379`),
 * `REDIS_LOCK_COMMAND_TIMEOUT` and `REDIS_LOCK_CONNECT_TIMEOUT` (durations such as `3 seconds`).
 *
 * @category layers
 * @since 0.1.0
 */
export const layerConfig = (
  config: Config.Wrap<Omit<IoRedisOptions, "ioredis">> = {
    url: Config.withDefault(Config.Redacted("REDIS_URL"), undefined),
    commandTimeout: Config.withDefault(Config.Duration("REDIS_LOCK_COMMAND_TIMEOUT"), undefined),
    connectTimeout: Config.withDefault(Config.Duration("REDIS_LOCK_CONNECT_TIMEOUT"), undefined)
  }
): Layer.Layer<RedisDriver.RedisDriver, RedisDriver.RedisDriverError | InvalidLockOptions | Config.ConfigError> =>
  Layer.unwrap(Effect.map(Config.unwrap(config), layer))

/**
 * Options of {@link fromClient}.
 *
 * @category options
 * @since 0.1.0
 */
export interface FromClientOptions {
  /**
   * How long a command may take before it fails with `TimedOut`. Default: 3 seconds.
   */
  readonly commandTimeout?: Duration.Input | undefined
  /**
   * Plain or sharded pub/sub, where the client is a `Cluster`. Default: `auto`.
   */
  readonly shardedPubSub?: ShardedPubSub | undefined
}

/**
 * Uses a client that the application has already, a `Redis` or a `Cluster`. It is never closed by us; connections of our own
 * with the same options serve the subscriptions and are closed with the layer.
 *
 * **Gotchas**
 *
 * A client that re-sends commands after a reconnect (ioredis does by default) sends a PING instead of each of ours: what was
 * on its way when the connection broke counts as of unknown outcome. Clients with `keyPrefix`, `stringNumbers` or RESP3
 * reply mapping are refused: use the `keyPrefix` of `RedisLock.layer` instead.
 *
 * A client of Sentinel with `failoverDetector` may end for good when it hears of a failover while it asks for the master (ioredis
 * 6.0): {@link layerSentinel} does not.
 *
 * @example
 * ```ts
 * import { IoRedis } from "@effect-redis-lock/ioredis"
 * import { Layer } from "effect"
 * import { RedisLock } from "effect-redis-lock"
 * import { Redis } from "ioredis"
 *
 * const client = new Redis("redis://localhost:6379", { lazyConnect: true })
 *
 * const live = Layer.provide(RedisLock.layer(), IoRedis.fromClient(client))
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const fromClient = (
  client: Redis | Cluster,
  options: FromClientOptions = {}
): Layer.Layer<RedisDriver.RedisDriver, RedisDriver.RedisDriverError | InvalidLockOptions> =>
  Layer.effect(
    RedisDriver.RedisDriver,
    Effect.gen(function* () {
      const commandTimeout = yield* RedisDriver.checkTimeout("commandTimeout", options.commandTimeout ?? "3 seconds")
      const settings: RedisOptions =
        client instanceof Cluster
          ? {
              ...client.options.redisOptions,
              ...(client.options.keyPrefix ? { keyPrefix: client.options.keyPrefix } : {})
            }
          : client.options
      const problem = settings.keyPrefix
        ? "keyPrefix: give it to RedisLock.layer instead"
        : settings.stringNumbers
          ? "stringNumbers"
          : settings.replyMapping === "resp3"
            ? `replyMapping: "resp3"`
            : undefined
      if (problem !== undefined) {
        return yield* failureOf(new Error(`locks cannot use an ioredis client with the option ${problem}`))
      }
      const log = yield* ConnectionLog.make
      const isAboutToConnect = client.status === "wait" || client.status === "connecting" || client.status === "connect"
      if (client instanceof Cluster) {
        if (isAboutToConnect) yield* connectCluster(client, settings)
        const nodes = yield* ClusterNodes.make(client, undefined, log)
        return yield* makeClusterDriver(nodes, log, commandTimeout, options.shardedPubSub)
      }
      const connection = yield* Connection.make(client, { log, isOurs: false })
      const writer = yield* CommandWriter.make(client, undefined, connection)
      if (isAboutToConnect) yield* connect(connection)
      else if (client.status === "ready") yield* within(commandTimeout, selectAgain(client))
      return yield* makeDriver(writer, log, commandTimeout)
    })
  )

/** A client that was connected before may be in another database than it takes itself to be: ioredis ignores a refused SELECT. */
const selectAgain = (client: Redis): Effect.Effect<unknown, RedisDriver.RedisDriverError> => {
  const db = client["condition"]?.select ?? 0
  return db === 0
    ? Effect.void
    : Effect.tryPromise({ try: () => client.select(db), catch: (error) => failureOf(error) })
}

/** Connects for the first time, or waits for a client that is about to, and says why where it cannot. */
const connect = (connection: Connection): Effect.Effect<void, RedisDriver.RedisDriverError> =>
  Effect.callback((resume) => {
    const { client } = connection
    const connected = client.status === "wait" ? client.connect() : ready(client)
    connected.then(
      () => resume(connection.isUnusable ? Effect.fail(connection.failure!) : Effect.void),
      // connect() itself only knows that the connection was closed
      (error) => resume(Effect.fail(connection.failure ?? connection.failureOf(error)))
    )
  })

/** {@link connect} for a cluster. */
const connectCluster = (
  cluster: Cluster,
  redisOptions: RedisOptions
): Effect.Effect<void, RedisDriver.RedisDriverError, Scope.Scope> =>
  Effect.gen(function* () {
    const hide = hiding([redisOptions.password])
    let reason: unknown
    yield* Effect.acquireRelease(
      Effect.sync(() => {
        const note = (error: unknown) => {
          // a cluster says only that all its nodes have failed
          reason = (error as { readonly lastNodeError?: Error }).lastNodeError ?? error
        }
        cluster.on("error", note)
        return note
      }),
      (note) => Effect.sync(() => cluster.off("error", note))
    )
    const connected = () => (cluster.status === "wait" ? cluster.connect() : ready(cluster))
    yield* Effect.tryPromise({ try: connected, catch: (error) => failureOf(reason ?? error, hide) }).pipe(
      Effect.catch((failure) => {
        const said = (reason as Error | undefined)?.name === "ReplyError"
        return Effect.andThen(said ? Effect.void : askWhy(cluster, redisOptions), Effect.fail(failure))
      })
    )
  })

/** Fails with what is wrong with the first of the startup nodes: a cluster only knows that it got no answer from any. */
const askWhy = (
  cluster: Cluster,
  redisOptions: RedisOptions
): Effect.Effect<void, RedisDriver.RedisDriverError, Scope.Scope> =>
  Effect.gen(function* () {
    const [node] = cluster["startupNodes"] as ReadonlyArray<string | number | { host?: string; port?: number }>
    if (typeof node !== "object") return
    const settings: RedisOptions = { ...redisOptions, ...node, retryStrategy: () => null }
    const client = yield* open(
      () => new Redis({ ...settings, lazyConnect: true, enableOfflineQueue: false, replyMapping: "legacy" })
    )
    yield* connect(yield* Connection.make(client, { log: yield* ConnectionLog.make }))
  })

const within = <A, R>(timeout: Duration.Duration, self: Effect.Effect<A, RedisDriver.RedisDriverError, R>) =>
  Effect.timeoutOrElse(self, {
    duration: timeout,
    orElse: () => Effect.fail(failureOf(new Error(`connecting timed out after ${Duration.format(timeout)}`)))
  })

const ready = (client: Redis | Cluster): Promise<void> =>
  new Promise((resolve, reject) => {
    const onReady = () => {
      client.off("close", onClose)
      resolve()
    }
    const onClose = () => {
      client.off("ready", onReady)
      reject(new Error("Connection is closed."))
    }
    client.once("ready", onReady)
    client.once("close", onClose)
  })

const scanOf =
  (writer: CommandWriter, commandTimeout: Duration.Duration) =>
  (pattern: string): Stream.Stream<string, RedisDriver.RedisDriverError> =>
    Stream.paginate("0", (cursor) =>
      Effect.tryPromise({
        try: () => writer.client.scan(cursor, "MATCH", pattern, "COUNT", 1000, "TYPE", "hash"),
        catch: (error) => failureOf(error)
      }).pipe(
        Effect.timeoutOrElse({
          duration: commandTimeout,
          orElse: () =>
            Effect.suspend(() => {
              writer.onCommandTimeout()
              return Effect.fail(failureOf(new Error(`timed out after ${Duration.format(commandTimeout)}`)))
            })
        }),
        Effect.map(([next, keys]) => [keys, next === "0" ? Option.none() : Option.some(next)] as const)
      )
    )

/** For subscriptions alone: whoever made them makes them again after a reconnect. */
const forSubscriptions: RedisOptions = {
  lazyConnect: false,
  autoResubscribe: false,
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
  autoResendUnfulfilledCommands: false
}

const makeDriver = (
  writer: CommandWriter,
  log: ConnectionLog,
  commandTimeout: Duration.Duration
): Effect.Effect<RedisDriver.RedisDriver["Service"], never, Scope.Scope> =>
  Effect.gen(function* () {
    const commandTimeoutMillis = Duration.toMillis(commandTimeout)
    const evalUnsafe = yield* makeEval(writer, commandTimeoutMillis)
    const subscriber = yield* Subscriber.make({
      sharded: false,
      slot: () => 0,
      serverOf: () => "",
      open: () => {
        const client = writer.client.duplicate(forSubscriptions)
        return new CommandWriter(client, commandTimeoutMillis, new Connection(client, { name: "subscriptions", log }))
      },
      refresh: () => {}
    })
    log.open()
    return {
      eval: RedisDriver.evalOf(evalUnsafe),
      subscribe: RedisDriver.subscribeOf(subscriber.subscribe),
      scan: scanOf(writer, commandTimeout),
      publish: "PUBLISH",
      slot: () => 0,
      server: () => writer.server,
      address: () => writer.connection?.server,
      commandTimeoutMillis: Duration.toMillis(commandTimeout)
    }
  })

const makeClusterDriver = (
  nodes: ClusterNodes,
  log: ConnectionLog,
  commandTimeout: Duration.Duration,
  shardedPubSub: ShardedPubSub = "auto"
): Effect.Effect<RedisDriver.RedisDriver["Service"], RedisDriver.RedisDriverError, Scope.Scope> =>
  Effect.gen(function* () {
    const { cluster } = nodes
    const commandTimeoutMillis = Duration.toMillis(commandTimeout)
    const evalUnsafe = yield* makeEvalOnCluster(nodes, commandTimeoutMillis)
    const sharded =
      shardedPubSub === "auto" ? yield* within(commandTimeout, knowsShardedPubSub(cluster)) : shardedPubSub === "on"
    const subscriber = yield* Subscriber.make({
      sharded,
      slot: sharded ? hashSlot : () => 0,
      serverOf: (channel) => {
        const owner = nodes.ownerOf(hashSlot(channel))
        return owner === undefined ? undefined : addressOf(owner.client)
      },
      // where it cannot connect, the channels may be served elsewhere by now
      open: (server) => {
        const client = nodes.at(server)!.client.duplicate({ ...forSubscriptions, readOnly: false, retryStrategy: null })
        const connection = new Connection(client, { name: "subscriptions", node: server, log })
        return new CommandWriter(client, commandTimeoutMillis, connection)
      },
      refresh: () => nodes.refresh()
    })
    yield* Effect.acquireRelease(
      Effect.sync(() => {
        const relocate = () => subscriber.relocate()
        cluster.on("refresh", relocate)
        return relocate
      }),
      (relocate) => Effect.sync(() => cluster.off("refresh", relocate))
    )
    log.open()
    return {
      eval: RedisDriver.evalOf(evalUnsafe),
      subscribe: RedisDriver.subscribeOf(subscriber.subscribe),
      scan: (pattern) =>
        Stream.suspend(() => Stream.fromIterable(nodes.masters)).pipe(
          Stream.flatMap((node) => scanOf(node, commandTimeout)(pattern))
        ),
      publish: sharded ? "SPUBLISH" : "PUBLISH",
      slot: hashSlot,
      server: (key) => nodes.ownerOf(hashSlot(key))?.server ?? "",
      commandTimeoutMillis: Duration.toMillis(commandTimeout)
    }
  })

/** Asks the first node that answers, as Redisson does: it knows sharded pub/sub unless it refuses the question. */
const knowsShardedPubSub = (cluster: Cluster): Effect.Effect<boolean, RedisDriver.RedisDriverError> =>
  Effect.tryPromise({
    try: async () => {
      let failure: unknown = new Error("Stream isn't writeable: no node of the cluster is known")
      for (const node of cluster.nodes("master")) {
        try {
          await node.call("PUBSUB", "SHARDNUMSUB")
          return true
        } catch (error) {
          if ((error as Error).name === "ReplyError") return false
          failure = error
        }
      }
      throw failure
    },
    catch: (error) => failureOf(error)
  })
