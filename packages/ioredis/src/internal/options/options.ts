import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import { InvalidLockOptions } from "effect-redis-lock"
import type { RedisOptions } from "ioredis"
import type { ConnectionOptions } from "node:tls"
import * as RedisUrl from "../../RedisUrl.ts"
import { readTls } from "./tlsFiles.ts"

type Url = string | Redacted.Redacted

/** The options of ioredis that name a server. */
export type Address = Pick<RedisOptions, "host" | "port" | "path" | "username" | "password" | "db" | "tls">

/** Several servers that are connected with the same options. */
export interface Servers {
  readonly addresses: ReadonlyArray<{ readonly host: string; readonly port: number }>
  readonly credentials: { readonly username?: string; readonly password?: string }
  readonly tls: ConnectionOptions | undefined
}

/** The target of a URL as options of ioredis, which must never parse one itself: it lets a URL set any of its options. */
export type Target =
  | { readonly _tag: "Server"; readonly address: Address }
  | { readonly _tag: "Cluster"; readonly nodes: Servers }
  | { readonly _tag: "Sentinel"; readonly sentinels: Servers; readonly name: string; readonly master: Address }

/** Several servers, as errors name them. */
export const shownServers = ({ addresses }: Servers): string =>
  addresses.map(({ host, port }) => `${host}:${port}`).join(", ")

const CLUSTER_PORT = 6379
const SENTINEL_PORT = 26379

export const targetOf = (url: Url, option = "url"): Effect.Effect<Target, InvalidLockOptions> =>
  Effect.gen(function* () {
    const parsed = yield* Effect.fromResult(RedisUrl.parse(url, option))
    const { address, database } = parsed
    const tls = yield* readTls(parsed, option)
    const credentials = credentialsOf(parsed)
    const common: Address = {
      ...credentials,
      ...(database === undefined ? {} : { db: database }),
      ...(tls === undefined ? {} : { tls })
    }
    switch (address._tag) {
      case "Host":
        return {
          _tag: "Server",
          address: {
            host: address.host,
            ...(address.port === undefined ? {} : { port: address.port }),
            ...common
          }
        }
      case "Socket":
        return { _tag: "Server", address: { path: address.path, ...common } }
      case "Cluster":
        return { _tag: "Cluster", nodes: { addresses: withPort(address.nodes, CLUSTER_PORT), credentials, tls } }
      case "Sentinel":
        return {
          _tag: "Sentinel",
          sentinels: {
            addresses: withPort(address.sentinels, SENTINEL_PORT),
            credentials: credentialsOf(address),
            tls
          },
          name: address.name,
          master: common
        }
    }
  })

const withPort = (addresses: ReadonlyArray<RedisUrl.HostAndPort>, defaultPort: number) =>
  addresses.map(({ host, port = defaultPort }) => ({ host, port }))

const credentialsOf = ({ password, username }: Pick<RedisUrl.RedisUrl, "username" | "password">) => ({
  ...(username === undefined ? {} : { username }),
  ...(password === undefined ? {} : { password: Redacted.value(password) })
})

export const nodesOf = (urls: ReadonlyArray<Url>) => serversOf("nodes", urls, CLUSTER_PORT)

export const sentinelsOf = (urls: ReadonlyArray<Url>) => serversOf("sentinels", urls, SENTINEL_PORT)

/** The URLs of a cluster's nodes or of sentinels. ioredis has one set of options for all: they must not contradict each other. */
const serversOf = (
  option: string,
  urls: ReadonlyArray<Url>,
  defaultPort: number
): Effect.Effect<Servers, InvalidLockOptions> =>
  Effect.gen(function* () {
    const invalid = (problem: string, i?: number) =>
      new InvalidLockOptions({ option: i === undefined ? option : `${option}[${i}]`, problem })
    if (!Array.isArray(urls)) return yield* invalid("it must be a list of URLs")
    const read: Array<RedisUrl.RedisUrl> = []
    const addresses: Array<RedisUrl.HostAndPort> = []
    for (const [i, url] of urls.entries()) {
      const parsed = yield* Effect.fromResult(RedisUrl.parse(url, `${option}[${i}]`))
      if (parsed.address._tag !== "Host") return yield* invalid("it must be redis://host:port or rediss://host:port", i)
      if (parsed.database) return yield* invalid(`there is only database 0: leave it out`, i)
      addresses.push(parsed.address)
      read.push(parsed)
    }
    const [first] = read
    if (first === undefined) return yield* invalid("it must not be empty")
    const credentials = credentialsOf(first)
    for (const [i, { password, tls, tlsFiles, username }] of read.entries()) {
      if (tls !== first.tls) return yield* invalid("all must use TLS (rediss://), or none", i)
      const own = credentialsOf({ password, username })
      const differs =
        (own.username ?? credentials.username) !== credentials.username ||
        (own.password ?? credentials.password) !== credentials.password
      if (differs) return yield* invalid("user and password must be those of the first, or be left out", i)
      const { ca, cert, key } = { ...first.tlsFiles, ...tlsFiles }
      if (ca !== first.tlsFiles?.ca || cert !== first.tlsFiles?.cert || key !== first.tlsFiles?.key) {
        return yield* invalid("ca, cert and key must be those of the first, or be left out", i)
      }
    }
    const tls = yield* readTls(first, `${option}[0]`)
    return { addresses: withPort(addresses, defaultPort), credentials, tls }
  })

/** Checks what a caller without a compiler may have left out. */
export const checkOptions = (options: unknown, example: string): Effect.Effect<void, InvalidLockOptions> =>
  typeof options === "object" && options !== null
    ? Effect.void
    : Effect.fail(new InvalidLockOptions({ option: "options", problem: `they must be an object, such as ${example}` }))

/** ioredis makes a text of the name later, where no failure can be caught. */
export const checkMasterName = (name: unknown = "mymaster"): Effect.Effect<string, InvalidLockOptions> =>
  typeof name === "string" && name !== ""
    ? Effect.succeed(name)
    : Effect.fail(new InvalidLockOptions({ option: "name", problem: "it must be a string, and not empty" }))

export const checkClient = (client: unknown): Effect.Effect<void, InvalidLockOptions> => {
  const { options, status } = (client ?? {}) as { readonly options?: unknown; readonly status?: unknown }
  return typeof options === "object" && options !== null && typeof status === "string"
    ? Effect.void
    : Effect.fail(new InvalidLockOptions({ option: "client", problem: "it must be a Redis or a Cluster of ioredis" }))
}

const isInteger = (from: number, to: number) => (value: unknown) => {
  const number = typeof value === "string" && /^\d+$/.test(value) ? Number(value) : value
  return Number.isSafeInteger(number) && (number as number) >= from && (number as number) <= to
}
const isMillis = (value: unknown) => typeof value === "number" && value >= 0 && value <= 2 ** 31 - 1
const isText = (value: unknown) => typeof value === "string"
const isFunction = (value: unknown) => typeof value === "function"

/**
 * Whether ioredis would reconnect after every error reply; it ignores any other answer, also a promise. The first request over a connection
 * is answered by an error, as the server's clock is not known yet: the client would reconnect forever.
 */
export const reconnectsAlways = (reconnectOnError: unknown): boolean => {
  if (typeof reconnectOnError !== "function") return false
  try {
    return [true, 1, 2].includes(reconnectOnError(Object.assign(new Error("LATE 0"), { name: "ReplyError" })))
  } catch {
    return false
  }
}

const rules: ReadonlyArray<readonly [ReadonlyArray<string>, (value: unknown) => boolean, string]> = [
  [["db"], isInteger(0, Number.MAX_SAFE_INTEGER), "an integer, 0 or greater"],
  [["port"], isInteger(1, 65535), "an integer from 1 to 65535"],
  [["family"], (value) => value === 0 || value === 4 || value === 6, "0, 4 or 6"],
  [["protocol"], (value) => value === 2 || value === 3, "2 or 3"],
  [
    [
      "commandTimeout",
      "connectTimeout",
      "disconnectTimeout",
      "keepAlive",
      "maxLoadingRetryTime",
      "sentinelCommandTimeout",
      "socketTimeout"
    ],
    isMillis,
    "a number of milliseconds"
  ],
  [
    ["connectionName", "host", "name", "password", "path", "sentinelPassword", "sentinelUsername", "username"],
    isText,
    "a string"
  ],
  [
    ["reconnectOnError"],
    (value) => isFunction(value) && !reconnectsAlways(value),
    "a function, and not true of every error: the first reply over a connection may be one"
  ],
  [["retryStrategy", "sentinelReconnectStrategy", "sentinelRetryStrategy"], isFunction, "a function"]
]

/**
 * Checks options that ioredis accepts unchecked, only to end the process with an uncaught exception or to connect to something
 * else: `db: "abc"` is database 0.
 */
export const checkIoredis = <A extends object>(
  options: A | undefined,
  option = "ioredis"
): Result.Result<A | undefined, InvalidLockOptions> => {
  const values = (options ?? {}) as Readonly<Record<string, unknown>>
  for (const [names, isValid, expected] of rules) {
    for (const name of names) {
      const value = values[name]
      // ioredis' own defaults are null
      if (value !== undefined && value !== null && !isValid(value)) {
        return Result.fail(new InvalidLockOptions({ option: `${option}.${name}`, problem: `it must be ${expected}` }))
      }
    }
  }
  return Result.succeed(options)
}
