import * as Effect from "effect/Effect"
import { writeSync } from "node:fs"
import { inert } from "./visible.ts"

/**
 * Writes to stderr, under our name: stdout belongs to the command.
 *
 * Not through `process.stderr`: that would make a pipe non-blocking also for the command, which shares it.
 */
const write = (text: string): void => {
  try {
    writeSync(2, `redis-lock: ${text}\n`)
  } catch {
    // closed or full: there is nowhere left to report it
  }
}

/** Says it in one line: messages quote names, and what others wrote to Redis. */
export const sayNow = (message: string): void => write(inert(message))

export const say = (message: string): Effect.Effect<void> => Effect.sync(() => sayNow(message))

/** The same for what has several lines. */
export const sayLines = (text: string): Effect.Effect<void> =>
  Effect.sync(() => write(text.split("\n").map(inert).join("\n")))
