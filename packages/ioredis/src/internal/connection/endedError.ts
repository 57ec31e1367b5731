import { RedisDriver } from "effect-redis-lock"

/** For a command whose connection, or cluster, has ended for good; `failure` is the reason of its last failed attempt. */
export const endedError = (
  server: string,
  isOurs: boolean,
  failure: RedisDriver.RedisDriverError | undefined
): RedisDriver.RedisDriverError => {
  const what = isOurs
    ? `ioredis has given up connecting to ${server}, as its retryStrategy says`
    : `the application has closed its client of ${server}, or the client's retryStrategy has given up`
  const why = failure === undefined ? "" : `: ${(failure.cause as Error).message}`
  return new RedisDriver.RedisDriverError({
    reason: "Closed",
    cause: new Error(what + why, failure === undefined ? {} : { cause: failure.cause })
  })
}
