import { RedisDriver } from "effect-redis-lock"

/** Why a command, or a connection, has failed. */
export type Failure = RedisDriver.RedisDriverError

/** A failure, and perhaps the one that has led to it. */
export const failed = (reason: Failure["reason"], message: string, origin?: Failure): Failure =>
  new RedisDriver.RedisDriverError({
    reason,
    cause: new Error(message, origin === undefined ? {} : { cause: origin.cause })
  })

/** What all failures of this package have. */
export const messageOf = ({ cause }: Failure): string => (cause as Error).message

/** The reason, at the end of a message. */
export const because = (failure: Failure | undefined): string =>
  failure === undefined ? "" : `: ${messageOf(failure)}`

/** For a command whose connection, or cluster, has ended for good; `failure` is the reason of its last failed attempt. */
export const endedError = (server: string, isOurs: boolean, failure?: Failure): Failure => {
  const what = isOurs
    ? `ioredis has given up connecting to ${server}, as its retryStrategy says`
    : `the application has closed its client of ${server}, or the client's retryStrategy has given up`
  return failed("Closed", what + because(failure), failure)
}

/** Secrets that must not be shown. */
export type Hide = (text: string) => string

/** How servers refuse a password. If it were hidden here, what is missing would tell what it is. */
const refusal = "WRONGPASS invalid username-password pair or user is disabled"

/**
 * Hides secrets in the messages of a server or of ioredis. Old servers repeat the arguments of an unknown command, truncated.
 */
export const hiding = (secrets: ReadonlyArray<unknown>): Hide => {
  const texts = secrets.filter((secret): secret is string => typeof secret === "string" && secret !== "")
  const all = new Set(texts.flatMap((text) => [text, encodeURIComponent(text), JSON.stringify(text).slice(1, -1)]))
  const longestFirst = [...all].sort((a, b) => b.length - a.length)
  const hide: Hide = (text) => longestFirst.reduce((shown, secret) => shown.replaceAll(secret, "<redacted>"), text)
  return (text) => {
    const shown = text.replace(/,? with args beginning with:.*/s, "")
    return shown.split(refusal).map(hide).join(refusal)
  }
}

/**
 * Classifies an error of ioredis. Only its message and code are kept: the error itself contains the command with its arguments,
 * including the password.
 */
export const failureOf = (error: unknown, hide: Hide = (text) => text): Failure =>
  error instanceof RedisDriver.RedisDriverError
    ? error
    : new RedisDriver.RedisDriverError({ reason: RedisDriver.reasonOf(error), cause: plain(error, hide) })

/** The same of a command that a cluster has redirected, which has led nowhere so far: the slot is being moved. */
export const refusalOf = (error: unknown): Failure => {
  const { cause, reason } = failureOf(error)
  return new RedisDriver.RedisDriverError({ reason: reason === "ClusterMismatch" ? "ClusterDown" : reason, cause })
}

const plain = (error: unknown, hide: Hide): Error => {
  if (!(error instanceof Error)) return new Error(hide(String(error)))
  // of all addresses of a host
  const messages = error instanceof AggregateError && error.message === "" ? error.errors : [error]
  const copy = new Error(hide(messages.map((one) => (one instanceof Error ? one.message : String(one))).join("; ")))
  const { code } = error as { readonly code?: unknown }
  return typeof code === "string" ? Object.assign(copy, { code }) : copy
}
