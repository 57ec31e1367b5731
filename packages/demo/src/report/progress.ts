/**
 * Shows the progress of the workers: on a terminal as one line that is redrawn, elsewhere, and where that line does not fit, as a plain
 * line every hundred deposits.
 */
import { Console, Effect } from "effect"
import { depositsPerWorker, workerCount } from "../run.ts"

const total = workerCount * depositsPerWorker

export interface Progress {
  /** A worker has made another deposit. */
  readonly deposited: (worker: number) => Effect.Effect<void>
  /** Prints a line that stays. */
  readonly say: (line: string) => Effect.Effect<void>
  /** Clears the drawn line. */
  readonly done: Effect.Effect<void>
}

const clearLine = "\r\u001B[2K"

const write = (text: string) => Effect.sync(() => process.stdout.write(text))

const onTerminal: Effect.Effect<Progress> = Effect.sync(() => {
  const counts = Array.from({ length: workerCount }, () => 0)
  const width = Math.max(4, Math.min(14, Math.floor((process.stdout.columns - 4) / workerCount) - 9))

  const bar = (count: number, index: number) => {
    const full = Math.round((count / depositsPerWorker) * width)
    return `${index + 1} ${"█".repeat(full)}${"░".repeat(width - full)} ${String(count).padEnd(3)}`
  }
  const draw = Effect.suspend(() => write(`${clearLine}   ${counts.map(bar).join("  ")}`))

  return {
    deposited: (worker) =>
      Effect.andThen(
        Effect.sync(() => counts[worker - 1]!++),
        draw
      ),
    say: (line) => write(clearLine).pipe(Effect.andThen(Console.log(line)), Effect.andThen(draw)),
    done: write(clearLine)
  }
})

const inLines: Effect.Effect<Progress> = Effect.sync(() => {
  let count = 0
  return {
    deposited: () =>
      Effect.suspend(() => (++count % 100 === 0 ? Console.log(`   ${count} of ${total} deposits`) : Effect.void)),
    say: Console.log,
    done: Effect.void
  }
})

export const makeProgress: Effect.Effect<Progress> = Effect.suspend(() =>
  process.stdout.isTTY && process.stdout.columns >= 50 ? onTerminal : inLines
)
