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
import { InvalidLockOptions, type QuorumOptions, RedisDriver, RedisLock } from "effect-redis-lock"
import type { Cluster, ClusterOptions, Redis, RedisOptions } from "ioredis"
import { makeApplicationDriver } from "./internal/applicationClient.ts"
import { choosePath } from "./internal/command/choosePath.ts"
import { checkClient, checkDatabase, checkIoredis, checkMasterName, checkOptions } from "./internal/options/checks.ts"
import { checkMembers, serversOf } from "./internal/options/targets.ts"
import { explained, makeAt, makeCluster, makeSentinel, makeServer } from "./internal/ownDriver.ts"
import * as RedisUrl from "./RedisUrl.ts"
import { allWarnings, checkWarnings, problemOf } from "./internal/serverWarnings.ts"

/**
 * The problems that a driver warns about, once, with the remedy, after it has connected. It sends INFO to each server in the background;
 * if that is not permitted, it does not warn.
 *
 * - `eviction`: the server may evict locks when its memory is full
 * - `persistence`: the server has saved nothing to disk since it started, and leases are longer than a minute. Only
 *   {@link layerRedisLock} knows the lease, from `watchdogLeaseTime`; the other layers log this at debug level
 * - `replicas`: the server has replicas, so that a failover may grant a lock twice; not if {@link layerRedisLock} is given
 *   `acknowledge`
 * - `clock`: the server's clock and this machine's are more than a second apart
 *
 * Each line has the annotations `warning`, one of these names, and `server`.
 *
 * @category options
 * @since 0.3.0
 */
export type ServerWarning = "eviction" | "persistence" | "replicas" | "clock"

/**
 * A server's reply to INFO, and this machine's time before the command was sent and after the reply was read, in milliseconds since
 * 1970.
 *
 * @category models
 * @since 0.3.0
 */
export interface ServerInfo {
  readonly text: string
  readonly sentAt: number
  readonly receivedAt: number
}

/**
 * The {@link ServerWarning}s that a server's reply to INFO gives rise to, each with the remedy: the checks that the drivers make after
 * connecting. `leaseTime` is that of the locks, if it is known.
 *
 * **When to use**
 *
 * To check a server before locks depend on it, as `redis-lock doctor` does.
 *
 * @example
 * ```ts
 * import { IoRedis } from "@effect-redis-lock/ioredis"
 * import { Redis } from "ioredis"
 *
 * const check = async (redis: Redis) => {
 *   const sentAt = Date.now()
 *   const text = await redis.info()
 *   for (const { problem, warning } of IoRedis.problemsOf({ text, sentAt, receivedAt: Date.now() })) {
 *     console.log(warning, problem)
 *   }
 * }
 * ```
 *
 * @category getters
 * @since 0.3.0
 */
export const problemsOf = (
  info: ServerInfo,
  leaseTime?: Duration.Duration
): ReadonlyArray<{ readonly warning: ServerWarning; readonly problem: string }> =>
  allWarnings.flatMap((warning) => {
    const problem = problemOf(warning, info, leaseTime && Duration.toMillis(leaseTime))
    return problem === undefined ? [] : [{ warning, problem }]
  })

/**
 * How to connect. Every option has a default: together they mean a Redis on localhost:6379.
 *
 * @category options
 * @since 0.1.0
 */
export interface IoRedisOptions {
  /**
   * One server: `redis://[[user]:password@]host[:port][/database]`, or `unix:///path[?db=database]`, or just the path of a socket. A
   * cluster: `redis+cluster://host,host`. A master monitored by Sentinel: `redis+sentinel://host,host/name`. TLS: `rediss` instead of
   * `redis`, and `?ca=file&cert=file&key=file` if files are needed. See {@link RedisUrl.parse}. The URL takes precedence over
   * `ioredis`. Redact it if it contains a password.
   */
  readonly url?: string | Redacted.Redacted | undefined
  /**
   * How long a command may take before it fails with `TimedOut`. A connection that has received nothing for twice as long is
   * sent a PING, and replaced if it stays silent for twice as long again: a dead connection is noticed within six times this
   * period, even one used only by subscriptions. Default: 3 seconds.
   */
  readonly commandTimeout?: Duration.Input | undefined
  /**
   * How long connecting may take. `ioredis.connectTimeout`, on a cluster `ioredis.redisOptions.connectTimeout`, takes precedence for each
   * attempt to connect to a server. Default: 10 seconds.
   */
  readonly connectTimeout?: Duration.Input | undefined
  /**
   * Whether to use internals of ioredis for speed, if this version of it has the ones needed. Otherwise, and always with `false`, only
   * its public API is used; see the README. Default: the environment variable `REDIS_LOCK_FAST_PATH`, or `true`.
   */
  readonly fastPath?: boolean | undefined
  /**
   * The name of its connections in CLIENT LIST, set by CLIENT SETNAME, with `-` for characters that Redis does not allow there; permission
   * for that command is not required. At most 256 characters; empty for none. `ioredis.connectionName`, on a cluster
   * `ioredis.redisOptions.connectionName`, takes precedence. Default: host, pid and program, as in `web-3/4711/server.js`.
   */
  readonly label?: string | undefined
  /**
   * What to warn about once connected; `[]` for nothing. Default: everything, see {@link ServerWarning}.
   */
  readonly warnings?: ReadonlyArray<ServerWarning> | undefined
  /**
   * Any other option of ioredis: `tls`, `username`, `family`, `retryStrategy`, ...; with the URL of a cluster, the options of each
   * node's connection, without `retryStrategy`: to a node that is back there is a new one. Options that would let commands wait for a connection, or be sent again without our knowledge, are overridden;
   * values that ioredis would misread (`db: "abc"`) are refused.
   */
  readonly ioredis?: Omit<RedisOptions, "keyPrefix" | "stringNumbers" | "replyMapping"> | undefined
}

/**
 * A driver with its own connections to whatever its URL describes: one server, a cluster as with {@link layerCluster}, or a master
 * monitored by Sentinel as with {@link layerSentinel}.
 *
 * For one server it opens one connection for commands and, once a fiber waits or has held a lock for a second, one for messages;
 * grants that need `acknowledge` wait on a third. All are closed with the layer. Commands are never queued while disconnected:
 * they fail with `NotConnected`, and ioredis reconnects with increasing pauses.
 *
 * Fails when the first connection cannot be made: `ConnectionRefused`, `TimedOut`, `NotAuthenticated`, ...; with `NoPermission`
 * or `Failed` if the server refuses the database, now or after a reconnect: commands never go to another one. Fails with
 * `InvalidLockOptions` if the URL or an option is wrong. No error and no log line shows a password.
 *
 * If the server says that it is a replica (`ReadOnly`), such as a former master whose address now leads to the new one, the
 * connection is replaced, at most once a second, and those for subscriptions and `acknowledge` follow. Other commands in flight fail
 * with `ConnectionLost`, as the server may have been promoted and have run them; waiters retry by themselves. A `retryStrategy` that
 * gives up ends the connection for good: commands and waiters then fail with `Closed`, which is not transient.
 *
 * Logs a warning when a connection is lost, another one when reconnecting is refused or given up for good, and a line when the
 * connection is back.
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
): Layer.Layer<RedisDriver.RedisDriver, RedisDriver.RedisDriverError | InvalidLockOptions> => layerFor(options, {})

/** {@link layer} for locks with these options, if they are known. */
const layerFor = (
  options: IoRedisOptions,
  locks: RedisLock.RedisLockOptions
): Layer.Layer<RedisDriver.RedisDriver, RedisDriver.RedisDriverError | InvalidLockOptions> =>
  Layer.effect(
    RedisDriver.RedisDriver,
    Effect.gen(function* () {
      yield* checkOptions(options, `{ url: "redis://10.0.0.1" }`)
      const ioredis: RedisOptions = yield* checkIoredis(options.ioredis)
      const url = options.url === undefined ? undefined : yield* Effect.fromResult(RedisUrl.parse(options.url))
      if (url?.address._tag === "Cluster") yield* checkDatabase("ioredis.db", ioredis)
      const common = yield* commonOf(options, locks)
      return yield* url === undefined ? makeServer({}, ioredis, common) : makeAt(url, ioredis, common)
    })
  )

/** The options shared by all layers with connections of their own, checked. */
const commonOf = (
  options: Omit<IoRedisOptions, "url" | "ioredis">,
  { acknowledge, watchdogLeaseTime: leaseTime }: RedisLock.RedisLockOptions = {}
) =>
  Effect.gen(function* () {
    const commandTimeoutMillis = yield* timeoutOf("commandTimeout", options.commandTimeout ?? "3 seconds")
    const connectTimeoutMillis = yield* timeoutOf("connectTimeout", options.connectTimeout ?? "10 seconds")
    const { warnings: wanted = allWarnings } = options
    yield* checkWarnings(wanted)
    const kinds = acknowledge === undefined ? wanted : wanted.filter((kind) => kind !== "replicas")
    const connectionName = yield* RedisDriver.connectionName(options.label)
    // an invalid one is reported by the client
    const lease = leaseTime === undefined ? Option.none() : Duration.fromInput(leaseTime)
    const leaseMillis = Option.isSome(lease) ? Duration.toMillis(lease.value) : undefined
    const path = yield* choosePath(options.fastPath)
    const warnings = { kinds, leaseMillis }
    return { path, commandTimeoutMillis, connectTimeoutMillis, connectionName, warnings }
  })

const timeoutOf = (option: string, input: Duration.Input) =>
  Effect.map(RedisDriver.checkTimeout(option, input), Duration.toMillis)

/**
 * How waiters are woken on a cluster; all services that share locks must agree on it.
 *
 * - `auto`: sharded pub/sub (`SPUBLISH`, Redis 7) if the cluster supports it when the layer is built, as Redisson decides
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
export interface IoRedisClusterOptions extends Pick<IoRedisOptions, "fastPath" | "label" | "warnings"> {
  /**
   * Some of the nodes, `redis://host:port`; the others are discovered. User, password and TLS (`rediss://`) of the first URL
   * apply to all nodes; the others may repeat them. Redact URLs that contain a password.
   */
  readonly nodes: ReadonlyArray<string | Redacted.Redacted>
  /**
   * How long a command may take, including redirections and the opening of a connection, before it fails with `TimedOut`. A
   * connection that has received nothing for twice as long is sent a PING, and replaced if it stays silent for twice as long
   * again: a dead connection is noticed within six times this period, even one used only by subscriptions. Default: 3 seconds.
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
   * Any other option of ioredis' Cluster: `natMap`, `dnsLookup`, `redisOptions` with `tls`, ... Options that would let commands
   * wait for a lost connection, be sent again without our knowledge, or go to replicas, are overridden.
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
 * outcome is unknown is never sent again. Waiters subscribe at that master as well; when the slot moves or its master fails,
 * they are resubscribed at the slot's new master.
 *
 * While a master is gone and no replica has taken over, and for locks in a slot that is being moved, commands fail with
 * `NotConnected`, `ConnectionLost`, `TimedOut` or `ClusterDown`, all transient. Names whose braces do not make a hash tag
 * (`a{b`) fail with `InvalidLockName`, as their keys would live in different slots.
 *
 * Building the layer fails when no node can be reached: `ConnectionRefused`, `TimedOut`, `NotAuthenticated`, ...; with
 * `InvalidLockOptions` if a timeout is out of range.
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
      yield* checkOptions(options, `{ nodes: ["redis://10.0.0.1:6379"] }`)
      const ioredis: RedisOptions = yield* checkIoredis(options.ioredis?.redisOptions, "ioredis.redisOptions")
      yield* checkDatabase("ioredis.redisOptions.db", ioredis)
      const nodes = yield* serversOf("nodes", options.nodes)
      const common = yield* commonOf(options)
      const { ioredis: cluster, shardedPubSub } = options
      return yield* makeCluster(nodes, { cluster, ioredis, shardedPubSub }, common)
    })
  )

/**
 * How to connect through Redis Sentinel.
 *
 * @category options
 * @since 0.1.0
 */
export interface IoRedisSentinelOptions extends Pick<
  IoRedisOptions,
  "commandTimeout" | "fastPath" | "label" | "warnings"
> {
  /**
   * The addresses of the sentinels: `redis://[[user]:password@]host[:port]`, `rediss://` for TLS; default port: 26379. User,
   * password and TLS of the first URL apply to all sentinels, but not to the master, whose own are in `ioredis`. Redact URLs that
   * contain a password.
   */
  readonly sentinels: ReadonlyArray<string | Redacted.Redacted>
  /**
   * The name of the master in the sentinels' configuration. Default: `mymaster`.
   */
  readonly name?: string | undefined
  /**
   * How long connecting may take, to a sentinel or to the master. Default: 10 seconds.
   */
  readonly connectTimeout?: Duration.Input | undefined
  /**
   * Any other option of ioredis: `username`, `password`, `db` and `tls` of the master; `sentinelTLS`, `natMap`, ...
   */
  readonly ioredis?: Omit<RedisOptions, "keyPrefix" | "stringNumbers" | "replyMapping" | "role"> | undefined
}

/**
 * A master monitored by Redis Sentinel; otherwise like {@link layer}. After a failover the connections go to the new
 * master; until then commands fail with `NotConnected`, `ConnectionLost`, `TimedOut` or `ReadOnly`, all transient.
 *
 * Building the layer fails when no sentinel names a master that can be reached: `ConnectionRefused`, `TimedOut`, ...; with
 * `InvalidLockOptions` if a timeout is out of range.
 *
 * **When not to use**
 *
 * When two owners at once must be impossible: a failover may lose the newest grants, as on a cluster.
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
      yield* checkOptions(options, `{ sentinels: ["redis://10.0.0.1:26379"] }`)
      const ioredis: RedisOptions = yield* checkIoredis(options.ioredis)
      const sentinels = yield* serversOf("sentinels", options.sentinels)
      const { name = "mymaster" } = options
      yield* checkMasterName(name)
      const common = yield* commonOf(options)
      return yield* makeSentinel({ sentinels, name, master: {} }, ioredis, common)
    })
  )

/**
 * {@link layer} with its options from `Config`. Without an argument: `REDIS_URL` (default `redis://localhost:6379`),
 * `REDIS_LOCK_COMMAND_TIMEOUT` and `REDIS_LOCK_CONNECT_TIMEOUT` (durations such as `3 seconds`), and `REDIS_LOCK_LABEL`. It then fails with
 * `InvalidLockOptions` if only `REDIS_QUORUM` is set: that variable is for {@link layerRedisLockConfig}.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerConfig = (
  config?: Config.Wrap<Omit<IoRedisOptions, "ioredis">>
): Layer.Layer<RedisDriver.RedisDriver, RedisDriver.RedisDriverError | InvalidLockOptions | Config.ConfigError> =>
  Layer.unwrap(
    Effect.gen(function* () {
      if (config !== undefined) return layer(yield* Config.unwrap(config))
      const { quorum, url, ...timeouts } = yield* environment
      if (url === undefined && quorum.length > 0) {
        return yield* new InvalidLockOptions({
          option: "REDIS_QUORUM",
          problem: "a driver cannot lead to a quorum: use IoRedis.layerRedisLockConfig, or set REDIS_URL"
        })
      }
      return fromEnvironment(url, layer({ url, ...timeouts }))
    })
  )

/** With the names of the variables in its errors: one may not be set, so that it is localhost. */
const fromEnvironment = <A>(
  url: Redacted.Redacted | undefined,
  self: Layer.Layer<A, RedisDriver.RedisDriverError | InvalidLockOptions>
): typeof self =>
  Layer.effectContext(
    Effect.mapError(Layer.build(self), (error) => {
      if (error._tag === "InvalidLockOptions") {
        return error.option === "url" ? new InvalidLockOptions({ option: "REDIS_URL", problem: error.problem }) : error
      }
      return url === undefined ? explained(error, (message) => `${message}; REDIS_URL is not set, or empty`) : error
    })
  )

/** The environment variables of this module. An empty one counts as absent if it may list several URLs. */
const environment = Config.all({
  url: Config.withDefault(Config.Redacted("REDIS_URL"), undefined),
  quorum: Config.map(Config.withDefault(Config.Redacted("REDIS_QUORUM"), undefined), (urls) =>
    urls === undefined
      ? []
      : Redacted.value(urls)
          .split(/\s+/)
          .filter(Boolean)
          .map((url) => Redacted.make(url))
  ),
  commandTimeout: Config.withDefault(Config.Duration("REDIS_LOCK_COMMAND_TIMEOUT"), undefined),
  connectTimeout: Config.withDefault(Config.Duration("REDIS_LOCK_CONNECT_TIMEOUT"), undefined),
  label: Config.withDefault(Config.String("REDIS_LOCK_LABEL"), undefined)
})

/**
 * Options of {@link layerRedisLock}: those of the client, of the connections, and of the quorum if there is one.
 *
 * @category options
 * @since 0.3.0
 */
export interface IoRedisLockOptions extends RedisLock.RedisLockOptions, Omit<IoRedisOptions, "url" | "ioredis"> {
  /**
   * Where the locks are held, in the syntax of {@link RedisUrl.parse}: one URL, or one for each of the three or five members of a
   * quorum, which must be independent of each other. Redact URLs that contain a password.
   */
  readonly urls: ReadonlyArray<string | Redacted.Redacted>
  /**
   * How locks are acquired on a quorum. Default: as for `RedLock.make`.
   */
  readonly quorum?: QuorumOptions | undefined
}

/**
 * A lock client with its own connections: to whatever a single URL describes, or to a quorum of several, as with
 * `RedisLock.layerQuorum`. This lets a deployment decide where locks are held, without a change to the code.
 *
 * Before it connects, fails with `InvalidLockOptions` if one of the URLs is wrong or two lead to the same server; otherwise fails like
 * {@link layer}, on a quorum only if a majority cannot be reached.
 *
 * **When not to use**
 *
 * For members that differ in their ioredis options: `RedisLock.layerQuorum` takes a layer for each. Locks that a quorum cannot keep
 * (fair ones, semaphores, latches) need a single URL.
 *
 * @example
 * ```ts
 * import { IoRedis } from "@effect-redis-lock/ioredis"
 * import { Effect } from "effect"
 * import { Lock } from "effect-redis-lock"
 *
 * const live = IoRedis.layerRedisLock({ urls: ["redis://a", "redis://b", "redis://c"], watchdogLeaseTime: "20 seconds" })
 *
 * const program = Effect.log("only one of us").pipe(Lock.withLock("report"), Effect.provide(live))
 * ```
 *
 * @category layers
 * @since 0.3.0
 */
export const layerRedisLock = (
  options: IoRedisLockOptions
): Layer.Layer<RedisLock.RedisLock, RedisDriver.RedisDriverError | InvalidLockOptions> =>
  Layer.unwrap(
    Effect.gen(function* () {
      yield* checkOptions(options, `{ urls: ["redis://10.0.0.1"] }`)
      const { commandTimeout, connectTimeout, fastPath, quorum, urls, warnings, ...client } = options
      yield* checkMembers(urls)
      const members = urls.map((url) =>
        Layer.provide(
          RedisLock.layer(client),
          layerFor({ url, commandTimeout, connectTimeout, fastPath, label: client.label, warnings }, client)
        )
      )
      return members.length === 1 ? members[0]! : RedisLock.layerQuorum(members, quorum)
    })
  )

/**
 * {@link layerRedisLock} from the environment: `REDIS_QUORUM`, several URLs separated by spaces, or else `REDIS_URL` (default
 * `redis://localhost:6379`); `REDIS_LOCK_COMMAND_TIMEOUT` and `REDIS_LOCK_CONNECT_TIMEOUT`; and what `RedisLock.settings` reads.
 *
 * @example
 * ```ts
 * import { IoRedis } from "@effect-redis-lock/ioredis"
 * import { Effect } from "effect"
 * import { Lock } from "effect-redis-lock"
 *
 * const program = Effect.log("only one of us").pipe(
 *   Lock.withLock("report"),
 *   Effect.provide(IoRedis.layerRedisLockConfig)
 * )
 * ```
 *
 * @category layers
 * @since 0.3.0
 */
export const layerRedisLockConfig: Layer.Layer<
  RedisLock.RedisLock,
  RedisDriver.RedisDriverError | InvalidLockOptions | Config.ConfigError
> = Layer.unwrap(
  Effect.gen(function* () {
    const { quorum, url, ...timeouts } = yield* environment
    const options = { ...timeouts, ...(yield* RedisLock.settings) }
    return quorum.length > 0
      ? layerRedisLock({ urls: quorum, ...options })
      : fromEnvironment(url, layerRedisLock({ urls: [url ?? "redis://localhost:6379"], ...options }))
  })
)

/**
 * Options of {@link fromClient}.
 *
 * @category options
 * @since 0.1.0
 */
export interface FromClientOptions extends Pick<IoRedisOptions, "fastPath" | "warnings"> {
  /**
   * How long a command may take before it fails with `TimedOut`. Default: 3 seconds.
   */
  readonly commandTimeout?: Duration.Input | undefined
  /**
   * Plain or sharded pub/sub, if the client is a `Cluster`. Default: `auto`.
   */
  readonly shardedPubSub?: ShardedPubSub | undefined
}

/**
 * Uses an existing client of the application, a `Redis` or a `Cluster`. The layer never closes it; subscriptions have their own
 * connections with the same options, which are closed with the layer.
 *
 * **Gotchas**
 *
 * A client that re-sends commands after a reconnect (ioredis does by default) sends a PING instead of each of ours: a command in
 * flight when the connection broke counts as one with unknown outcome. Clients with `keyPrefix`, `stringNumbers` or RESP3
 * reply mapping are refused: use the `keyPrefix` of `RedisLock.layer` instead. So are those with a `reconnectOnError` that is true of every
 * error: the first reply over a connection may be one, and they would reconnect forever.
 *
 * While the application has a transaction open on the client (`multi({ pipeline: false })`), commands of the locks fail with
 * `ConnectionLost`, as they run with its `exec()` or not at all, and are taken back or repeated after it; their replies are among those of
 * `exec()`. Begin such transactions on another connection; `multi()` without that option is not affected.
 *
 * The locks are in the database that the client has selected when the layer is built. While the application has selected another one, commands
 * of the locks fail with `NotConnected`. The layer itself selects none: if a client that is connected already is not there, as the server has
 * refused its database, or if that cannot be told of a database other than 0, building the layer fails.
 *
 * Where the application has turned on CLIENT TRACKING on the client for a cache of its own, that stays as it is, and holders notice at their
 * next renewal, rather than at once, that somebody has deleted their lock. Turn it on before the layer is built: later, Redis refuses it, or
 * takes it in place of the layer's. The layer's own stays on when it has closed: send CLIENT TRACKING OFF before you turn yours on then.
 *
 * The layer does not replace a connection of the client on which no reply arrives although nobody has closed it. Give the client a `socketTimeout` such
 * as 10 seconds (ioredis 5.11 has that option, 5.3 has not), a `Cluster` in its `redisOptions`: otherwise each command times out until the operating
 * system gives the connection up, on Linux after about a quarter of an hour, and the locks that are held are lost.
 *
 * A `Cluster` of the application does not find its nodes again where all of them have come back at other addresses at once, unless it has been
 * connected to each of them, replicas included. {@link layerCluster} does.
 *
 * Once the client has ended (`disconnect()`, `quit()`, a `retryStrategy` that gives up) commands and waiters fail with `Closed`, which
 * is not transient, and a warning is logged; after `connect()` they work again. Close the layer first, then the client.
 *
 * The layer does not disconnect your client if its server has become a replica (`ReadOnly`). Make it reconnect with
 * `reconnectOnError: (error) => /READONLY|MASTERDOWN/.test(error.message)`, which ioredis calls for every error reply; otherwise a client
 * whose address has moved (DNS, a proxy) stays with the former master. Do not return 2, which would send the command again.
 *
 * A Sentinel client with `failoverDetector` may end for good if it hears of a failover while it looks up the master (ioredis 6.0).
 * {@link layerSentinel} does not.
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
      yield* checkClient(client)
      yield* checkOptions(options, `{ commandTimeout: "1 second" }`)
      const commandTimeoutMillis = yield* timeoutOf("commandTimeout", options.commandTimeout ?? "3 seconds")
      const { shardedPubSub, warnings: kinds = allWarnings } = options
      yield* checkWarnings(kinds)
      const path = yield* choosePath(options.fastPath)
      const warnings = { kinds, leaseMillis: undefined }
      return yield* makeApplicationDriver(client, { path, commandTimeoutMillis, warnings, shardedPubSub })
    })
  )
