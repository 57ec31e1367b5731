/**
 * The `--redis` flag, and a lock client of that Redis.
 */
import { IoRedis, RedisUrl } from "@effect-redis-lock/ioredis"
import * as Flag from "effect/cli/Flag"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import { type InvalidLockOptions, type RedisDriver, RedisLock } from "effect-redis-lock"

/** The problem with a URL, without the URL itself. */
const problemOf = (url: Redacted.Redacted): string | undefined => {
  const parsed = RedisUrl.parse(url)
  return Result.isFailure(parsed) ? parsed.failure.problem : undefined
}

/** `--redis URL`; redacted from the start, as it may carry a password. */
export const redis = Flag.Redacted("redis").pipe(
  Flag.withMetavar("URL"),
  Flag.withDescription("The URL of Redis. Default: $REDIS_URL, else redis://localhost:6379"),
  // an empty variable is how many systems spell an absent one; an empty --redis is a mistake
  Flag.withDefault(Effect.sync(() => Redacted.make(process.env["REDIS_URL"] || "redis://localhost:6379"))),
  Flag.filter(
    (url) => problemOf(url) === undefined,
    (url) =>
      `redis://[[USER]:PASSWORD@]HOST[:PORT][/DB], or rediss:// for TLS (here or in REDIS_URL): ${problemOf(url)}`
  )
)

export const defaultLease = Duration.seconds(30)
const longestCommandTimeout = Duration.seconds(3)

/** A lock client of that Redis, which renews its locks with this lease. */
export const locksIn = (
  url: Redacted.Redacted,
  lease: Duration.Duration = defaultLease
): Layer.Layer<RedisLock.RedisLock, InvalidLockOptions | RedisDriver.RedisDriverError> => {
  // a renewal that gets no answer must time out early enough for another one
  const commandTimeout = Duration.min(longestCommandTimeout, Duration.divideUnsafe(lease, 3))
  return Layer.provide(RedisLock.layer({ watchdogLeaseTime: lease }), IoRedis.layer({ url, commandTimeout }))
}
