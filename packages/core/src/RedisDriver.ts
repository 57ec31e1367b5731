/**
 * The narrow port through which the locks talk to Redis. Implementations: `@effect-redis-lock/ioredis` (the default), and
 * {@link layerRedis} over Effect's own `Redis` service.
 *
 * A driver of your own has four tasks: to run a script, subscribe to a channel, scan keys, and classify failures.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redis from "effect/persistence/Redis"
import * as Queue from "effect/Queue"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { parseTimeout } from "./internal/options/acquireOptions.ts"
import { checkLabel, connectionName as connectionNameOf, defaultLabel } from "./internal/options/ClientOptions.ts"
import { allText, causeText, isError, jsonWithMessage, showable } from "./internal/report/shown.ts"
import { storeReasons } from "./internal/report/storeReasons.ts"
import * as Startable from "./internal/store/startable.ts"
import { type InvalidLockOptions, StoreReason } from "./LockError.ts"

/**
 * A Lua script, its SHA-1 and the name of its file under `lua/`.
 *
 * @category models
 * @since 0.1.0
 */
export interface RedisScript {
  readonly name: string
  readonly sha1: string
  readonly lua: string
  /**
   * Whether the driver should write it to the socket before `eval` returns control, with its text unless the server certainly
   * knows the script, because the caller may block the event loop next. With a driver that sends it later, a section that blocks
   * the event loop from its first moment loses its lock; nothing else changes.
   */
  readonly isUrgent?: boolean
  /**
   * Whether the server should report the next change of each key that the script reads, see `invalidations`. A driver without
   * client tracking runs it like any other script.
   */
  readonly isTracked?: boolean
}

/**
 * Redis's reply to a script, over RESP2 or RESP3.
 *
 * @category models
 * @since 0.1.0
 */
export type Reply = number | string | null | ReadonlyArray<Reply>

/**
 * A signal of a subscription: that it is established (first, and again after every reconnect, since messages may have been
 * missed), or a message.
 *
 * @category models
 * @since 0.1.0
 */
export type Signal = { readonly _tag: "Subscribed" } | { readonly _tag: "Message"; readonly message: string }

/**
 * A failed command. Its `reason` decides how the locks react, so classify with care: {@link reasonOf} knows the error codes
 * of Redis and the usual socket errors.
 *
 * @category errors
 * @since 0.1.0
 */
export class RedisDriverError extends Schema.TaggedError<RedisDriverError>("effect-redis-lock/RedisDriverError")(
  "RedisDriverError",
  {
    reason: StoreReason,
    cause: Schema.Defect()
  }
) {
  override get message(): string {
    // what the reason means is in the cause
    const [, ...advice] = storeReasons[this.reason].split(". ")
    return [`${this.reason}: ${causeText(this.cause).replace(/\.$/, "")}`, ...advice].join(". ")
  }
}
jsonWithMessage(RedisDriverError)

/**
 * A started operation. `cancel` abandons it: no callback follows, and a command that was not sent yet is never sent.
 *
 * @category models
 * @since 0.2.0
 */
export type Cancellable = Startable.Cancellable

/**
 * Runs a script and calls back once, possibly before it returns; see {@link evalOf}.
 *
 * @category models
 * @since 0.2.0
 */
export type EvalUnsafe = (
  script: RedisScript,
  keys: ReadonlyArray<string>,
  args: ReadonlyArray<string | number>,
  onExit: (exit: Exit.Exit<Reply, RedisDriverError>) => void
) => Cancellable

/**
 * Subscribes, and calls back with every signal until it is cancelled or fails; see {@link subscribeOf}.
 *
 * @category models
 * @since 0.2.0
 */
export type SubscribeUnsafe = (
  channel: string,
  onSignal: (signal: Signal) => void,
  onFailure: (error: RedisDriverError) => void
) => Cancellable

/**
 * The types of key that are scanned: locks are hashes, the leased permits of a semaphore a sorted set.
 *
 * @category models
 * @since 0.3.0
 */
export type KeyType = "hash" | "zset"

/**
 * The port through which the locks use Redis.
 *
 * - `eval` runs a script atomically: by SHA, recovering from NOSCRIPT itself. It never queues a command while disconnected
 *   (`NotConnected`), and fails with `TimedOut` when no reply arrives in time; an abandoned command is never sent
 *   afterwards. Commands are sent in the order of the calls.
 * - `subscribe` stays subscribed while the stream runs, through reconnects.
 * - A driver over a callback-based client makes both with {@link evalOf} and {@link subscribeOf}: a quorum then asks its
 *   members without a fiber for each, and a message goes straight to its waiters.
 * - `scan` finds the keys of a type that match a glob pattern (SCAN with TYPE, never KEYS); a key may appear twice.
 * - `publish` is the command by which scripts notify waiters: SPUBLISH where Redisson would use sharded pub/sub.
 * - `sharesSubscriptions` says whether subscriptions share a connection. Only then is a lock handed over from process to process, as a
 *   waiter listens to three channels for that instead of one.
 * - `slot` identifies the group of keys that one script may touch together: constant on a single server, the hash slot on a
 *   cluster.
 * - `server` names the server that would run a script on a key now, with a new name after a reconnect, since another server
 *   may answer. Commands carry deadlines by that server's clock.
 * - `invalidations` reports changes to the keys that tracked scripts have read.
 * - `commandTimeoutMillis` is how long `eval` waits for a reply. A command that creates something and arrives later, or more than
 *   10 seconds after it was sent, is refused by its script.
 *
 * @category services
 * @since 0.1.0
 */
export class RedisDriver extends Context.Service<
  RedisDriver,
  {
    readonly eval: (
      script: RedisScript,
      keys: ReadonlyArray<string>,
      args: ReadonlyArray<string | number>
    ) => Effect.Effect<Reply, RedisDriverError>
    readonly subscribe: (channel: string) => Stream.Stream<Signal, RedisDriverError>
    readonly scan: (pattern: string, type: KeyType) => Stream.Stream<string, RedisDriverError>
    readonly publish: "PUBLISH" | "SPUBLISH"
    /** Default: each has a connection of its own. */
    readonly sharesSubscriptions?: boolean | undefined
    readonly slot: (key: string) => number
    readonly server: (key: string) => string
    /** The address of its server for messages: host and port, if it has any. */
    readonly address?: (() => string | undefined) | undefined
    readonly commandTimeoutMillis: number
    /**
     * Sends commands together to the server that would run a script on the key now, over a connection that nothing else
     * uses: some of them block it (WAIT). Each has its own reply or error; the whole call fails, with unknown
     * outcome, if not all replies arrive in time. Absent in a driver without such connections, whose locks cannot wait for
     * replicas.
     */
    readonly sendBlocking?:
      | ((
          key: string,
          commands: ReadonlyArray<ReadonlyArray<string | number>>,
          timeoutMillis: number
        ) => Effect.Effect<ReadonlyArray<Reply | RedisDriverError>, RedisDriverError>)
      | undefined
    /**
     * Emits whenever a connection for commands has been re-established, perhaps to another server, and when commands go to
     * another server over a connection that stood before; absent if that is not known.
     */
    readonly reconnects?: Stream.Stream<void> | undefined
    /**
     * Invalidation messages for keys that tracked scripts have read (CLIENT TRACKING with OPTIN and NOLOOP): one for each key,
     * when another connection has changed it; the message is the key's name. `Subscribed` comes when tracking begins, and again
     * whenever messages may have been missed or the server has forgotten what was read: after a reconnect of either connection,
     * and after FLUSHALL. Fails if the server refuses. Absent in a driver without tracking: its locks notice a loss at the next
     * renewal.
     */
    readonly invalidations?: Stream.Stream<Signal, RedisDriverError> | undefined
  }
>()("effect-redis-lock/RedisDriver") {}

/**
 * The `eval` of a driver over a callback-based client. The locks call `evalUnsafe` itself, without a fiber or an Effect for each
 * command; a function that wraps the result, or replaces it, is called instead of it, and the Effect that it returns is run.
 *
 * @category drivers
 * @since 0.2.0
 */
export const evalOf = (evalUnsafe: EvalUnsafe): RedisDriver["Service"]["eval"] => {
  const run: RedisDriver["Service"]["eval"] = (script, keys, args) =>
    Startable.fromCallback((resume) => evalUnsafe(script, keys, args, resume))
  // of: spies copy the properties of what they wrap
  return Object.assign(run, { [Startable.StartKey]: { of: run, evalUnsafe } })
}

/**
 * The `subscribe` of a driver over a callback-based client.
 *
 * @category drivers
 * @since 0.2.0
 */
export const subscribeOf =
  (subscribeUnsafe: SubscribeUnsafe): RedisDriver["Service"]["subscribe"] =>
  (channel) =>
    Startable.startableStream((onSignal, onFailure) => subscribeUnsafe(channel, onSignal, onFailure))

const codes: ReadonlyArray<readonly [RegExp, StoreReason]> = [
  // first: the scripts' own errors contain a key, whose name may contain anything
  [/\bWRONGTYPE\b/, "WrongType"],
  [/^(ERR )?OOM\b/, "OutOfMemory"],
  // the latter from a replica without its master, which serves nothing (replica-serve-stale-data no)
  [/\bREADONLY\b|\bMASTERDOWN\b/, "ReadOnly"],
  // what WAIT answers on a master that has become a replica, meanwhile or before
  [/^UNBLOCKED\b|cannot be used with replica instances/, "ReadOnly"],
  [/\bMISCONF\b/, "PersistenceFailed"],
  [/\bNOREPLICAS\b/, "NotEnoughReplicas"],
  [/\bLOADING\b/, "Loading"],
  [/\bBUSY\b/, "Busy"],
  [/\bNOPERM\b|ACL failure in script|The user executing the script can't/, "NoPermission"],
  [/\bNOAUTH\b|\bWRONGPASS\b|invalid password|without any password configured|^DENIED\b/, "NotAuthenticated"],
  [/\bCLUSTERDOWN\b|\bTRYAGAIN\b/, "ClusterDown"],
  [/\bCROSSSLOT\b|^(MOVED|ASK) \d/, "ClusterMismatch"],
  [/\bOOM\b/, "OutOfMemory"],
  [
    /client is (offline|closed)|ClientOffline|ClientClosed|Stream isn't writeable|offline queue is disabled/i,
    "NotConnected"
  ],
  // not while connecting
  [/\b(read|write) E(HOST|NET)(UNREACH|DOWN)\b/, "ConnectionLost"],
  [
    /ECONNREFUSED|ENOTFOUND|EAI_(AGAIN|FAIL)|EHOST(UNREACH|DOWN)|ENETUNREACH|EADDRNOTAVAIL|E[MN]FILE|ENOBUFS|ENOMEM|connect (ENOENT|EAGAIN)|max number of clients|sentinels are unreachable|refresh slots cache|startup nodes is available/,
    "ConnectionRefused"
  ],
  // "timeout" alone is what ioredis says of a cluster's node that did not name its slots in time
  [/ETIMEDOUT|TimeoutError|timed out|(Socket|Connection) timeout|^timeout\b/i, "TimedOut"],
  [
    /ECONNRESET|ECONNABORTED|ENETDOWN|EPIPE|ERR_REDIS_CONNECTION_CLOSED|ERR_REDIS_IDLE_TIMEOUT|Connection is (closed|aborted|discarded)|due to connection close|Socket closed|SocketClosed|ended|disconnect|MaxRetriesPerRequest|max retries/i,
    "ConnectionLost"
  ]
]

/**
 * Classifies an error of a Redis client by its code, name and message.
 *
 * @example
 * ```ts
 * import { RedisDriver } from "effect-redis-lock"
 *
 * RedisDriver.reasonOf(new Error("OOM command not allowed when used memory > 'maxmemory'.")) // "OutOfMemory"
 * ```
 *
 * @category errors
 * @since 0.1.0
 */
export const reasonOf = (error: unknown): StoreReason => {
  const text = allText(error)
  for (const [pattern, reason] of codes) {
    if (pattern.test(text)) return reason
  }
  return isError(error) && error instanceof AggregateError && error.errors.length > 0
    ? reasonOf(error.errors[0])
    : "Failed"
}

/**
 * Wraps an error of a Redis client; see {@link reasonOf}.
 *
 * @category errors
 * @since 0.1.0
 */
export const makeError = (cause: unknown): RedisDriverError =>
  new RedisDriverError({ reason: reasonOf(cause), cause: showable(cause) })

/**
 * The failure of a command to which Redis has answered `QUEUED`: the application has begun a transaction (MULTI) on the connection that it
 * shares with the driver. The locks and `ScriptDeadlines` find that out for `eval`; whoever calls `eval` directly has to check whether the
 * reply is `QUEUED`. A driver over an application's connection fails with it in `scan`.
 *
 * @category errors
 * @since 0.3.0
 */
export const inTransaction: RedisDriverError = new RedisDriverError({
  reason: "ConnectionLost",
  cause: new Error(
    "the application has begun a transaction (MULTI) on the connection that it shares with the locks, so the command runs with EXEC or not at all. Begin transactions on another connection, or send them as one pipeline"
  )
})

/**
 * Whether an error says that the server does not know the script (NOSCRIPT), so that its text must be sent.
 *
 * @category errors
 * @since 0.1.0
 */
export const isUnknownScript = (error: unknown): boolean => causeText(error).includes("NOSCRIPT")

/**
 * Options of {@link layerRedisWith}.
 *
 * @category models
 * @since 0.1.0
 */
export interface LayerRedisOptions {
  /**
   * The longest a command may take, at most a day. Default: 3 seconds.
   */
  readonly commandTimeout?: Duration.Input | undefined
  /**
   * Handles a silent connection: it runs when a command has timed out or was abandoned, and the PING that follows is not answered within a
   * command timeout. It runs only once until a reply arrives. Have it make the client reconnect, as the recipe in docs/connecting.md does: the `Redis`
   * service does not do so by itself. Default: nothing.
   */
  readonly onSilence?: Effect.Effect<unknown> | undefined
}

/**
 * A driver over Effect's `Redis` service (`effect/persistence/Redis`), so that an application's `NodeRedis`, `BunRedis` or
 * `DenoRedis` layer serves the locks as well. It supports one server, and shares the application's connection. Each use of
 * this layer is a driver of its own, over the `Redis` provided to it.
 *
 * **Details**
 *
 * That service hides reconnects and opens a connection per subscription; waiters then rely on the fallback interval a
 * little more often, a release wakes a waiter of every process rather than hand the lock over, and a holder notices at its next
 * renewal, rather than at once, that somebody has deleted its lock in Redis. Give node-redis
 * `disableOfflineQueue: true`: with its offline queue a command waits for the server to come back, and only the rollback of
 * abandoned acquisitions prevents ghost locks.
 *
 * When a command has timed out, the driver sends a PING; until a reply arrives, other commands fail at once with
 * `NotConnected`, unsent.
 *
 * **Gotchas**
 *
 * node-redis does not replace a half-open connection, one that nobody has closed but on which no reply arrives (a NAT that
 * has forgotten it, a machine that is gone). `pingInterval` does not help, as it waits for the answer without limit, and
 * `socketTimeout` closes idle connections permanently instead. Held locks are then lost, and closing its layer waits for
 * commands that are never answered. The recipe in docs/connecting.md has the driver replace the connection.
 *
 * **When not to use**
 *
 * On Redis Cluster and Sentinel, and wherever ioredis is available: `@effect-redis-lock/ioredis` distinguishes lost
 * connections from refused ones and reports when it has resubscribed.
 *
 * @example
 * ```ts
 * import { NodeRedis } from "@effect/platform-node"
 * import { Effect, Layer } from "effect"
 * import { Lock, RedisDriver, RedisLock } from "effect-redis-lock"
 *
 * const live = RedisLock.layer().pipe(
 *   Layer.provide(RedisDriver.layerRedis),
 *   Layer.provide(NodeRedis.layer({ url: "redis://localhost:6379", disableOfflineQueue: true }))
 * )
 *
 * const program = Effect.succeed("written").pipe(Lock.withLock("report"), Effect.provide(live))
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layerRedis: Layer.Layer<RedisDriver, never, Redis.Redis> = Layer.fresh(
  Layer.suspend(() => Layer.orDie(layerRedisWith({}))) // the default options are valid
)

/**
 * {@link layerRedis} with options. Fails with `InvalidLockOptions` if one is out of range.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerRedisWith = (options: LayerRedisOptions): Layer.Layer<RedisDriver, InvalidLockOptions, Redis.Redis> =>
  Layer.effect(RedisDriver, makeRedis(options))

/**
 * Checks a timeout among the options of a driver: longer than zero, and at most a day. For drivers of your own.
 *
 * @category options
 * @since 0.1.0
 */
export const checkTimeout = (
  option: string,
  input: Duration.Input
): Effect.Effect<Duration.Duration, InvalidLockOptions> => {
  const millis = parseTimeout(option, input)
  return typeof millis === "number" ? Effect.succeed(Duration.millis(millis)) : Effect.fail(millis)
}

/**
 * The name that a driver's connections set with CLIENT SETNAME: the label of the client, or host, pid and program, without the characters
 * that Redis does not allow. Empty if the label is empty: do not send the command then. For drivers of your own; keep the connection if
 * the user has no permission for that command.
 *
 * @example
 * ```ts
 * import { RedisDriver } from "effect-redis-lock"
 *
 * const program = RedisDriver.connectionName("payments of web 3") // "payments-of-web-3"
 * ```
 *
 * @category options
 * @since 0.3.0
 */
export const connectionName = (label: string = defaultLabel()): Effect.Effect<string, InvalidLockOptions> => {
  const problem = checkLabel(label)
  return problem === undefined ? Effect.succeed(connectionNameOf(label)) : Effect.fail(problem)
}

/** Timers run before input is read: after the event loop was blocked, replies may still be in the socket. */
const untilRepliesAreRead = Effect.callback<void>((resume) => {
  const timer = setTimeout(() => resume(Effect.void), 1)
  return Effect.sync(() => clearTimeout(timer))
})

const makeRedis = Effect.fnUntraced(function* (
  options: LayerRedisOptions
): Effect.fn.Return<RedisDriver["Service"], InvalidLockOptions, Redis.Redis | Scope.Scope> {
  const redis = yield* Redis.Redis
  const scope = yield* Effect.scope
  const commandTimeout = yield* checkTimeout("commandTimeout", options.commandTimeout ?? "3 seconds")
  const onSilence = options.onSilence ?? Effect.void
  const commandTimeoutMillis = Duration.toMillis(commandTimeout)
  const timeIsUp = Effect.andThen(Effect.sleep(commandTimeout), untilRepliesAreRead)
  let isSilent = false
  let isProbing = false

  /** Asks for a sign of life. Any answer will do, even an error; it may take long to arrive. */
  const probe = Effect.suspend(() => {
    if (isProbing) return Effect.void
    isProbing = true
    const silent = Effect.suspend(() => {
      isSilent = true
      return Effect.andThen(Effect.exit(onSilence), Effect.never)
    })
    return Effect.andThen(
      Effect.raceFirst(Effect.exit(redis.send("PING")), Effect.andThen(timeIsUp, silent)),
      Effect.sync(() => {
        isProbing = isSilent = false
      })
    )
  })
  const startProbe = Effect.forkIn(probe, scope)

  const timedOut = Effect.suspend(() => {
    isSilent = true
    const failure = Effect.fail(makeError(new Error(`Command timed out after ${commandTimeoutMillis} ms`)))
    return Effect.andThen(startProbe, failure)
  })

  const send = <A>(command: string, ...args: ReadonlyArray<string>): Effect.Effect<A, RedisDriverError> =>
    Effect.suspend(() =>
      isSilent
        ? Effect.fail(
            new RedisDriverError({
              reason: "NotConnected",
              cause: new Error(`nothing has come back for ${commandTimeoutMillis} ms; a PING is waited for`)
            })
          )
        : Effect.raceFirst(
            Effect.mapError(redis.send<A>(command, ...args), (error) => makeError(error.cause)),
            Effect.andThen(timeIsUp, timedOut)
            // a quorum may give up every command of a silent connection before its time is up
          ).pipe(Effect.onInterrupt(() => startProbe))
    )

  // The scripts sent since the server last said NOSCRIPT, and how often it did. After many such refusals at once, the first
  // repeated command carries the script's text, and arrives before the others.
  let known: Set<string> | undefined
  let doubts = 0
  const run = (
    script: RedisScript,
    rest: ReadonlyArray<string>,
    refusals: number
  ): Effect.Effect<Reply, RedisDriverError> =>
    Effect.suspend(() => {
      const isKnown = known === undefined || known.has(script.sha1)
      known?.add(script.sha1)
      // Not Redis.eval, which loads the script on a connection of its own choosing and fails again under a flood of SCRIPT
      // FLUSH; EVAL carries its text with it.
      if (!isKnown || refusals > 1) return send<Reply>("EVAL", script.lua, ...rest)
      const doubtsThen = doubts
      return Effect.catchIf(
        send<Reply>("EVALSHA", script.sha1, ...rest),
        (error) => isUnknownScript(error.cause),
        () => {
          if (doubts === doubtsThen) {
            doubts++
            known = new Set()
          }
          return run(script, rest, refusals + 1)
        }
      )
    })

  return {
    eval: (script, keys, args) => run(script, [String(keys.length), ...keys, ...args.map(String)], 0),
    subscribe: (channel) =>
      Stream.callback<Signal, RedisDriverError>(
        Effect.fnUntraced(function* (signals) {
          const messages = yield* redis.subscribe(channel)
          const next = Effect.mapError(Queue.take(messages), (error) => makeError(error.cause))
          // where subscribing has failed, it is the queue that says so
          if (messages.state._tag === "Done") return yield* next
          Queue.offerUnsafe(signals, { _tag: "Subscribed" })
          while (true) Queue.offerUnsafe(signals, { _tag: "Message", message: (yield* next).message })
        })
      ),
    scan: (pattern, type) => {
      const options = ["MATCH", pattern, "COUNT", "1000", "TYPE", type]
      return Stream.paginate("0", (cursor) =>
        Effect.flatMap(send<"QUEUED" | [string, ReadonlyArray<string>]>("SCAN", cursor, ...options), (reply) => {
          if (reply === "QUEUED") return Effect.fail(inTransaction)
          const [next, keys] = reply
          return Effect.succeed([keys, next === "0" ? Option.none() : Option.some(next)] as const)
        })
      )
    },
    publish: "PUBLISH",
    slot: () => 0,
    // reconnects are hidden: if another server answers, its clock is learnt from its replies
    server: () => "",
    commandTimeoutMillis,
    invalidations: Stream.fail(makeError(new Error("Effect's Redis service hides which connection subscribes")))
  }
})
