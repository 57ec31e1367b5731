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
import { type InvalidLockOptions, RedisDriver } from "effect-redis-lock"
import { Cluster, type ClusterOptions, Redis, type RedisOptions } from "ioredis"
import { ClusterNodes, addressOf } from "./internal/ClusterNodes.ts"
import { Connector } from "./internal/Connector.ts"
import { makeEval } from "./internal/evaluate.ts"
import { Outlet } from "./internal/Outlet.ts"
import { makeEvalOnCluster } from "./internal/evaluateOnCluster.ts"
import { hashSlot } from "./internal/hashSlot.ts"
import { SentinelConnector } from "./internal/SentinelConnector.ts"
import { Subscriber } from "./internal/subscriber.ts"

/**
 * How to connect. Everything may be left out: a Redis on localhost:6379.
 *
 * @category options
 * @since 0.1.0
 */
export interface IoRedisOptions {
  /**
   * `redis://user:password@host:port/db`, or `rediss://` for TLS. Redact it where it carries a password.
   */
  readonly url?: string | Redacted.Redacted | undefined
  /**
   * How long a command may take before it fails with `TimedOut`. A connection that has been silent for twice as long while
   * commands wait is replaced. Default: 3 seconds.
   */
  readonly commandTimeout?: Duration.Input | undefined
  /**
   * How long connecting may take. Default: 10 seconds.
   */
  readonly connectTimeout?: Duration.Input | undefined
  /**
   * Any other option of ioredis: `tls`, `username`, `family`, `retryStrategy`, ... What would let commands wait for a
   * connection, or be sent again behind our back, is overruled.
   */
  readonly ioredis?: Omit<RedisOptions, "keyPrefix" | "stringNumbers" | "replyMapping"> | undefined
}

/**
 * One connection for commands and, once somebody waits, one for subscriptions; both to one server, both closed with the
 * layer. Commands are never queued while disconnected: they fail with `NotConnected`, and ioredis reconnects with growing
 * pauses.
 *
 * Fails when the first connection cannot be made: `ConnectionRefused`, `TimedOut`, `NotAuthenticated`, ...; with
 * `InvalidLockOptions` where a timeout is out of range.
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
      const commandTimeout = yield* RedisDriver.timeout("commandTimeout", options.commandTimeout ?? "3 seconds")
      const connectTimeout = yield* RedisDriver.timeout("connectTimeout", options.connectTimeout ?? "10 seconds")
      const way = { Connector: options.ioredis?.sentinels === undefined ? Connector : SentinelConnector }
      const settings = settingsOf({ ...way, ...options.ioredis }, connectTimeout)
      const url = plain(options.url)
      const client = yield* open(() => (url === undefined ? new Redis(settings) : new Redis(url, settings)))
      const outlet = yield* Outlet.make(client, Duration.toMillis(commandTimeout))
      yield* connect(client)
      return yield* makeDriver(outlet, commandTimeout)
    })
  )

/**
 * What all layers with connections of their own have in common.
 */
const settingsOf = <A extends object>(ioredis: A | undefined, connectTimeout: Duration.Duration) => ({
  ...(ioredis as A),
  connectTimeout: Duration.toMillis(connectTimeout),
  lazyConnect: true,
  // A command that waits for a connection, or is sent again after one was lost, may take a lock for a caller that
  // has long given up.
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
  autoResendUnfulfilledCommands: false
})

const plain = (url: string | Redacted.Redacted | undefined): string | undefined =>
  url === undefined || typeof url === "string" ? url : Redacted.value(url)

const open = <A extends Redis | Cluster>(make: () => A) =>
  Effect.acquireRelease(Effect.try({ try: make, catch: RedisDriver.errorOf }), (client) =>
    Effect.sync(() => client.disconnect())
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
   * of the first, for all nodes. Redact what carries a password.
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
      const commandTimeout = yield* RedisDriver.timeout("commandTimeout", options.commandTimeout ?? "3 seconds")
      const connectTimeout = yield* RedisDriver.timeout("connectTimeout", options.connectTimeout ?? "10 seconds")
      const cluster = yield* open(() => {
        const nodes = options.nodes.map((node) => new URL(plain(node)!))
        const [first] = nodes
        const credentials = {
          ...(first?.username ? { username: decodeURIComponent(first.username) } : {}),
          ...(first?.password ? { password: decodeURIComponent(first.password) } : {}),
          ...(first?.protocol === "rediss:" ? { tls: {} } : {})
        }
        return new Cluster(
          nodes.map(({ hostname, port }) => ({ host: hostname.replace(/^\[|\]$/g, ""), port: Number(port) || 6379 })),
          {
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
            redisOptions: settingsOf({ Connector, ...credentials, ...options.ioredis?.redisOptions }, connectTimeout)
          }
        )
      })
      const nodes = yield* ClusterNodes.make(cluster, Duration.toMillis(commandTimeout))
      yield* within(connectTimeout, connect(cluster))
      return yield* makeClusterDriver(nodes, commandTimeout, options.shardedPubSub)
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
   * Where the sentinels are: `redis://host:port` (default port: 26379).
   */
  readonly sentinels: ReadonlyArray<string>
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
   * Any other option of ioredis: `password`, `db` and `tls` of the master; `sentinelPassword`, `sentinelTLS`, `natMap`, ...
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
      const commandTimeout = yield* RedisDriver.timeout("commandTimeout", options.commandTimeout ?? "3 seconds")
      const connectTimeout = yield* RedisDriver.timeout("connectTimeout", options.connectTimeout ?? "10 seconds")
      const settings = settingsOf({ Connector: SentinelConnector, ...options.ioredis }, connectTimeout)
      const again = options.ioredis?.sentinelRetryStrategy ?? ((times: number) => Math.min(times * 100, 2000))
      let hasConnected = false
      const client = yield* open(
        () =>
          new Redis({
            sentinelCommandTimeout: Duration.toMillis(commandTimeout),
            // what the sentinels say of a failover ends a connection to a master that hangs
            failoverDetector: true,
            ...settings,
            sentinels: options.sentinels.map((sentinel) => {
              const { hostname, port } = new URL(sentinel)
              return { host: hostname.replace(/^\[|\]$/g, ""), port: Number(port) || 26379 }
            }),
            name: options.name ?? "mymaster",
            role: "master",
            // the first time it is the application that decides whether to try again
            sentinelRetryStrategy: (times: number) => (hasConnected ? again(times) : null)
          })
      )
      const outlet = yield* Outlet.make(client, Duration.toMillis(commandTimeout))
      yield* within(connectTimeout, connect(client))
      hasConnected = true
      return yield* makeDriver(outlet, commandTimeout)
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
      const commandTimeout = yield* RedisDriver.timeout("commandTimeout", options.commandTimeout ?? "3 seconds")
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
        return yield* RedisDriver.errorOf(new Error(`locks cannot use an ioredis client with the option ${problem}`))
      }
      if (client.status === "wait" || client.status === "connecting" || client.status === "connect") {
        yield* connect(client)
      }
      return client instanceof Cluster
        ? yield* makeClusterDriver(yield* ClusterNodes.make(client, undefined), commandTimeout, options.shardedPubSub)
        : yield* makeDriver(yield* Outlet.make(client, undefined), commandTimeout)
    })
  )

/** Connects for the first time, or waits for a client that is about to, and says why where it cannot. */
const connect = (client: Redis | Cluster): Effect.Effect<void, RedisDriver.RedisDriverError> =>
  Effect.callback((resume) => {
    // connect() itself only knows that the connection was closed; the reason comes as an event
    let reason: unknown
    const note = (error: unknown) => {
      // a cluster says only that all its nodes have failed; one that answers says why
      const { lastNodeError } = error as { readonly lastNodeError?: Error }
      reason = lastNodeError?.name === "ReplyError" ? lastNodeError : error
    }
    client.on("error", note)
    const connected = client.status === "wait" ? client.connect() : ready(client)
    connected
      .then(
        () => resume(Effect.void),
        (error) => resume(Effect.fail(RedisDriver.errorOf(reason ?? error)))
      )
      .finally(() => client.off("error", note))
  })

const within = <A>(timeout: Duration.Duration, self: Effect.Effect<A, RedisDriver.RedisDriverError>) =>
  Effect.timeoutOrElse(self, {
    duration: timeout,
    orElse: () => Effect.fail(RedisDriver.errorOf(new Error(`connecting timed out after ${Duration.format(timeout)}`)))
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

/** Every command reports its own failure; without a listener ioredis would also print it. */
const ignoreErrors = (client: Redis | Cluster): Effect.Effect<unknown, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const ignore = () => {}
      client.on("error", ignore)
      return ignore
    }),
    (ignore) => Effect.sync(() => client.off("error", ignore))
  )

const scanOf =
  (outlet: Outlet, commandTimeout: Duration.Duration) =>
  (pattern: string): Stream.Stream<string, RedisDriver.RedisDriverError> =>
    Stream.paginate("0", (cursor) =>
      Effect.tryPromise({
        try: () => outlet.client.scan(cursor, "MATCH", pattern, "COUNT", 1000, "TYPE", "hash"),
        catch: RedisDriver.errorOf
      }).pipe(
        Effect.timeoutOrElse({
          duration: commandTimeout,
          orElse: () =>
            Effect.suspend(() => {
              outlet.suspect()
              return Effect.fail(RedisDriver.errorOf(new Error(`timed out after ${Duration.format(commandTimeout)}`)))
            })
        }),
        Effect.map(([next, keys]) => [keys, next === "0" ? Option.none() : Option.some(next)] as const)
      )
    )

/** For subscriptions alone: whoever made them makes them again after a reconnect. */
const forSubscriptions = ({ patienceMillis }: Outlet | ClusterNodes): RedisOptions => ({
  ...(patienceMillis === undefined ? {} : { socketTimeout: 2 * patienceMillis }),
  lazyConnect: false,
  autoResubscribe: false,
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
  autoResendUnfulfilledCommands: false
})

const makeDriver = (
  outlet: Outlet,
  commandTimeout: Duration.Duration
): Effect.Effect<RedisDriver.RedisDriver["Service"], never, Scope.Scope> =>
  Effect.gen(function* () {
    const { client } = outlet
    yield* ignoreErrors(client)
    const evalUnsafe = yield* makeEval(outlet, Duration.toMillis(commandTimeout))
    const subscriber = yield* Subscriber.make({
      sharded: false,
      slot: () => 0,
      serverOf: () => "",
      open: () => client.duplicate(forSubscriptions(outlet)),
      refresh: () => {}
    })
    return {
      eval: RedisDriver.evalOf(evalUnsafe),
      evalUnsafe,
      subscribe: RedisDriver.subscribeOf(subscriber.subscribe),
      subscribeUnsafe: subscriber.subscribe,
      scan: scanOf(outlet, commandTimeout),
      publish: "PUBLISH",
      slot: () => 0,
      server: () => outlet.connection,
      commandTimeoutMillis: Duration.toMillis(commandTimeout)
    }
  })

const makeClusterDriver = (
  nodes: ClusterNodes,
  commandTimeout: Duration.Duration,
  shardedPubSub: ShardedPubSub = "auto"
): Effect.Effect<RedisDriver.RedisDriver["Service"], RedisDriver.RedisDriverError, Scope.Scope> =>
  Effect.gen(function* () {
    const { cluster } = nodes
    yield* ignoreErrors(cluster)
    const evalUnsafe = yield* makeEvalOnCluster(nodes, Duration.toMillis(commandTimeout))
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
      open: (server) =>
        nodes.at(server)!.client.duplicate({
          ...forSubscriptions(nodes),
          readOnly: false,
          retryStrategy: null
        }),
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
    return {
      eval: RedisDriver.evalOf(evalUnsafe),
      evalUnsafe,
      subscribe: RedisDriver.subscribeOf(subscriber.subscribe),
      subscribeUnsafe: subscriber.subscribe,
      scan: (pattern) =>
        Stream.suspend(() => Stream.fromIterable(nodes.masters)).pipe(
          Stream.flatMap((node) => scanOf(node, commandTimeout)(pattern))
        ),
      publish: sharded ? "SPUBLISH" : "PUBLISH",
      slot: hashSlot,
      server: (key) => nodes.ownerOf(hashSlot(key))?.connection ?? "",
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
    catch: RedisDriver.errorOf
  })
