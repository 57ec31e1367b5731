/**
 * Layers that connect the locks to Redis with ioredis.
 *
 * @since 0.1.0
 */
import * as Config from "effect/Config"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"
import { InvalidLockOptions, RedisDriver } from "effect-redis-lock"
import { Cluster, type ClusterOptions, Redis, type RedisOptions } from "ioredis"
import { makeApplicationDriver } from "./internal/applicationClient.ts"
import { choosePath } from "./internal/choosePath.ts"
import { makeClusterDriver } from "./internal/clusterDriver.ts"
import { ClusterNodes } from "./internal/ClusterNodes.ts"
import { CommandWriter } from "./internal/CommandWriter.ts"
import { connect, connectCluster, open, within } from "./internal/connecting.ts"
import { Connection } from "./internal/Connection.ts"
import { ConnectionLog } from "./internal/ConnectionLog.ts"
import { addressOf, checkIoredis, serversOf } from "./internal/options.ts"
import { makeServerDriver } from "./internal/serverDriver.ts"
import { at, settingsOf } from "./internal/settings.ts"

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
   * Whether to reach into ioredis for speed, where this version of it has what that takes; otherwise, and always with `false`, only
   * what ioredis publishes is used, see the README. Default: what the environment variable `REDIS_LOCK_FAST_PATH` says, or `true`.
   */
  readonly fastPath?: boolean | undefined
  /**
   * Any other option of ioredis: `tls`, `username`, `family`, `retryStrategy`, ... What would let commands wait for a
   * connection, or be sent again without our knowing, is overruled; values that ioredis takes for something else (`db: "abc"`) are
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
 * Where the server says that it is a replica (`ReadOnly`), as a former master behind an address that leads to the new one by now, the
 * connection is replaced, at most once a second: what was on its way fails with `ConnectionLost`, waiters ask again by themselves. A
 * `retryStrategy` that gives up ends the connection for good: commands and waiters then fail with `Closed`, which is not transient.
 *
 * Logs a warning when a connection is lost, another one when connecting again is refused or given up for good, and a line when it is
 * back.
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
      const { commandTimeout, connectTimeout } = yield* timeoutsOf(options)
      const ioredis = yield* Effect.fromResult(checkIoredis(options.ioredis))
      const address = options.url === undefined ? {} : yield* Effect.fromResult(addressOf(options.url))
      const path = yield* choosePath(options.fastPath)
      const client = yield* open(() => new Redis(settingsOf(path, at(address, { ...ioredis }), connectTimeout)))
      const log = yield* ConnectionLog.make
      const connection = yield* Connection.make(client, { path, log })
      const writer = yield* CommandWriter.make(connection, Duration.toMillis(commandTimeout))
      yield* connect(connection)
      return yield* makeServerDriver(writer, log, commandTimeout)
    })
  )

/** What every layer may be told of timeouts, checked. */
const timeoutsOf = (options: Pick<IoRedisOptions, "commandTimeout" | "connectTimeout">) =>
  Effect.all({
    commandTimeout: RedisDriver.checkTimeout("commandTimeout", options.commandTimeout ?? "3 seconds"),
    connectTimeout: RedisDriver.checkTimeout("connectTimeout", options.connectTimeout ?? "10 seconds")
  })

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
   * Whether to reach into ioredis for speed, where this version of it has what that takes; otherwise, and always with `false`, only
   * what ioredis publishes is used, see the README. Default: what the environment variable `REDIS_LOCK_FAST_PATH` says, or `true`.
   */
  readonly fastPath?: boolean | undefined
  /**
   * Any other option of ioredis' Cluster: `natMap`, `dnsLookup`, `redisOptions` with `tls`, ... What would let commands wait
   * for a lost connection, be sent again without our knowing, or go to replicas, is overruled.
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
      const { commandTimeout, connectTimeout } = yield* timeoutsOf(options)
      const given = yield* Effect.fromResult(checkIoredis(options.ioredis?.redisOptions, "ioredis.redisOptions"))
      if (Number((given as RedisOptions | undefined)?.db ?? 0) !== 0) {
        return yield* new InvalidLockOptions({
          option: "ioredis.redisOptions.db",
          problem: "a cluster has only database 0"
        })
      }
      const { addresses, credentials, tls } = yield* Effect.fromResult(serversOf("nodes", options.nodes, 6379))
      const path = yield* choosePath(options.fastPath)
      const redisOptions = settingsOf(
        path,
        at({ ...credentials, ...(tls ? { tls: {} } : {}) }, { ...given }),
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
      const nodes = yield* ClusterNodes.make(cluster, { path, log, timeoutMillis: Duration.toMillis(commandTimeout) })
      const [startupNode] = addresses
      yield* within(connectTimeout, connectCluster({ cluster, path, redisOptions, startupNode }))
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
   * Whether to reach into ioredis for speed, where this version of it has what that takes; otherwise, and always with `false`, only
   * what ioredis publishes is used, see the README. Default: what the environment variable `REDIS_LOCK_FAST_PATH` says, or `true`.
   */
  readonly fastPath?: boolean | undefined
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
      const { commandTimeout, connectTimeout } = yield* timeoutsOf(options)
      const ioredis = yield* Effect.fromResult(checkIoredis(options.ioredis))
      const { addresses, credentials, tls } = yield* Effect.fromResult(serversOf("sentinels", options.sentinels, 26379))
      const { password, username } = credentials
      const again = ioredis?.sentinelRetryStrategy ?? ((times: number) => Math.min(times * 100, 2000))
      let hasConnected = false
      const path = yield* choosePath(options.fastPath)
      const settings = settingsOf(
        path,
        {
          sentinelCommandTimeout: Duration.toMillis(commandTimeout),
          ...path.sentinelDefaults,
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
      const connection = yield* Connection.make(client, { path, log })
      const writer = yield* CommandWriter.make(connection, Duration.toMillis(commandTimeout))
      yield* within(connectTimeout, connect(connection))
      hasConnected = true
      return yield* makeServerDriver(writer, log, commandTimeout)
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
  /**
   * Whether to reach into ioredis for speed, where this version of it has what that takes; otherwise, and always with `false`, only
   * what ioredis publishes is used, see the README. Default: what the environment variable `REDIS_LOCK_FAST_PATH` says, or `true`.
   */
  readonly fastPath?: boolean | undefined
}

/**
 * Uses a client that the application already has, a `Redis` or a `Cluster`. The layer never closes it; the subscriptions have
 * connections of their own, with the same options, which are closed with the layer.
 *
 * **Gotchas**
 *
 * A client that re-sends commands after a reconnect (ioredis does by default) sends a PING instead of each of ours: what was
 * on its way when the connection broke counts as of unknown outcome. Clients with `keyPrefix`, `stringNumbers` or RESP3
 * reply mapping are refused: use the `keyPrefix` of `RedisLock.layer` instead.
 *
 * Once the client has ended (`disconnect()`, `quit()`, a `retryStrategy` that gives up) commands and waiters fail with `Closed`, which
 * is not transient, and a warning is logged; after `connect()` they work again. Close the layer first, then the client.
 *
 * The layer does not disconnect your client where its server has become a replica (`ReadOnly`): have it connect again by
 * `reconnectOnError: (error) => error.message.includes("READONLY")`, which ioredis asks for every error reply, or a client behind a
 * moved address (DNS, a proxy) stays with the former master. Do not return 2, which would send the command again.
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
      const { commandTimeout } = yield* timeoutsOf(options)
      const path = yield* choosePath(options.fastPath)
      const { shardedPubSub } = options
      return yield* makeApplicationDriver(client, { path, commandTimeout, shardedPubSub })
    })
  )
