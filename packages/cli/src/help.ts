/**
 * What the command lines of all commands are written with.
 */
import * as Flag from "effect/cli/Flag"
import * as Option from "effect/Option"

/** Indents every line but the first of a description, which the help indents itself. */
export const paragraphs = (text: string): string => text.trim().replaceAll(/\n(?=.)/g, "\n  ")

/** A flag that is off unless it is given. */
export const off = Flag.withDefault(false)

/** A flag whose value is a whole number within bounds. */
export const wholeNumber = (name: string, least: number, most: number) =>
  Flag.String(name).pipe(
    Flag.withMetavar("N"),
    Flag.filterMap(
      (text) => Option.filter(Option.some(Number(text)), (n) => /^\d+$/.test(text) && n >= least && n <= most),
      () => `a whole number from ${least} to ${most}`
    )
  )
