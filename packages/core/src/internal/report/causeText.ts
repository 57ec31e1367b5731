/**
 * What caused an error, for people and logs. Drivers, proxies and applications throw anything, also what throws when it is looked
 * at: nothing here does.
 */
import * as Cause from "effect/Cause"

/** Longer than what any Redis says. */
const longest = 1000
const longestJson = 10_000

const unshowable = "a cause that cannot be shown"

/** What a cause says of itself. */
export const causeText = (cause: unknown): string =>
  attempt(
    () => {
      const text: unknown = cause instanceof Error ? cause.message : String(cause)
      return typeof text !== "string" ? unshowable : text.length > longest ? `${text.slice(0, longest)}...` : text
    },
    () => unshowable
  )

/** All by which an error may be recognised: some clients say what it is only by its code, its name or its class. */
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

/** The name of an error. */
export const nameOf = (cause: unknown): string | undefined =>
  attempt(
    () => (cause instanceof Error ? cause.name : undefined),
    () => undefined
  )

/** A cause for logs in JSON: of an error its name and its message, of anything else what JSON makes of it. */
export const causeJson = (cause: unknown): unknown =>
  attempt(
    () => {
      if (cause instanceof Error && !("toJSON" in cause)) return { name: String(cause.name), message: causeText(cause) }
      const json: string | undefined = JSON.stringify(cause)
      return json === undefined || json.length > longestJson ? causeText(cause) : (JSON.parse(json) as unknown)
    },
    () => causeText(cause)
  )

/** The cause as it is, or an error in its place where whoever prints it would fail. */
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
