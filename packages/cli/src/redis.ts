/**
 * The `--redis` flag, and the lock client for its URLs.
 */
import { IoRedis, RedisUrl } from "@effect-redis-lock/ioredis"
import { ValidationError } from "effect/cli/CliError"
import * as Flag from "effect/cli/Flag"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import type { InvalidLockOptions, RedisDriver, RedisLock } from "effect-redis-lock"

/** One URL, or one for each member of a quorum. */
export type Urls = ReadonlyArray<Redacted.Redacted>

/** Where the locks are. */
export interface Target {
  readonly redis: Urls
  /** What the names of all keys begin with. */
  readonly prefix: string
}

/** URLs, and where they were found. */
interface Found {
  readonly urls: Urls
  readonly source: "--redis" | "REDIS_QUORUM" | "REDIS_URL"
}

/** The problem with the first wrong URL, without the URL itself. */
const problemOf = ({ source, urls }: Found): string | undefined => {
  for (const [i, url] of urls.entries()) {
    const parsed = RedisUrl.parse(url)
    if (Result.isFailure(parsed)) {
      return `${source}${urls.length === 1 ? "" : `, URL ${i + 1}`}: ${parsed.failure.problem}`
    }
  }
  return undefined
}

const forms =
  "A URL is redis://[[USER]:PASSWORD@]HOST[:PORT][/DB], redis+cluster://HOST,HOST,..., redis+sentinel://HOST,HOST,.../NAME, the same with rediss for TLS, or unix:///PATH"

/** Many systems set an absent variable to the empty string; an empty --redis is a mistake. */
const fromEnvironment = (): Found => {
  const quorum = (process.env["REDIS_QUORUM"] ?? "").split(/\s+/).filter(Boolean)
  const urls = quorum.length > 0 ? quorum : [process.env["REDIS_URL"] || "redis://localhost:6379"]
  return { urls: urls.map((url) => Redacted.make(url)), source: quorum.length > 0 ? "REDIS_QUORUM" : "REDIS_URL" }
}

/** `--redis URL`, once for each member of a quorum; redacted from the start, as it may contain a password. */
export const redis = Flag.Redacted("redis").pipe(
  Flag.withMetavar("URL"),
  Flag.withDescription(
    "The URL of Redis; several make a quorum. Default: $REDIS_QUORUM (URLs separated by spaces), else $REDIS_URL, else redis://localhost:6379"
  ),
  Flag.atLeast(0),
  Flag.mapEffect((given) => {
    const found: Found = given.length === 0 ? fromEnvironment() : { urls: given, source: "--redis" }
    const problem = problemOf(found)
    return problem === undefined
      ? Effect.succeed(found.urls)
      : Effect.fail(new ValidationError({ message: `${problem}. ${forms}` }))
  })
)

/** `--prefix TEXT` */
export const prefix = Flag.String("prefix").pipe(
  Flag.withMetavar("TEXT"),
  Flag.withDescription("A prefix for every name, like the library's keyPrefix. Default: none"),
  Flag.withDefault("")
)

/** The address in a URL that has been checked. */
export const addressOf = (url: Urls[number]): RedisUrl.Address => Result.getOrThrow(RedisUrl.parse(url)).address

/** Where a URL leads to: never its user, password or query. */
export const placeOf = (url: Urls[number]): string => {
  const address = addressOf(url)
  const hostAndPort = ({ host, port }: RedisUrl.HostAndPort) => (port === undefined ? host : `${host}:${port}`)
  switch (address._tag) {
    case "Host":
      return hostAndPort(address)
    case "Socket":
      return address.path
    case "Cluster":
      return `cluster at ${address.nodes.map(hostAndPort).join(", ")}`
    case "Sentinel":
      return `${address.name} of the sentinels at ${address.sentinels.map(hostAndPort).join(", ")}`
  }
}

export const defaultLease = Duration.seconds(30)
const longestCommandTimeout = Duration.seconds(3)

/** A lock client, which renews its locks with this lease. Its label is the library's unless it is given. */
export const locksIn = (
  { prefix, redis }: Target,
  lease: Duration.Duration = defaultLease,
  label?: string
): Layer.Layer<RedisLock.RedisLock, InvalidLockOptions | RedisDriver.RedisDriverError> => {
  // a renewal that gets no answer must time out early enough for another one
  const commandTimeout = Duration.min(longestCommandTimeout, Duration.divideUnsafe(lease, 3))
  // every run of a cron job would repeat the other warnings
  return IoRedis.layerRedisLock({
    urls: redis,
    watchdogLeaseTime: lease,
    commandTimeout,
    keyPrefix: prefix,
    label,
    warnings: ["eviction"]
  })
}
