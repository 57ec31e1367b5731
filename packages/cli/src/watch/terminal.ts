/**
 * A terminal that a command draws on, and its keys.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"

export interface Terminal {
  readonly size: () => { readonly columns: number; readonly rows: number }
  /** Replaces the picture. */
  readonly draw: (lines: ReadonlyArray<string>) => Effect.Effect<void>
}

const escape = "\u001b"

/** A sequence of an arrow or another named key, or one character. */
const keyPattern = new RegExp(`${escape}\\[[0-9;]*[A-Za-z~]|[^]`, "gu")

/** Takes the terminal, and gives it back as it was when the scope closes. Calls `onKey` for each key in the order in which they are pressed. */
export const open = Effect.fnUntraced(function* (
  onKey: (key: string) => void
): Effect.fn.Return<Terminal, never, Scope.Scope> {
  const { stdin, stdout } = process
  const onData = (text: string) => {
    for (const [key] of text.matchAll(keyPattern)) onKey(key)
  }
  // a terminal that is gone ends the command
  const onEnd = () => onKey("\u0003")
  const take = () => {
    stdin.setRawMode(true)
    // another screen, without a cursor
    stdout.write("\u001b[?1049h\u001b[?25l")
  }
  // while we were stopped, the shell had the terminal
  const onContinue = () => {
    stdin.setRawMode(false)
    take()
  }
  yield* Effect.acquireRelease(
    Effect.sync(() => {
      stdin.setEncoding("utf8").on("data", onData).on("end", onEnd).on("error", onEnd)
      stdout.on("error", onEnd)
      process.on("SIGCONT", onContinue)
      take()
    }),
    () =>
      Effect.sync(() => {
        process.off("SIGCONT", onContinue)
        stdout.write("\u001b[?25h\u001b[?1049l")
        stdin.off("data", onData).setRawMode(false).pause()
      })
  )
  return {
    size: () => ({ columns: stdout.columns || 80, rows: stdout.rows || 24 }),
    draw: (lines) => Effect.sync(() => void stdout.write(`\u001b[H${over(lines)}`))
  }
})

/**
 * Line by line over what was there, so that nothing flickers. Nothing follows the last line: at the bottom of the screen a line break
 * would scroll the first one away. Each is cleared before it is written: afterwards the cursor may stand on its last character.
 */
const over = (lines: ReadonlyArray<string>): string =>
  lines.map((line, i) => `\u001b[${i === lines.length - 1 ? "J" : "K"}${line}`).join("\r\n")
