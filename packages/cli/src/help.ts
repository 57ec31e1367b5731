/**
 * What the command lines of all commands are written with.
 */
import * as Argument from "effect/cli/Argument"
import * as Flag from "effect/cli/Flag"
import * as Duration from "effect/Duration"
import * as Option from "effect/Option"
import { parse } from "./duration.ts"

/** Indents every line but the first of a description, which the help indents itself. */
export const paragraphs = (text: string): string => text.trim().replaceAll(/\n(?=.)/g, "\n  ")

/** A flag that is off unless it is given. */
export const toggle = (name: string, description: string) =>
  Flag.Boolean(name).pipe(Flag.withDescription(description), Flag.withDefault(false))

/** Which names a command is about. */
export const pattern = Argument.String("PATTERN").pipe(
  Argument.withDescription("Only names that match this Redis glob pattern; quote it for the shell"),
  Argument.withDefault("*")
)

/** A flag whose value is a duration that is not shorter than another one. */
export const duration = (name: string, least = "0") => {
  const shortest = Option.getOrThrow(parse(least))
  const isEnough = (given: Duration.Duration) => Duration.isGreaterThanOrEqualTo(given, shortest)
  return Flag.String(name).pipe(
    Flag.withMetavar("DURATION"),
    Flag.filterMap(
      (text) => Option.filter(parse(text), isEnough),
      (text) =>
        Option.isNone(parse(text)) ? "500ms, 10s, 2m, 1h30m, or a plain number of seconds" : `at least ${least}`
    )
  )
}

/** A flag whose value is a whole number within bounds. */
export const wholeNumber = (name: string, least: number, most: number) =>
  Flag.String(name).pipe(
    Flag.withMetavar("N"),
    Flag.filterMap(
      (text) => Option.filter(Option.some(Number(text)), (n) => /^\d+$/.test(text) && n >= least && n <= most),
      () => `a whole number from ${least} to ${most}`
    )
  )
