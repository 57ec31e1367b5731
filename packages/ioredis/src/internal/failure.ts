import { RedisDriver } from "effect-redis-lock"

/** What must not be shown of a text. */
export type Hide = (text: string) => string

/**
 * Hides these secrets in what a server or ioredis says. Old servers repeat the arguments of a command that they do not know, cut
 * off somewhere.
 */
export const hiding = (secrets: ReadonlyArray<unknown>): Hide => {
  const texts = secrets.filter((secret): secret is string => typeof secret === "string" && secret !== "")
  const all = new Set(texts.flatMap((text) => [text, encodeURIComponent(text), JSON.stringify(text).slice(1, -1)]))
  const longestFirst = [...all].sort((a, b) => b.length - a.length)
  return (text) => {
    let shown = text.replace(/,? with args beginning with:.*/s, "")
    for (const secret of longestFirst) shown = shown.replaceAll(secret, "<redacted>")
    return shown
  }
}

/**
 * An error of ioredis, sorted. Only its message and code are kept: the error itself carries the command with its arguments, the
 * password among them.
 */
export const failureOf = (error: unknown, hide: Hide = (text) => text): RedisDriver.RedisDriverError =>
  new RedisDriver.RedisDriverError({ reason: RedisDriver.reasonOf(error), cause: plain(error, hide) })

const plain = (error: unknown, hide: Hide): Error => {
  if (!(error instanceof Error)) return new Error(hide(String(error)))
  // of all addresses of a host
  const messages = error instanceof AggregateError && error.message === "" ? error.errors : [error]
  const copy = new Error(hide(messages.map((one) => (one instanceof Error ? one.message : String(one))).join("; ")))
  const { code } = error as { readonly code?: unknown }
  return typeof code === "string" ? Object.assign(copy, { code }) : copy
}
