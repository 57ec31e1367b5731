/**
 * The address of a Redis as a URL. All URLs that this package accepts are parsed here, and strictly: anything not understood is
 * refused before connecting.
 *
 * @since 0.2.0
 */
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import { InvalidLockOptions } from "effect-redis-lock"
import { isIPv6 } from "node:net"

/**
 * A host and its port; without a port, the default (6379, or 26379 for a sentinel).
 *
 * @category models
 * @since 0.3.0
 */
export interface HostAndPort {
  readonly host: string
  readonly port: number | undefined
}

/**
 * The kind of target that a URL describes.
 *
 * - `Host`: one server
 * - `Socket`: one server, by the path of a Unix domain socket
 * - `Cluster`: a Redis Cluster, by some of its nodes
 * - `Sentinel`: a master monitored by Sentinel, by its name there; `username` and `password` are those for the sentinels
 *
 * @category models
 * @since 0.3.0
 */
export type Address =
  | ({ readonly _tag: "Host" } & HostAndPort)
  | { readonly _tag: "Socket"; readonly path: string }
  | { readonly _tag: "Cluster"; readonly nodes: ReadonlyArray<HostAndPort> }
  | {
      readonly _tag: "Sentinel"
      readonly sentinels: ReadonlyArray<HostAndPort>
      readonly name: string
      readonly username: string | undefined
      readonly password: Redacted.Redacted | undefined
    }

/**
 * Paths of files in PEM format: the certificates of the authorities to trust instead of Node's own, and the certificate with
 * which the client identifies itself and its private key.
 *
 * @category models
 * @since 0.3.0
 */
export interface TlsFiles {
  readonly ca?: string
  readonly cert?: string
  readonly key?: string
}

/**
 * The parts of a URL; absent parts were not in it.
 *
 * @category models
 * @since 0.2.0
 */
export interface RedisUrl {
  readonly address: Address
  /** Whether connections are to use TLS. */
  readonly tls: boolean
  readonly tlsFiles?: TlsFiles
  readonly username: string | undefined
  readonly password: Redacted.Redacted | undefined
  readonly database: number | undefined
}

const shape =
  /^(?<scheme>[a-z][a-z0-9+.-]*):\/\/(?:(?<user>[^/?#]*)@)?(?<hosts>[^/?#]*)(?<path>\/[^?#]*)?(?:\?(?<query>[^#]*))?(?<fragment>#.*)?$/i

const ENCODE = "percent-encode / ? # @ : and % in user and password"

/** The schemes for servers that are reached over TCP: with TLS or without. */
const schemes = {
  redis: { kind: "Host", tls: false },
  rediss: { kind: "Host", tls: true },
  "redis+cluster": { kind: "Cluster", tls: false },
  "rediss+cluster": { kind: "Cluster", tls: true },
  "redis+sentinel": { kind: "Sentinel", tls: false },
  "rediss+sentinel": { kind: "Sentinel", tls: true }
} as const

/**
 * Reads a URL:
 *
 * - `redis://[[user]:password@]host[:port][/database]`
 * - `unix://[[user]:password@]/path/of/socket[?db=database]`, or just the path
 * - `redis+cluster://[[user]:password@]host[:port],host[:port],...` for Redis Cluster, by some of its nodes
 * - `redis+sentinel://[[user]:password@]host[:port],host[:port],.../name[/database]` for the master of that name at these
 *   sentinels. User and password are those of the master; those of the sentinels, if they need any, are in the query:
 *   `?sentinelUsername=user&sentinelPassword=password`
 *
 * With `rediss` instead of `redis`, all connections use TLS, including those to sentinels. The query may then name files in PEM
 * format: `?ca=/path` for the authorities to trust instead of Node's own, `cert=/path&key=/path` for a client certificate.
 *
 * Schemes are case-insensitive; user, password and the query's values are percent-decoded; ports are 1 to 65535, the database an
 * integer, 0 or greater. Anything else, including other query parameters, fails with `InvalidLockOptions`. Its message names the
 * wrong part and never shows the URL, which may contain a password.
 *
 * @example
 * ```ts
 * import { RedisUrl } from "@effect-redis-lock/ioredis"
 * import { Result } from "effect"
 *
 * const url = Result.getOrThrow(RedisUrl.parse("rediss://locks:secret@redis.example:6380/2"))
 *
 * console.log(url.tls, url.address, url.database) // true { host: "redis.example", port: 6380, ... } 2
 * ```
 *
 * @category parsing
 * @since 0.2.0
 */
export const parse = (
  url: string | Redacted.Redacted,
  /** Its name in errors. */
  option = "url"
): Result.Result<RedisUrl, InvalidLockOptions> => {
  const text: unknown = Redacted.isRedacted(url) ? Redacted.value(url) : url
  const read = typeof text === "string" ? parts(text) : "it must be a string"
  return typeof read === "string"
    ? Result.fail(new InvalidLockOptions({ option, problem: read }))
    : Result.succeed(read)
}

/** The parts, or the problem. */
const parts = (text: string): RedisUrl | string => {
  if (text === "") return "it is empty"
  // URL parsers drop some of these silently
  // oxlint-disable-next-line no-control-regex
  if (/[\s\u0000-\u001f\u007f]/.test(text)) return "it must not contain white space or control characters"
  if (text.startsWith("/") && !text.startsWith("//")) {
    const [path, ...query] = text.split("?")
    return socket(path, query.length === 0 ? undefined : query.join("?"))
  }
  const groups = shape.exec(text)?.groups
  if (groups === undefined) return `it must look like redis://[[user]:password@]host[:port][/database]; ${ENCODE}`
  const scheme = groups["scheme"]!.toLowerCase()
  const { fragment, path, query, user } = groups
  const hosts = groups["hosts"]!
  const known = Object.hasOwn(schemes, scheme) ? schemes[scheme as keyof typeof schemes] : undefined
  if (known === undefined && scheme !== "unix") {
    return "its scheme must be redis, redis+cluster, redis+sentinel, the same with rediss (TLS), or unix (a socket)"
  }
  if (fragment !== undefined) return `it must not have a fragment (#); ${ENCODE}`
  const credentials = readCredentials(user)
  if (typeof credentials === "string") return credentials
  if (known === undefined) {
    if (hosts !== "") return "a unix URL has no host: unix:///path/of/socket"
    const decoded = path === undefined ? undefined : decode(path)
    return decoded === null
      ? "the path of the socket is not percent-encoded properly"
      : socket(decoded, query, credentials)
  }
  const { kind, tls } = known
  const read = readParameters(query, [
    ...(tls ? TLS_PARAMETERS : []),
    ...(kind === "Sentinel" ? SENTINEL_PARAMETERS : [])
  ])
  if (typeof read === "string") return read
  const { sentinelPassword, sentinelUsername, ...tlsFiles } = read
  if ((tlsFiles.cert === undefined) !== (tlsFiles.key === undefined)) {
    return "its query must have both cert and key, or neither"
  }
  const addresses = readHosts(kind === "Host" ? [hosts] : hosts.split(","))
  if (typeof addresses === "string") return addresses
  if (kind !== "Host" && /[@,]/.test(user ?? "")) {
    return "user and password stand once, before the first host; percent-encode @ and , in them"
  }
  const [first] = addresses as readonly [HostAndPort]
  const segments = path === undefined || path === "/" ? [] : path.slice(1).split("/")
  const name = kind === "Sentinel" ? segments.shift() : undefined
  if (kind === "Sentinel" && (name === undefined || !/^[\w.-]+$/.test(name))) {
    return "what follows the sentinels must be the name of the master: letters, digits, dot, dash and underscore, as in /mymaster"
  }
  const database = segments.length === 0 ? undefined : integer(segments.join("/"))
  if (Number.isNaN(database)) {
    return `the database (what follows the ${kind === "Sentinel" ? "name of the master" : "host"}) must be an integer, 0 or greater`
  }
  if (kind === "Cluster" && database) return "a cluster has only database 0: leave the database out"
  return {
    address:
      kind === "Host"
        ? { _tag: "Host", ...first }
        : kind === "Cluster"
          ? { _tag: "Cluster", nodes: addresses }
          : {
              _tag: "Sentinel",
              sentinels: addresses,
              name: name!,
              username: sentinelUsername,
              password: sentinelPassword === undefined ? undefined : Redacted.make(sentinelPassword)
            },
    tls,
    ...(Object.keys(tlsFiles).length === 0 ? {} : { tlsFiles }),
    ...credentials,
    database
  }
}

/** All hosts, or the problem with one of them. */
const readHosts = (texts: ReadonlyArray<string>): ReadonlyArray<HostAndPort> | string => {
  const addresses: Array<HostAndPort> = []
  for (const [i, text] of texts.entries()) {
    const which = texts.length === 1 ? "" : ` ${i + 1}`
    const [, host, port] = /^(\[[^\]]*\]|[^:]*)(?::(.*))?$/.exec(text) ?? []
    if (host === undefined) return `the host${which} is neither a name nor an address; ${ENCODE}`
    const hostname = host.startsWith("[") ? host.slice(1, -1) : host
    if (hostname === "") return `the host${which} is missing`
    if (host.startsWith("[") ? !isIPv6(hostname) : !/^[a-z0-9._-]+$/i.test(hostname)) {
      return hostname.includes(",")
        ? "the host must be a single one: several are for redis+cluster:// and redis+sentinel://"
        : `the host${which} is neither a name nor an address; ${ENCODE}`
    }
    const portNumber = port === undefined || port === "" ? undefined : integer(port)
    if (portNumber !== undefined && !(portNumber >= 1 && portNumber <= 65535)) {
      return `the port${which === "" ? "" : ` of host${which}`} must be an integer from 1 to 65535; ${ENCODE}`
    }
    addresses.push({ host: hostname, port: portNumber })
  }
  return addresses
}

const TLS_PARAMETERS = ["ca", "cert", "key"] as const
const SENTINEL_PARAMETERS = ["sentinelUsername", "sentinelPassword"] as const
type Parameter = "db" | (typeof TLS_PARAMETERS)[number] | (typeof SENTINEL_PARAMETERS)[number]

/** The parameters of a query, each at most once, or the problem. An unknown one is not named: it may be part of a password. */
const readParameters = (
  query: string | undefined,
  allowed: ReadonlyArray<Parameter>
): { readonly [name in Parameter]?: string } | string => {
  if (query === undefined) return {}
  const last = allowed.at(-1)
  if (last === undefined) {
    return `it must not have query parameters (?): ca, cert and key are for TLS (rediss), all else is for the options of ioredis; ${ENCODE}`
  }
  const names = allowed.length === 1 ? last : `${allowed.slice(0, -1).join(", ")} and ${last}`
  const read: { [name in Parameter]?: string } = {}
  for (const pair of query.split("&")) {
    const at = pair.indexOf("=")
    const name = pair.slice(0, at) as Parameter
    if (at === -1 || !allowed.includes(name)) return `its only query parameters are ${names}; ${ENCODE}`
    if (read[name] !== undefined) return `the query parameter ${name} stands there twice`
    const value = decode(pair.slice(at + 1))
    if (value === null) return `the query parameter ${name} is not percent-encoded properly`
    if (value === "") return `the query parameter ${name} is empty`
    read[name] = value
  }
  return read
}

const socket = (
  path: string | undefined,
  query: string | undefined,
  credentials: Credentials = { username: undefined, password: undefined }
): RedisUrl | string => {
  if (path === undefined || path === "/") return "the path of the socket is missing"
  const read = readParameters(query, ["db"])
  if (typeof read === "string") return read
  const database = read.db === undefined ? undefined : integer(read.db)
  if (Number.isNaN(database)) return "the database (db) must be an integer, 0 or greater"
  return { address: { _tag: "Socket", path }, tls: false, ...credentials, database }
}

/** NaN if it is not a number, or is negative. */
const integer = (text: string): number => (/^\d{1,15}$/.test(text) ? Number(text) : Number.NaN)

const decode = (text: string): string | null => {
  try {
    return decodeURIComponent(text)
  } catch {
    return null
  }
}

type Credentials = Pick<RedisUrl, "username" | "password">

const readCredentials = (user: string | undefined): Credentials | string => {
  const [username, ...rest] = (user ?? "").split(":")
  const decoded = [username!, rest.join(":")].map(decode)
  return decoded.includes(null)
    ? `user or password is not percent-encoded properly; ${ENCODE}`
    : {
        username: decoded[0] || undefined,
        password: decoded[1] ? Redacted.make(decoded[1]) : undefined
      }
}
