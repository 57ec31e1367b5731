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
import { Redis, type RedisOptions } from "ioredis"
import { makeEval } from "./internal/evaluate.ts"
import { makeSubscriber } from "./internal/subscriber.ts"

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
      const settings = {
        ...options.ioredis,
        connectTimeout: Duration.toMillis(connectTimeout),
        socketTimeout: 2 * Duration.toMillis(commandTimeout),
        lazyConnect: true,
        // A command that waits for a connection, or is sent again after one was lost, may take a lock for a caller that
        // has long given up.
        enableOfflineQueue: false,
        maxRetriesPerRequest: 0,
        autoResendUnfulfilledCommands: false
      }
      const url =
        options.url === undefined || typeof options.url === "string" ? options.url : Redacted.value(options.url)
      const client = yield* Effect.acquireRelease(
        Effect.try({
          try: () => (url === undefined ? new Redis(settings) : new Redis(url, settings)),
          catch: RedisDriver.errorOf
        }),
        (client) => Effect.sync(() => client.disconnect())
      )
      yield* connect(client)
      return yield* makeDriver(client, commandTimeout)
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
}

/**
 * Uses a client that the application has already. It is never closed by us; a duplicate of it serves the subscriptions and
 * is closed with the layer.
 *
 * **Gotchas**
 *
 * A client that re-sends commands after a reconnect (ioredis does by default) sends a PING instead of each of ours: what was
 * on its way when the connection broke counts as of unknown outcome. Clients with `keyPrefix`, `stringNumbers` or RESP3
 * reply mapping are refused: use the `keyPrefix` of `RedisLock.layer` instead.
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
  client: Redis,
  options: FromClientOptions = {}
): Layer.Layer<RedisDriver.RedisDriver, RedisDriver.RedisDriverError | InvalidLockOptions> =>
  Layer.effect(
    RedisDriver.RedisDriver,
    Effect.gen(function* () {
      const commandTimeout = yield* RedisDriver.timeout("commandTimeout", options.commandTimeout ?? "3 seconds")
      const { keyPrefix, replyMapping, stringNumbers } = client.options
      const problem = keyPrefix
        ? "keyPrefix: give it to RedisLock.layer instead"
        : stringNumbers
          ? "stringNumbers"
          : replyMapping === "resp3"
            ? `replyMapping: "resp3"`
            : undefined
      if (problem !== undefined) {
        return yield* RedisDriver.errorOf(new Error(`locks cannot use an ioredis client with the option ${problem}`))
      }
      if (client.status === "wait" || client.status === "connecting" || client.status === "connect") {
        yield* connect(client)
      }
      return yield* makeDriver(client, commandTimeout)
    })
  )

/** Connects for the first time, or waits for a client that is about to, and says why where it cannot. */
const connect = (client: Redis): Effect.Effect<void, RedisDriver.RedisDriverError> =>
  Effect.callback((resume) => {
    // connect() itself only knows that the connection was closed; the reason comes as an event
    let reason: unknown
    const note = (error: unknown) => {
      reason = error
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

const ready = (client: Redis): Promise<void> =>
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

const makeDriver = (
  client: Redis,
  commandTimeout: Duration.Duration
): Effect.Effect<RedisDriver.RedisDriver["Service"], never, Scope.Scope> =>
  Effect.gen(function* () {
    yield* Effect.acquireRelease(
      Effect.sync(() => {
        // Every command reports its own failure; without a listener ioredis would also print it.
        const ignore = () => {}
        client.on("error", ignore)
        return ignore
      }),
      (ignore) => Effect.sync(() => client.off("error", ignore))
    )
    const evaluate = yield* makeEval(client, Duration.toMillis(commandTimeout))
    const subscribe = yield* makeSubscriber(client)
    return {
      eval: evaluate,
      subscribe,
      scan: (pattern) =>
        Stream.paginate("0", (cursor) =>
          Effect.map(
            Effect.tryPromise({
              try: () => client.scan(cursor, "MATCH", pattern, "COUNT", 1000, "TYPE", "hash"),
              catch: RedisDriver.errorOf
            }),
            ([next, keys]) => [keys, next === "0" ? Option.none() : Option.some(next)] as const
          )
        ),
      publish: "PUBLISH",
      slot: () => 0
    }
  })
