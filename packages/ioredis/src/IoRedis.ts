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
import { choosePath } from "./internal/choosePath.ts"
import { checkIoredis, nodesOf, sentinelsOf, targetOf } from "./internal/options.ts"
import { makeCluster, makeSentinel, makeServer } from "./internal/ownDriver.ts"
import { checkMembers } from "./internal/quorumUrls.ts"
import { allWarnings, checkWarnings, problemOf } from "./internal/serverWarnings.ts"

/**
 * What a driver warns of, once, with the remedy, when it has connected. It asks each server for INFO in the background; where that is
 * not permitted, it says nothing.
 *
 * - `eviction`: the server may evict locks when its memory is full
 * - `persistence`: the server has saved nothing to disk since it started, and leases are longer than a minute. Only
 *   {@link layerRedisLock} knows of leases, by `watchdogLeaseTime`; elsewhere this is a debug line
 * - `replicas`: the server has replicas, so that a failover may grant a lock twice; not where {@link layerRedisLock} is given
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
 * What a server answers to INFO, and this machine's time before it was sent and after the answer was read, milliseconds since
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
 * What {@link ServerWarning}s the answer of a server to INFO is a reason for, each with the remedy: the checks that the drivers make when
 * they have connected. `leaseTime` is that of the locks, where it is known.
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
 * How to connect. Everything may be left out: a Redis on localhost:6379.
 *
 * @category options
 * @since 0.1.0
 */
export interface IoRedisOptions {
  /**
   * One server: `redis://[[user]:password@]host[:port][/database]`, or `unix:///path[?db=database]`, or just the path of a socket. A
   * cluster: `redis+cluster://host,host`. The master that sentinels name: `redis+sentinel://host,host/name`. TLS: `rediss` in place of
   * `redis`, and `?ca=file&cert=file&key=file` where it needs files. See {@link RedisUrl.parse}. What it says wins over `ioredis`.
   * Redact it where it carries a password.
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
   * The name of its connections in CLIENT LIST, by CLIENT SETNAME, with `-` for what Redis does not allow there; the right to that command
   * is not needed. At most 256 characters; empty for none. `ioredis.connectionName` wins. Default: host, pid and program, as in
   * `web-3/4711/server.js`.
   */
  readonly label?: string | undefined
  /**
   * What to warn of once the connection stands; `[]` for nothing. Default: everything, see {@link ServerWarning}.
   */
  readonly warnings?: ReadonlyArray<ServerWarning> | undefined
  /**
   * Any other option of ioredis: `tls`, `username`, `family`, `retryStrategy`, ...; with the URL of a cluster, the options of each
   * node's connection. What would let commands wait for a connection, or be sent again without our knowing, is overruled; values that
   * ioredis takes for something else (`db: "abc"`) are refused.
   */
  readonly ioredis?: Omit<RedisOptions, "keyPrefix" | "stringNumbers" | "replyMapping"> | undefined
}

/**
 * A driver with connections of its own, to what its URL leads to: one server, a cluster as with {@link layerCluster}, or the master
 * that sentinels name as with {@link layerSentinel}.
 *
 * To one server there is one connection for commands and, once somebody waits, one for subscriptions; both are closed with the
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
): Layer.Layer<RedisDriver.RedisDriver, RedisDriver.RedisDriverError | InvalidLockOptions> => layerFor(options, {})

/** {@link layer} for locks with these options, as far as they are known. */
const layerFor = (
  options: IoRedisOptions,
  { acknowledge, watchdogLeaseTime: leaseTime }: RedisLock.RedisLockOptions
): Layer.Layer<RedisDriver.RedisDriver, RedisDriver.RedisDriverError | InvalidLockOptions> =>
  Layer.effect(
    RedisDriver.RedisDriver,
    Effect.gen(function* () {
      const ioredis = (yield* Effect.fromResult(checkIoredis(options.ioredis))) ?? {}
      const target = options.url === undefined ? undefined : yield* targetOf(options.url)
      if (target?._tag === "Cluster") yield* checkDatabase("ioredis.db", ioredis)
      const { warnings, ...others } = yield* commonOf(options, leaseTime)
      const kinds = acknowledge === undefined ? warnings.kinds : warnings.kinds.filter((kind) => kind !== "replicas")
      const common = { ...others, warnings: { ...warnings, kinds } }
      switch (target?._tag) {
        case "Cluster":
          return yield* makeCluster(target.nodes, { ioredis }, common)
        case "Sentinel":
          return yield* makeSentinel(target, ioredis, common)
        default:
          return yield* makeServer(target?.address ?? {}, ioredis, common)
      }
    })
  )

/** What all layers with connections of their own are told alike, checked. */
const commonOf = (options: Omit<IoRedisOptions, "url" | "ioredis">, leaseTime?: Duration.Input) =>
  Effect.gen(function* () {
    const timeouts = yield* timeoutsOf(options)
    const kinds = yield* checkWarnings(options.warnings)
    const connectionName = yield* RedisDriver.connectionName(options.label)
    // an invalid one is reported by the client
    const lease = leaseTime === undefined ? Option.none() : Duration.fromInput(leaseTime)
    const leaseMillis = Option.isSome(lease) ? Duration.toMillis(lease.value) : undefined
    return { ...timeouts, connectionName, path: yield* choosePath(options.fastPath), warnings: { kinds, leaseMillis } }
  })

/** A cluster has one database, which its URL cannot change. */
const checkDatabase = (option: string, { db = 0 }: RedisOptions): Effect.Effect<void, InvalidLockOptions> =>
  Number(db) === 0
    ? Effect.void
    : Effect.fail(new InvalidLockOptions({ option, problem: "a cluster has only database 0" }))

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
   * The name of its connections in CLIENT LIST, by CLIENT SETNAME, with `-` for what Redis does not allow there; the right to that command
   * is not needed. At most 256 characters; empty for none. `ioredis.redisOptions.connectionName` wins. Default: host, pid and program, as in
   * `web-3/4711/server.js`.
   */
  readonly label?: string | undefined
  /**
   * What to warn of once the connection stands; `[]` for nothing. Default: everything, see {@link ServerWarning}.
   */
  readonly warnings?: ReadonlyArray<ServerWarning> | undefined
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
      const given = yield* Effect.fromResult(checkIoredis(options.ioredis?.redisOptions, "ioredis.redisOptions"))
      const ioredis: RedisOptions = given ?? {}
      yield* checkDatabase("ioredis.redisOptions.db", ioredis)
      const nodes = yield* nodesOf(options.nodes)
      const common = yield* commonOf(options)
      const { ioredis: cluster, shardedPubSub } = options
      return yield* makeCluster(nodes, { cluster, ioredis, shardedPubSub }, common)
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
   * The name of its connections in CLIENT LIST, by CLIENT SETNAME, with `-` for what Redis does not allow there; the right to that command
   * is not needed. At most 256 characters; empty for none. `ioredis.connectionName` wins. Default: host, pid and program, as in
   * `web-3/4711/server.js`.
   */
  readonly label?: string | undefined
  /**
   * What to warn of once the connection stands; `[]` for nothing. Default: everything, see {@link ServerWarning}.
   */
  readonly warnings?: ReadonlyArray<ServerWarning> | undefined
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
      const ioredis = yield* Effect.fromResult(checkIoredis(options.ioredis))
      const sentinels = yield* sentinelsOf(options.sentinels)
      const common = yield* commonOf(options)
      return yield* makeSentinel({ sentinels, name: options.name ?? "mymaster", master: {} }, ioredis ?? {}, common)
    })
  )

/**
 * {@link layer} with its options from `Config`. Without an argument: `REDIS_URL` (default `redis://localhost:6379`),
 * `REDIS_LOCK_COMMAND_TIMEOUT` and `REDIS_LOCK_CONNECT_TIMEOUT` (durations such as `3 seconds`), and `REDIS_LOCK_LABEL`. It then fails with
 * `InvalidLockOptions` where only `REDIS_QUORUM` is set, which takes {@link layerRedisLockConfig}.
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
      return layer({ url, ...timeouts })
    })
  )

/** The environment variables of this module. Empty ones count as absent where they may list several URLs. */
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
   * Where the locks are held, as {@link RedisUrl.parse} reads it: one URL, or one for each member of a quorum, three or five, which
   * must be independent of each other. Redact what carries a password.
   */
  readonly urls: ReadonlyArray<string | Redacted.Redacted>
  /**
   * How locks are acquired on a quorum. Default: as `RedLock.make` says.
   */
  readonly quorum?: QuorumOptions | undefined
}

/**
 * A lock client with connections of its own: of what a single URL leads to, or of a quorum of several, as with
 * `RedisLock.layerQuorum`. So a deployment can decide where locks are held, and no code changes.
 *
 * Fails before it connects to any, with `InvalidLockOptions`, where one of the URLs is wrong, or two lead to one server; otherwise like
 * {@link layer}, on a quorum only where a majority cannot be reached.
 *
 * **When not to use**
 *
 * For members with ioredis options of their own: `RedisLock.layerQuorum` takes a layer for each. Locks that a quorum cannot keep
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
    const { quorum, url = "redis://localhost:6379", ...timeouts } = yield* environment
    return layerRedisLock({ urls: quorum.length > 0 ? quorum : [url], ...timeouts, ...(yield* RedisLock.settings) })
  })
)

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
  /**
   * What to warn of once the connection stands; `[]` for nothing. Default: everything, see {@link ServerWarning}.
   */
  readonly warnings?: ReadonlyArray<ServerWarning> | undefined
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
      const warnings = { kinds: yield* checkWarnings(options.warnings), leaseMillis: undefined }
      const path = yield* choosePath(options.fastPath)
      const { shardedPubSub } = options
      return yield* makeApplicationDriver(client, { path, commandTimeout, warnings, shardedPubSub })
    })
  )
