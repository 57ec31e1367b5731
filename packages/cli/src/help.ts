/**
 * What the command lines of all commands are written with.
 */
import * as Flag from "effect/cli/Flag"

/** Indents every line but the first of a description, which the help indents itself. */
export const paragraphs = (text: string): string => text.trim().replaceAll(/\n(?=.)/g, "\n  ")

/** A flag that is off unless it is given. */
export const off = Flag.withDefault(false)
