/**
 * Virtual time that passes in small steps, between which the event loop has its turn: what waits for a promise goes on.
 */
import { Effect } from "effect"
import { TestClock } from "effect/testing"

export const pass = (seconds: number, stepMillis = 100) =>
  Effect.gen(function* () {
    for (let passed = 0; passed < seconds * 1000; passed += stepMillis) {
      yield* TestClock.adjust(stepMillis)
      yield* Effect.callback<void>((resume) => void setImmediate(() => resume(Effect.void)))
    }
  })
