import * as Effect from "effect/Effect"
import { writeSync } from "node:fs"

/**
 * Writes a message to stderr, under our name: stdout belongs to the command.
 *
 * Not through `process.stderr`: that would make a pipe non-blocking also for the command, which shares it.
 */
export const sayNow = (message: string): void => {
  try {
    writeSync(2, `redis-lock: ${message}\n`)
  } catch {
    // closed or full: there is nowhere left to report it
  }
}

export const say = (message: string): Effect.Effect<void> => Effect.sync(() => sayNow(message))
