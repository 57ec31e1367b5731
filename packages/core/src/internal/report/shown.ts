/**
 * Values in messages and logs: short, without secrets and internals.
 *
 * The causes of errors may be any value that a driver, a proxy or an application throws, even one that throws when inspected: the
 * functions for causes never throw.
 */
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import { NodeInspectSymbol } from "effect/Inspectable"

const shortened = (text: string, most: number): string => (text.length > most ? `${text.slice(0, most)}...` : text)

/** A caller's value for a message: short, and for an object only its type. */
export const shown = (value: unknown): string => {
  if (typeof value === "string") return JSON.stringify(shortened(value, 60))
  if (value === null || typeof value !== "object") return typeof value === "function" ? "a function" : String(value)
  const { name } = (value.constructor ?? Object) as { readonly name?: unknown }
  return typeof name === "string" && name !== "" ? `a value of type ${name}` : "an object"
}

/** Makes all objects of a prototype print and log as the result of `show`: short, and without their internals. */
export const printsAs = <A extends object>(prototype: A, show: (self: A) => Record<string, unknown>): void => {
  const toJSON = function (this: A): unknown {
    return show(this)
  }
  Object.defineProperty(prototype, "toJSON", { value: toJSON })
  Object.defineProperty(prototype, NodeInspectSymbol, { value: toJSON })
}

/** The most ids of permits in a message. */
const most = 3

/** Suffix of the owner field of a lock that its `minHold` keeps taken while nobody holds it. */
export const kept = ":kept"

/** An owner in messages: of many permits, the first ids and the number of the others. */
export const ownerText = (owner: string): string => {
  const ids = owner.split(",")
  return ids.length <= most ? owner : `${ids.slice(0, most).join(",")} and ${ids.length - most} more`
}

/** Longer than any error text of Redis. */
const longestText = 1000
const longestJson = 10_000

/** The message of an error, or the text of any other value. */
export const causeText = (cause: unknown): string =>
  attempt(() => {
    const text: unknown = cause instanceof Error ? cause.message : String(cause)
    return typeof text === "string" ? shortened(text, longestText) : undefined
  }) ?? "a cause that cannot be shown"

/** Everything that may identify an error: some clients distinguish it only by its code, its name or its class. */
export const allText = (error: unknown): string =>
  attempt(() => {
    if (!(error instanceof Error)) return undefined
    const { code = "", constructor, name } = error as Error & { readonly code?: unknown }
    return `${causeText(error)} ${String(code)} ${name} ${constructor.name}`
  }) ?? causeText(error)

/** Whether it is an error; a proxy may refuse to say. */
export const isError = (cause: unknown): cause is Error => attempt(() => cause instanceof Error) ?? false

export const nameOf = (cause: unknown): string | undefined =>
  attempt(() => (cause instanceof Error ? cause.name : undefined))

/** A cause for logs in JSON: name and message of an error, the plain JSON of any other value. */
const causeJson = (cause: unknown): unknown => {
  try {
    if (cause instanceof Error && !("toJSON" in cause)) return { name: String(cause.name), message: causeText(cause) }
    const json: string | undefined = JSON.stringify(cause)
    return json === undefined || json.length > longestJson ? causeText(cause) : (JSON.parse(json) as unknown)
  } catch {
    return causeText(cause)
  }
}

/** The cause itself, or a substitute error if printing the cause would fail. */
export const showable = (cause: unknown): unknown => {
  try {
    if (!(cause instanceof Error)) {
      if (typeof cause === "object") Cause.pretty(Cause.die(cause))
      return cause
    }
    const { message, name } = cause as { readonly message: unknown; readonly name: unknown }
    if (typeof message === "string" && typeof name === "string") return cause
  } catch {
    // it gets a substitute as well
  }
  return new Error(causeText(cause))
}

/**
 * Gives the errors of a class a JSON for logs: their fields and their message, which JSON otherwise leaves out. It is not an encoding: to
 * send an error somewhere, encode it with its schema.
 */
export const jsonWithMessage = ({ prototype }: { readonly prototype: Error }): void => {
  const toJSON = function (this: Error): unknown {
    const { cause, message } = this
    return { ...this, message, ...(cause === undefined ? undefined : { cause: causeJson(cause) }) }
  }
  Object.defineProperty(prototype, "toJSON", { value: toJSON })
}

/** What a look at a cause finds; undefined if it throws. */
const attempt = <A>(look: () => A): A | undefined => {
  try {
    return look()
  } catch {
    return undefined
  }
}

/** The text of a duration in messages. */
export const seconds = (duration: Duration.Duration): string => {
  const millis = Duration.toMillis(duration)
  return millis < 1000 ? `${Math.round(millis)} ms` : `${(millis / 1000).toFixed(1)} s`
}
