/**
 * Describes the cause of an error for people and logs. Drivers, proxies and applications may throw any value, even one that
 * throws when inspected: these functions never throw.
 */
import * as Cause from "effect/Cause"

/** Longer than any error text of Redis. */
const longest = 1000
const longestJson = 10_000

const unshowable = "a cause that cannot be shown"

export const causeText = (cause: unknown): string =>
  attempt(
    () => {
      const text: unknown = cause instanceof Error ? cause.message : String(cause)
      return typeof text !== "string" ? unshowable : text.length > longest ? `${text.slice(0, longest)}...` : text
    },
    () => unshowable
  )

/** Everything that may identify an error: some clients distinguish it only by its code, its name or its class. */
export const allText = (error: unknown): string =>
  attempt(
    () => {
      const { code = "", constructor, name } = error as Error & { readonly code?: unknown }
      return error instanceof Error
        ? `${causeText(error)} ${String(code)} ${name} ${constructor.name}`
        : causeText(error)
    },
    () => causeText(error)
  )

/** Whether it is an error; a proxy may refuse to say. */
export const isError = (cause: unknown): cause is Error =>
  attempt(
    () => cause instanceof Error,
    () => false
  )

export const nameOf = (cause: unknown): string | undefined =>
  attempt(
    () => (cause instanceof Error ? cause.name : undefined),
    () => undefined
  )

/** A cause for logs in JSON: name and message of an error, the plain JSON of any other value. */
export const causeJson = (cause: unknown): unknown =>
  attempt(
    () => {
      if (cause instanceof Error && !("toJSON" in cause)) return { name: String(cause.name), message: causeText(cause) }
      const json: string | undefined = JSON.stringify(cause)
      return json === undefined || json.length > longestJson ? causeText(cause) : (JSON.parse(json) as unknown)
    },
    () => causeText(cause)
  )

/** The cause itself, or a substitute error if printing the cause would fail. */
export const showable = (cause: unknown): unknown =>
  attempt(
    () => {
      if (cause instanceof Error) {
        const { message, name } = cause as { readonly message: unknown; readonly name: unknown }
        return typeof message === "string" && typeof name === "string" ? cause : new Error(causeText(cause))
      }
      if (typeof cause === "object") Cause.pretty(Cause.die(cause))
      return cause
    },
    () => new Error(causeText(cause))
  )

const attempt = <A, B>(look: () => A, otherwise: () => B): A | B => {
  try {
    return look()
  } catch {
    return otherwise()
  }
}
