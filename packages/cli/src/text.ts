/**
 * Text for people, on a terminal, and how it is written to stdout.
 */
import { displayWidth } from "effect/cli/CliOutput"
import * as Effect from "effect/Effect"
import { ExitCode, ExitWith } from "./exit.ts"

/** Text with spaces behind it, as wide as a column. */
export const padded = (text: string, width: number): string =>
  text + " ".repeat(Math.max(0, width - displayWidth(text)))

/** Rows in columns, the first row their titles. Empty without any other row. */
export const table = (titles: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<string>>): string => {
  if (rows.length === 0) return ""
  const all = [titles, ...rows]
  const widths = titles.map((_, column) => Math.max(...all.map((row) => displayWidth(row[column]!))))
  const line = (row: ReadonlyArray<string>) => row.map((cell, column) => padded(cell, widths[column]!)).join("  ")
  return all.map((row) => `${line(row).trimEnd()}\n`).join("")
}

/**
 * Waits until everything is written. A reader that stops early, as in `ls | head -1`, is not a failure: `ifUnread` follows.
 */
export const print = (
  text: string,
  ifUnread: Effect.Effect<void, ExitWith> = Effect.void
): Effect.Effect<void, ExitWith> =>
  Effect.callback((resume) => {
    const onError = ({ code, message }: NodeJS.ErrnoException) =>
      resume(code === "EPIPE" ? ifUnread : Effect.fail(new ExitWith({ code: ExitCode.notWritten, message })))
    process.stdout.on("error", onError)
    process.stdout.write(text, (error) => {
      if (error) return
      process.stdout.off("error", onError)
      resume(Effect.void)
    })
  })

export const printJson = (value: unknown): Effect.Effect<void, ExitWith> =>
  print(`${JSON.stringify(value, undefined, 2)}\n`)
