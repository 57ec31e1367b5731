/**
 * Text for people, on a terminal, and how it is written to stdout.
 */
import { displayWidth } from "effect/cli/CliOutput"
import * as Effect from "effect/Effect"
import { ExitCode, ExitWith } from "./exit.ts"

/** Text with spaces behind it, as wide as a column. */
export const padded = (text: string, width: number): string =>
  text + " ".repeat(Math.max(0, width - displayWidth(text)))

/** What a column shows of a row: `-` where there is nothing. */
export interface Column<A> {
  readonly title: string
  readonly of: (row: A, index: number) => string | undefined
}

/** Rows in columns, under their titles. Empty without any row. */
export const table = <A>(columns: ReadonlyArray<Column<A>>, rows: ReadonlyArray<A>): string => {
  if (rows.length === 0) return ""
  const titles = columns.map(({ title }) => title)
  const lines = [titles, ...rows.map((row, i) => columns.map(({ of }) => of(row, i) ?? "-"))]
  const widths = columns.map((_, i) => Math.max(...lines.map((line) => displayWidth(line[i]!))))
  const texts = lines.map((line) => line.map((cell, i) => padded(cell, widths[i]!)).join("  "))
  return texts.map((text) => `${text.trimEnd()}\n`).join("")
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
