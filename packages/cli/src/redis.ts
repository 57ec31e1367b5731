/**
 * The `--redis` flag, and the lock client for its URLs.
 */
import { IoRedis, RedisUrl } from "@effect-redis-lock/ioredis"
import * as Flag from "effect/cli/Flag"
import * as Duration from "effect/Duration"
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

/** The problem with the first wrong URL, without the URL itself. */
const problemOf = (urls: Urls): string | undefined => {
  for (const [i, url] of urls.entries()) {
    const parsed = RedisUrl.parse(url)
    if (Result.isFailure(parsed)) return `${urls.length === 1 ? "" : `URL ${i + 1}: `}${parsed.failure.problem}`
  }
  return undefined
}

/** Many systems set an absent variable to the empty string; an empty --redis is a mistake. */
const fromEnvironment = (): Urls => {
  const quorum = (process.env["REDIS_QUORUM"] ?? "").split(/\s+/).filter(Boolean)
  const urls = quorum.length > 0 ? quorum : [process.env["REDIS_URL"] || "redis://localhost:6379"]
  return urls.map((url) => Redacted.make(url))
}

/** `--redis URL`, once for each member of a quorum; redacted from the start, as it may contain a password. */
export const redis = Flag.Redacted("redis").pipe(
  Flag.withMetavar("URL"),
  Flag.withDescription(
    "The URL of Redis; several make a quorum. Default: $REDIS_QUORUM (URLs separated by spaces), else $REDIS_URL, else redis://localhost:6379"
  ),
  Flag.atLeast(0),
  Flag.map((urls): Urls => (urls.length === 0 ? fromEnvironment() : urls)),
  Flag.filter(
    (urls) => problemOf(urls) === undefined,
    (urls) =>
      `redis://[[USER]:PASSWORD@]HOST[:PORT][/DB], redis+cluster://HOST,HOST,..., redis+sentinel://HOST,HOST,.../NAME, the same with rediss for TLS, or unix:///PATH (here, in REDIS_URL or in REDIS_QUORUM): ${problemOf(urls)}`
  )
)

/** `--prefix TEXT` */
export const prefix = Flag.String("prefix").pipe(
  Flag.withMetavar("TEXT"),
  Flag.withDescription("A prefix for every name, like the library's keyPrefix. Default: none"),
  Flag.withDefault("")
)

/** Where a URL leads to: never its user, password or query. */
export const placeOf = (url: Urls[number]): string => {
  const { address } = Result.getOrThrow(RedisUrl.parse(url))
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

/** A lock client, which renews its locks with this lease. */
export const locksIn = (
  { prefix, redis }: Target,
  lease: Duration.Duration = defaultLease
): Layer.Layer<RedisLock.RedisLock, InvalidLockOptions | RedisDriver.RedisDriverError> => {
  // a renewal that gets no answer must time out early enough for another one
  const commandTimeout = Duration.min(longestCommandTimeout, Duration.divideUnsafe(lease, 3))
  // every run of a cron job would repeat the other warnings
  return IoRedis.layerRedisLock({
    urls: redis,
    watchdogLeaseTime: lease,
    commandTimeout,
    keyPrefix: prefix,
    warnings: ["eviction"]
  })
}
