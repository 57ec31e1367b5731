import * as Effect from "effect/Effect"
import { write } from "node:fs"
import { inert } from "./visible.ts"

let written = Promise.resolve()

/** Waits until stderr has taken what was said so far. */
export const said: Effect.Effect<void> = Effect.promise(() => written)

/**
 * Writes to stderr, under our name: stdout belongs to the command. It waits for nothing: while a pipe is full, or Ctrl-S has stopped the
 * terminal, the lock must be renewed, and its command stopped if it is lost.
 *
 * Not through `process.stderr`: that would make a pipe non-blocking also for the command, which shares it, and blocks at a terminal.
 */
const tell = (text: string): void => {
  const line = `redis-lock: ${text}\n`
  // whatever comes of it: if stderr is closed, there is nowhere left to report it
  written = written.then(() => new Promise((resolve) => write(2, line, () => resolve())))
}

/** Says it in one line: messages quote names, and what others wrote to Redis. */
export const sayNow = (message: string): void => tell(inert(message))

export const say = (message: string): Effect.Effect<void> => Effect.sync(() => sayNow(message))

/** The same for what has several lines. */
export const sayLines = (text: string): Effect.Effect<void> =>
  Effect.sync(() => tell(text.split("\n").map(inert).join("\n")))
