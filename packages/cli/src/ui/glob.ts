/**
 * The glob patterns of Redis: `*`, `?`, `[a-c]`, `[^a]`, and a backslash before a character that stands for itself.
 */

const parts = /\\([^])|\[(\^?)((?:\\[^]|[^\]]-[^]|[^\]])*)\]?|[^]/g
const members = /\\([^])|([^])-([^])|[^]/g

/** Redis compares bytes. */
const bytesOf = (text: string): string => Buffer.from(text).toString("latin1")

const literal = (byte: string): string => `\\x${byte.charCodeAt(0).toString(16).padStart(2, "0")}`

const memberOf = (one: string, escaped?: string, from?: string, to?: string): string =>
  from === undefined || to === undefined ? literal(escaped ?? one) : [from, to].sort().map(literal).join("-")

/** Whether names match a pattern. */
export const matcherOf = (pattern: string): ((name: string) => boolean) => {
  const source = bytesOf(pattern).replace(parts, (one: string, escaped?: string, not?: string, set?: string) => {
    if (set !== undefined) return `[${not}${set.replace(members, memberOf)}]`
    return one === "*" ? one : one === "?" ? "[^]" : literal(escaped ?? one)
  })
  const [first = "", ...others] = source.split("*")
  const last = others.pop()
  // What stands between two stars is taken where it comes first. A lookahead is not tried again when what follows it fails: otherwise a
  // long name that almost matches many stars would take minutes.
  const middle = others.map((each, i) => `(?=([^]*?${each}))\\${i + 1}`).join("")
  const expression = new RegExp(`^${first}${last === undefined ? "" : `${middle}[^]*${last}`}$`)
  return (name) => expression.test(bytesOf(name))
}
