/**
 * The three acts. In each, the workers make their deposits on a new ledger, and the result is printed.
 */
import { Console, Effect, Schema } from "effect"
import { Ledger } from "./Ledger.ts"
import { makeProgress } from "./report/progress.ts"
import * as Report from "./report/report.ts"
import { depositsPerWorker, type Outcome, run, workerCount } from "./run.ts"
import { duration } from "./report/timeline.ts"
import { Workers } from "./Workers.ts"

const print = (...lines: ReadonlyArray<string>) => Console.log(lines.join("\n"))

export const withoutLock = Effect.gen(function* () {
  const { kind } = yield* Workers
  yield* print(
    Report.heading("1. Without a lock"),
    `   ${workerCount} ${kind} make ${depositsPerWorker} deposits each: read the balance, add 1, write it back.`
  )

  const progress = yield* makeProgress
  const outcome = yield* run({ locked: false }, ({ worker }) => progress.deposited(worker))
  yield* progress.done

  yield* print(Report.balance(outcome), "", Report.momentWithoutLock(outcome))
})

export const withLock = Effect.gen(function* () {
  yield* print(
    Report.heading(`2. The same under Lock.withLock("ledger")`),
    `   The same deposits, but one at a time: see packages/demo/src/deposit.ts for the code.`
  )

  const progress = yield* makeProgress
  const outcome = yield* run({ locked: true }, ({ worker }) => progress.deposited(worker))
  yield* progress.done

  yield* print(
    Report.balance(outcome),
    "",
    Report.momentWithLock(outcome),
    "",
    Report.percentiles(outcome),
    Report.fencing(outcome)
  )
  yield* check(outcome)
})

const leaseMillis = 2000

export const withKill = Effect.gen(function* () {
  const { kind } = yield* Workers
  yield* print(Report.heading("3. A holder dies in its section"))

  const progress = yield* makeProgress
  let dead: { readonly token: bigint; readonly enteredAt: number } | undefined
  const outcome = yield* run(
    { locked: true, leaseMillis, kill: { worker: 3, deposit: 40 } },
    Effect.fnUntraced(function* (event) {
      if (event._tag === "Stuck") {
        dead = event
        yield* progress.say(
          kind === "processes"
            ? `   Worker ${event.worker} is killed with SIGKILL, after it has read the balance and before it writes.`
            : `   Worker ${event.worker} dies after it has read the balance and before it writes: nobody releases or renews\n` +
                `   its lock. On Redis it is a process, which is killed with SIGKILL.`
        )
        yield* progress.say(`   The others wait for the rest of its lease of ${leaseMillis / 1000} seconds ...`)
        return
      }
      if (dead !== undefined && event.token! > dead.token) {
        const after = duration(event.enteredAt - dead.enteredAt)
        yield* progress.say(`   ... and after ${after} worker ${event.worker} holds the lock, with a higher token.`)
        dead = undefined
      }
      yield* progress.deposited(event.worker)
    })
  )
  yield* progress.done

  yield* print(
    Report.balance(outcome),
    "",
    Report.wholeWithKill(outcome, leaseMillis),
    "",
    Report.percentiles(outcome),
    Report.fencing(outcome)
  )

  // The dead worker's write may still be under way somewhere. The ledger recognises its token as an old one.
  const { killed } = outcome
  if (killed !== undefined) {
    const ledger = yield* Ledger
    yield* Effect.catchTag(ledger.write(killed.balance, killed.token), "StaleToken", ({ message }) =>
      print(`   If its write arrives now, the ledger refuses it: ${message}`)
    )
  }
  yield* check(outcome)
})

/** What must not happen under the lock. */
export class Unsafe extends Schema.TaggedError<Unsafe>()("Unsafe", { lost: Schema.Int, tokensRise: Schema.Boolean }) {
  override get message(): string {
    return this.lost === 0
      ? "The fencing tokens did not rise under the lock."
      : `${this.lost} deposits were lost under the lock.`
  }
}

const check = (outcome: Outcome): Effect.Effect<void, Unsafe> => {
  const tokensRise = Report.areTokensRising(outcome)
  return outcome.lost === 0 && tokensRise ? Effect.void : Effect.fail(new Unsafe({ lost: outcome.lost, tokensRise }))
}
