import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { RedisDriver } from "effect-redis-lock"
import { Cluster, type ClusterOptions, Redis, type RedisOptions } from "ioredis"
import type { RedisUrl } from "../RedisUrl.ts"
import { makeClusterDriver } from "./clusterDriver.ts"
import { ClusterNodes } from "./connection/ClusterNodes.ts"
import type { CommandPath } from "./command/CommandPath.ts"
import { CommandWriter } from "./command/CommandWriter.ts"
import {
  askSentinels,
  checkPassword,
  connect,
  connectCluster,
  open,
  usesShardedPubSub,
  within
} from "./connection/connecting.ts"
import { Connection } from "./connection/Connection.ts"
import { ConnectionLog } from "./connection/ConnectionLog.ts"
import { scoped } from "./connection/listening.ts"
import { type Failure, messageOf } from "./failure.ts"
import {
  accessOf,
  type Address,
  at,
  PORT,
  readTls,
  SENTINEL_PORT,
  type Servers,
  shownServers,
  withPort
} from "./options/targets.ts"
import { makeServerDriver } from "./serverDriver.ts"
import type { Warnings } from "./serverWarnings.ts"
import { awaitsHandshake, given, type Settings, settingsOf } from "./options/settings.ts"

/** Options shared by the drivers with connections of their own. */
export interface Common {
  readonly path: CommandPath
  readonly commandTimeoutMillis: number
  readonly connectTimeoutMillis: number
  /** The name of the connections; empty for none. */
  readonly connectionName: string
  readonly warnings: Warnings
}

type OwnDriver = Effect.Effect<RedisDriver.RedisDriver["Service"], Failure, Scope.Scope>

/** The same failure with another message. */
export const explained = (failure: Failure, f: (message: string) => string): Failure =>
  new RedisDriver.RedisDriverError({
    reason: failure.reason,
    cause: Object.assign(new Error(f(messageOf(failure).replace(/\.$/, ""))), failure.cause)
  })

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
const tlsAdvice = (failure: Failure, tls: unknown): string => {
  const message = messageOf(failure)
  const isSilent = failure.reason === "TimedOut" || failure.reason === "ConnectionLost"
  if (tls != null) {
    if (/self.signed certificate|unable to (get|verify)/i.test(message)) {
      return ". Name the certificate of its authority: ?ca=/PATH"
    }
    return isSilent || /wrong version number|packet length too long/i.test(message)
      ? ". TLS is on (rediss://): if this port has none, use redis://"
      : ""
  }
  // ioredis says this before there is a connection
  return isSilent && !message.endsWith("connect ETIMEDOUT")
    ? ". TLS is off (redis://): if this port has it, use rediss://"
    : ""
}

/** For ioredis, which sends CLIENT SETNAME and continues if it is refused. */
const settingsAt = (
  address: Address,
  ioredis: RedisOptions,
  { connectionName, connectTimeoutMillis, path }: Common,
  more: RedisOptions = {}
) => settingsOf(path, { ...at(address, { connectionName, ...ioredis }), ...more }, connectTimeoutMillis)

/** A connection to one server, once there is one. */
const connectedWith = (settings: Settings, { commandTimeoutMillis, path }: Common) =>
  Effect.gen(function* () {
    const client = yield* open(() => new Redis(settings))
    const log = yield* ConnectionLog.make
    const connection = yield* scoped(() => new Connection(client, { path, log }))
    const writer = yield* scoped(() => new CommandWriter(connection, commandTimeoutMillis))
    yield* connect(connection)
    return writer
  })

/** The same, also to a server that does not know INFO, of which ioredis would otherwise ask whether it is loading. */
const connected = (settings: Settings, common: Common) =>
  Effect.gen(function* () {
    const first = yield* Scope.fork(yield* Effect.scope)
    return yield* Scope.provide(connectedWith(settings, common), first).pipe(
      Effect.catchIf(
        (failure) => mayIgnoreInfo(settings) && /unknown command.*\binfo\b/i.test(messageOf(failure)),
        () =>
          Effect.logWarning(
            "Redis does not know INFO (renamed?): nobody checks whether it is still loading after a restart, nor warns of eviction, persistence, replicas and clock."
          ).pipe(
            Effect.andThen(Scope.close(first, Exit.void)),
            Effect.andThen(connectedWith({ ...settings, enableReadyCheck: false }, common))
          )
      )
    )
  })

/** Where ioredis would not take a connection for ready before it is in its database. */
const mayIgnoreInfo = ({ db, enableReadyCheck }: RedisOptions): boolean =>
  enableReadyCheck !== false && (awaitsHandshake || Number(db ?? 0) === 0)

/** The driver over connections to one server. */
export const makeServer = (address: Address, ioredis: RedisOptions, common: Common): OwnDriver => {
  const settings = settingsAt(address, ioredis, common)
  const driver = Effect.flatMap(connected(settings, common), (writer) => makeServerDriver(writer, common.warnings))
  const { host = "localhost", path, port = 6379, sentinels } = settings
  // those of an application's own sentinels name these
  return sentinels == null ? naming(path ?? `${host}:${port}`, settings.tls, driver, path != null) : driver
}

interface OwnClusterOptions {
  readonly cluster?: ClusterOptions | undefined
  /** Those of each node. */
  readonly ioredis: RedisOptions
  readonly shardedPubSub?: "auto" | "on" | "off" | undefined
}

/** The driver over connections to the nodes of a cluster. */
export const makeCluster = (servers: Servers, options: OwnClusterOptions, common: Common): OwnDriver => {
  const { access, addresses } = servers
  const driver = Effect.gen(function* () {
    const { commandTimeoutMillis, path, warnings } = common
    const redisOptions = settingsAt(access, options.ioredis, common)
    const cluster = yield* open(
      () =>
        new Cluster([...addresses], {
          slotsRefreshTimeout: commandTimeoutMillis,
          slotsRefreshInterval: 15_000,
          ...options.cluster,
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
    const nodes = yield* scoped(() => new ClusterNodes(cluster, { path, log, isOurs: true, commandTimeoutMillis }))
    const sharded = yield* connectCluster(cluster, path, redisOptions, addresses[0]).pipe(
      Effect.andThen(checkPassword(cluster, redisOptions)),
      Effect.andThen(usesShardedPubSub(cluster, options.shardedPubSub)),
      within(common.connectTimeoutMillis)
    )
    return yield* makeClusterDriver(nodes, sharded, warnings)
  })
  return naming(`the cluster of ${shownServers(servers)}`, access.tls, driver)
}

/**
 * How long to wait before asking the sentinels for the master once more, in milliseconds. The holder of a lock should learn soon after a failover
 * whether the new master has it; but until it begins, sentinels leave a dead master half a minute by default (`down-after-milliseconds`).
 */
export const duringFailover = (times: number): number =>
  Math.min(times * 50, times <= 200 ? 100 : times <= 400 ? 200 : 2000)

interface SentinelTarget {
  readonly sentinels: Servers
  readonly name: string
  readonly master: Address
}

/** The driver over connections to a master monitored by Sentinel. */
export const makeSentinel = (target: SentinelTarget, ioredis: RedisOptions, common: Common): OwnDriver => {
  const { master, name, sentinels } = target
  const { access, addresses } = sentinels
  const driver = Effect.gen(function* () {
    const { commandTimeoutMillis, path, warnings } = common
    const again = ioredis.sentinelRetryStrategy ?? ((times: number) => Math.min(times * 100, 2000))
    let hasConnected = false
    const defaults = {
      sentinelCommandTimeout: commandTimeoutMillis,
      retryStrategy: duringFailover,
      ...path.sentinelDefaults
    }
    const settings = settingsAt(master, { ...defaults, ...ioredis }, common, {
      sentinels: [...addresses],
      ...given({ sentinelUsername: access.username, sentinelPassword: access.password }),
      ...(access.tls === undefined ? {} : { sentinelTLS: { ...ioredis.sentinelTLS, ...access.tls } }),
      name,
      role: "master",
      // the first time, the application decides whether to try again
      sentinelRetryStrategy: (times) => (hasConnected ? again(times) : null)
    })
    const { connectTimeout, sentinelPassword: password, sentinelTLS, sentinelUsername: username } = settings
    const options = { enableReadyCheck: false, ...given({ connectTimeout, username, password, tls: sentinelTLS }) }
    const asked = addresses.map((address) => ({ ...address, ...options }))
    const writer = yield* connected(settings, common).pipe(
      Effect.tapError((failure) =>
        messageOf(failure).startsWith("All sentinels are unreachable") ? askSentinels(path, asked) : Effect.void
      ),
      within(common.connectTimeoutMillis)
    )
    hasConnected = true
    return yield* makeServerDriver(writer, warnings)
  })
  return naming(`the master "${name}" of ${shownServers(sentinels)}`, access.tls, driver)
}

/** The driver over connections to what a URL describes. ioredis must never parse one itself: it lets a URL set any of its options. */
export const makeAt = (url: RedisUrl, ioredis: RedisOptions, common: Common) =>
  Effect.flatMap(readTls(url, "url"), (tls): OwnDriver => {
    const { address, database } = url
    const access = accessOf(url, tls)
    const server = { ...access, ...given({ db: database }) }
    switch (address._tag) {
      case "Host":
        return makeServer({ ...given({ host: address.host, port: address.port }), ...server }, ioredis, common)
      case "Socket":
        return makeServer({ path: address.path, ...server }, ioredis, common)
      case "Cluster":
        return makeCluster({ addresses: withPort(address.nodes, PORT), access }, { ioredis }, common)
      case "Sentinel": {
        const sentinels = { addresses: withPort(address.sentinels, SENTINEL_PORT), access: accessOf(address, tls) }
        return makeSentinel({ sentinels, name: address.name, master: server }, ioredis, common)
      }
    }
  })
