/**
 * Where a Redis is, as a URL. Every URL that this package takes is read here and nowhere else, strictly: what is not
 * understood is refused before anything connects.
 *
 * @since 0.2.0
 */
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import { InvalidLockOptions } from "effect-redis-lock"
import { isIPv6 } from "node:net"

/**
 * The parts of a URL. What is absent was not in it.
 *
 * @category models
 * @since 0.2.0
 */
export interface RedisUrl {
  /** A host, or the path of a socket of the file system. */
  readonly address:
    | { readonly _tag: "Host"; readonly host: string; readonly port: number | undefined }
    | { readonly _tag: "Socket"; readonly path: string }
  /** Whether the connection is to use TLS. */
  readonly tls: boolean
  readonly username: string | undefined
  readonly password: Redacted.Redacted | undefined
  readonly database: number | undefined
}

const shape =
  /^(?<scheme>[a-z][a-z0-9+.-]*):\/\/(?:(?<user>[^/?#]*)@)?(?<host>\[[^\]/?#]*\]|[^:/?#@]*)(?::(?<port>[^/?#]*))?(?<path>\/[^?#]*)?(?:\?(?<query>[^#]*))?(?<fragment>#.*)?$/i

const ENCODE = "percent-encode / ? # @ : and % in user and password"

/**
 * Reads a URL:
 *
 * - `redis://[[user]:password@]host[:port][/database]`, `rediss://` for TLS
 * - `unix://[[user]:password@]/path/of/socket[?db=database]`, or just the path
 *
 * Schemes are case-insensitive; user and password are percent-decoded; the port is 1 to 65535, the database an integer, 0 or
 * greater. Anything else, other query parameters included, fails with `InvalidLockOptions`. Its message names the part that is
 * wrong and never shows the URL, as that may carry a password.
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
  /** What the error calls it. */
  option = "url"
): Result.Result<RedisUrl, InvalidLockOptions> => {
  const text: unknown = Redacted.isRedacted(url) ? Redacted.value(url) : url
  const read = typeof text === "string" ? parts(text) : "it must be a string"
  return typeof read === "string"
    ? Result.fail(new InvalidLockOptions({ option, problem: read }))
    : Result.succeed(read)
}

/** The parts, or what is wrong. */
const parts = (text: string): RedisUrl | string => {
  if (text === "") return "it is empty"
  // URL parsers drop some of these silently
  // oxlint-disable-next-line no-control-regex
  if (/[\s\u0000-\u001f\u007f]/.test(text)) return "it must not contain white space or control characters"
  if (text.startsWith("/") && !text.startsWith("//")) {
    const [path, ...query] = text.split("?")
    return socket(path, query.length === 0 ? undefined : query.join("?"), undefined, undefined)
  }
  const groups = shape.exec(text)?.groups
  if (groups === undefined) return `it must look like redis://[[user]:password@]host[:port][/database]; ${ENCODE}`
  const scheme = groups["scheme"]!.toLowerCase()
  const { fragment, host, path, port, query, user } = groups
  if (scheme !== "redis" && scheme !== "rediss" && scheme !== "unix") {
    return "its scheme must be redis, rediss (TLS) or unix (a socket)"
  }
  if (fragment !== undefined) return `it must not have a fragment (#); ${ENCODE}`
  const credentials = readCredentials(user)
  if (typeof credentials === "string") return credentials
  const { password, username } = credentials
  if (scheme === "unix") {
    if (host !== "" || port !== undefined) return "a unix URL has no host: unix:///path/of/socket"
    const decoded = path === undefined ? undefined : decode(path)
    return decoded === null
      ? "the path of the socket is not percent-encoded properly"
      : socket(decoded, query, username, password)
  }
  if (query !== undefined) {
    return `it must not have query parameters (?): give them as options of ioredis; ${ENCODE}`
  }
  const hostname = host!.startsWith("[") ? host!.slice(1, -1) : host!
  if (hostname === "") return "the host is missing"
  if (host!.startsWith("[") ? !isIPv6(hostname) : !/^[a-z0-9._-]+$/i.test(hostname)) {
    return `the host is neither a name nor an address; ${ENCODE}`
  }
  const portNumber = port === undefined || port === "" ? undefined : integer(port)
  if (portNumber !== undefined && !(portNumber >= 1 && portNumber <= 65535)) {
    return `the port must be an integer from 1 to 65535; ${ENCODE}`
  }
  const database = path === undefined || path === "/" ? undefined : integer(path.slice(1))
  if (Number.isNaN(database)) return "the database (what follows the host) must be an integer, 0 or greater"
  return {
    address: { _tag: "Host", host: hostname, port: portNumber },
    tls: scheme === "rediss",
    username,
    password,
    database
  }
}

const socket = (
  path: string | undefined,
  query: string | undefined,
  username: string | undefined,
  password: Redacted.Redacted | undefined
): RedisUrl | string => {
  if (path === undefined || path === "/") return "the path of the socket is missing"
  const [key, value = ""] = query === undefined ? [] : query.split("=", 2)
  if (key !== undefined && key !== "db") return "the only query parameter of a unix URL is db"
  const database = key === undefined ? undefined : integer(value)
  if (Number.isNaN(database)) return "the database (db) must be an integer, 0 or greater"
  return { address: { _tag: "Socket", path }, tls: false, username, password, database }
}

/** NaN where it is none, or is negative. */
const integer = (text: string): number => (/^\d{1,15}$/.test(text) ? Number(text) : Number.NaN)

const decode = (text: string): string | null => {
  try {
    return decodeURIComponent(text)
  } catch {
    return null
  }
}

const readCredentials = (user: string | undefined): Pick<RedisUrl, "username" | "password"> | string => {
  const [username, ...rest] = (user ?? "").split(":")
  const decoded = [username!, rest.join(":")].map(decode)
  return decoded.includes(null)
    ? `user or password is not percent-encoded properly; ${ENCODE}`
    : {
        username: decoded[0] || undefined,
        password: decoded[1] ? Redacted.make(decoded[1]) : undefined
      }
}
