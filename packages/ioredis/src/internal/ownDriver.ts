import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { RedisDriver } from "effect-redis-lock"
import { Cluster, type ClusterOptions, Redis, type RedisOptions } from "ioredis"
import { makeClusterDriver, usesShardedPubSub } from "./clusterDriver.ts"
import { ClusterNodes } from "./connection/ClusterNodes.ts"
import type { CommandPath } from "./command/CommandPath.ts"
import { CommandWriter } from "./command/CommandWriter.ts"
import { askSentinels, checkPassword, connect, connectCluster, open, within } from "./connection/connecting.ts"
import { Connection } from "./connection/Connection.ts"
import { scoped } from "./connection/listening.ts"
import { ConnectionLog } from "./connection/ConnectionLog.ts"
import { type Address, type Servers, shownServers } from "./options/options.ts"
import { makeServerDriver } from "./serverDriver.ts"
import type { Warnings } from "./serverWarnings.ts"
import { at, awaitsHandshake, settingsOf } from "./options/settings.ts"

/** Options shared by the drivers with connections of their own. */
export interface Common {
  readonly path: CommandPath
  readonly commandTimeout: Duration.Duration
  readonly connectTimeout: Duration.Duration
  /** The name of the connections; empty for none. */
  readonly connectionName: string
  readonly warnings: Warnings
}

type OwnDriver = Effect.Effect<RedisDriver.RedisDriver["Service"], RedisDriver.RedisDriverError, Scope.Scope>

/** The parts of a driver over one client, before it connects. */
const partsOf = (settings: ReturnType<typeof settingsOf>, { commandTimeout, path }: Common) =>
  Effect.gen(function* () {
    const client = yield* open(() => new Redis(settings))
    const log = yield* ConnectionLog.make
    const connection = yield* scoped(() => new Connection(client, { path, log }))
    const writer = yield* scoped(() => new CommandWriter(connection, Duration.toMillis(commandTimeout)))
    return { connection, log, writer }
  })

/** The same, connected; also to a server that does not know INFO, of which ioredis would otherwise ask whether it is loading. */
const connected = (settings: ReturnType<typeof settingsOf>, common: Common) =>
  Effect.gen(function* () {
    const connecting = (settings: ReturnType<typeof settingsOf>) =>
      Effect.tap(partsOf(settings, common), ({ connection }) => connect(connection))
    const scope = yield* Effect.scope
    const first = yield* Scope.fork(scope)
    return yield* Scope.provide(connecting(settings), first).pipe(
      Effect.catchIf(
        ({ cause }) => mayIgnoreInfo(settings) && /unknown command.*\binfo\b/i.test((cause as Error).message),
        () =>
          Effect.logWarning(
            "Redis does not know INFO (renamed?): nobody checks whether it is still loading after a restart, nor warns of eviction, persistence, replicas and clock."
          ).pipe(
            Effect.andThen(Scope.close(first, Exit.void)),
            Effect.andThen(connecting({ ...settings, enableReadyCheck: false }))
          )
      )
    )
  })

/** Where ioredis would not take a connection for ready before it is in its database. */
const mayIgnoreInfo = ({ db, enableReadyCheck }: RedisOptions): boolean =>
  enableReadyCheck !== false && (awaitsHandshake || Number(db ?? 0) === 0)

const isOfSentinels = ({ cause }: RedisDriver.RedisDriverError): boolean =>
  (cause as Error).message.startsWith("All sentinels are unreachable")

/** ioredis sends CLIENT SETNAME, and continues if it is refused. */
const named = (ioredis: RedisOptions, { connectionName }: Common): RedisOptions => ({ connectionName, ...ioredis })

/** The same failure with another message. */
export const explained = (
  { cause, reason }: RedisDriver.RedisDriverError,
  f: (message: string) => string
): RedisDriver.RedisDriverError => {
  const { message } = cause as Error
  return new RedisDriver.RedisDriverError({
    reason,
    cause: Object.assign(new Error(f(message.replace(/\.$/, ""))), cause)
  })
}

/** Failures name the place, if they do not yet, and say where the use of TLS may be the reason: not over a socket in the file system. */
const naming = (place: string, tls: unknown, driver: OwnDriver, isSocket = false): OwnDriver =>
  Effect.mapError(driver, (error) =>
    explained(
      error,
      (message) =>
        (message.includes(place) ? message : `${place}: ${message}`) + (isSocket ? "" : tlsAdvice(error, tls))
    )
  )

/** A plain server leaves the beginning of TLS without an answer, or with one that is not TLS; a server with TLS hangs up on anything else. */
const tlsAdvice = ({ cause, reason }: RedisDriver.RedisDriverError, tls: unknown): string => {
  const isSilent = reason === "TimedOut" || reason === "ConnectionLost"
  if (tls != null) {
    if (/self.signed certificate|unable to (get|verify)/i.test((cause as Error).message)) {
      return ". Name the certificate of its authority: ?ca=/PATH"
    }
    return isSilent || /wrong version number|packet length too long/i.test((cause as Error).message)
      ? ". TLS is on (rediss://): if this port has none, use redis://"
      : ""
  }
  // ioredis says this before there is a connection
  return isSilent && !(cause as Error).message.endsWith("connect ETIMEDOUT")
    ? ". TLS is off (redis://): if this port has it, use rediss://"
    : ""
}

/** The driver over connections to one server. */
export const makeServer = (address: Address, ioredis: RedisOptions, common: Common): OwnDriver => {
  const settings = settingsOf(common.path, at(address, named(ioredis, common)), common.connectTimeout)
  const driver = Effect.flatMap(connected(settings, common), ({ log, writer }) =>
    makeServerDriver(writer, log, common.commandTimeout, common.warnings)
  )
  const { host = "localhost", path, port = 6379, sentinels } = settings
  // those of an application's own sentinels name these
  return sentinels == null ? naming(path ?? `${host}:${port}`, settings.tls, driver, path != null) : driver
}

/** The driver over connections to the nodes of a cluster. `ioredis` is the options of each of them. */
export const makeCluster = (servers: Servers, options: OwnClusterOptions, common: Common): OwnDriver =>
  naming(`the cluster of ${shownServers(servers)}`, servers.tls, clusterOf(servers, options, common))

interface OwnClusterOptions {
  readonly cluster?: ClusterOptions | undefined
  readonly ioredis: RedisOptions
  readonly shardedPubSub?: "auto" | "on" | "off" | undefined
}

const clusterOf = (
  { addresses, credentials, tls }: Servers,
  { cluster: clusterOptions, ioredis, shardedPubSub }: OwnClusterOptions,
  common: Common
): OwnDriver =>
  Effect.gen(function* () {
    const { commandTimeout, connectTimeout, path, warnings } = common
    const redisOptions = settingsOf(
      path,
      at({ ...credentials, ...(tls === undefined ? {} : { tls }) }, named(ioredis, common)),
      connectTimeout
    )
    const cluster = yield* open(
      () =>
        new Cluster([...addresses], {
          slotsRefreshTimeout: Duration.toMillis(commandTimeout),
          slotsRefreshInterval: 15_000,
          ...clusterOptions,
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
    const nodes = yield* scoped(
      () => new ClusterNodes(cluster, { path, log, timeoutMillis: Duration.toMillis(commandTimeout) })
    )
    const [startupNode] = addresses
    const connected = connectCluster({ cluster, path, redisOptions, startupNode })
    const sharded = yield* within(
      connectTimeout,
      connected.pipe(
        Effect.andThen(checkPassword(cluster, redisOptions)),
        Effect.andThen(usesShardedPubSub(cluster, shardedPubSub))
      )
    )
    return yield* makeClusterDriver(nodes, log, { commandTimeout, warnings, sharded })
  })

/**
 * How long to wait before asking the sentinels for the master once more, in milliseconds. The holder of a lock should learn soon after a failover
 * whether the new master has it; but until it begins, sentinels leave a dead master half a minute by default (`down-after-milliseconds`).
 */
export const duringFailover = (times: number): number =>
  Math.min(times * 50, times <= 200 ? 100 : times <= 400 ? 200 : 2000)

/** The driver over connections to a master monitored by Sentinel. */
export const makeSentinel = (target: SentinelTarget, ioredis: RedisOptions, common: Common): OwnDriver =>
  naming(
    `the master "${target.name}" of ${shownServers(target.sentinels)}`,
    target.sentinels.tls,
    masterOf(target, ioredis, common)
  )

interface SentinelTarget {
  readonly sentinels: Servers
  readonly name: string
  readonly master: Address
}

const masterOf = (
  { master, name, sentinels: { addresses, credentials, tls } }: SentinelTarget,
  ioredis: RedisOptions,
  common: Common
): OwnDriver =>
  Effect.gen(function* () {
    const { commandTimeout, connectTimeout, path, warnings } = common
    const { password, username } = credentials
    const again = ioredis.sentinelRetryStrategy ?? ((times: number) => Math.min(times * 100, 2000))
    let hasConnected = false
    const settings = settingsOf(
      path,
      {
        sentinelCommandTimeout: Duration.toMillis(commandTimeout),
        retryStrategy: duringFailover,
        ...path.sentinelDefaults,
        ...at(master, named(ioredis, common)),
        sentinels: [...addresses],
        ...(username === undefined ? {} : { sentinelUsername: username }),
        ...(password === undefined ? {} : { sentinelPassword: password }),
        ...(tls === undefined ? {} : { sentinelTLS: { ...ioredis.sentinelTLS, ...tls } }),
        name,
        role: "master" as const,
        // the first time, the application decides whether to try again
        sentinelRetryStrategy: (times: number) => (hasConnected ? again(times) : null)
      },
      connectTimeout
    )
    const asked = addresses.map(({ host, port }) => ({
      ...{ host, port, enableReadyCheck: false, enableOfflineQueue: false },
      connectTimeout: settings.connectTimeout!,
      ...(settings.sentinelUsername == null ? {} : { username: settings.sentinelUsername }),
      ...(settings.sentinelPassword == null ? {} : { password: settings.sentinelPassword }),
      ...(settings.sentinelTLS === undefined ? {} : { tls: settings.sentinelTLS })
    }))
    const asking = connected(settings, common).pipe(
      Effect.tapError((failure) => (isOfSentinels(failure) ? askSentinels(path, asked) : Effect.void))
    )
    const { log, writer } = yield* within(connectTimeout, asking)
    hasConnected = true
    return yield* makeServerDriver(writer, log, commandTimeout, warnings)
  })
