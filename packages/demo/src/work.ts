/**
 * What a worker does, be it a process or a fiber: its deposits, one after the other, and a report on each.
 */
import { Clock, Effect } from "effect"
import { deposit, depositLocked } from "./deposit.ts"
import { Ledger } from "./Ledger.ts"
import type { Job, WorkerEvent } from "./Workers.ts"

/** Monotonic, and one and the same clock for all processes of a machine. */
const millis = Effect.map(Clock.monotonicTimeNanos, (nanos) => Number(nanos) / 1e6)

export const work = Effect.fnUntraced(function* (job: Job, report: (event: WorkerEvent) => Effect.Effect<void>) {
  for (let n = 1; n <= job.deposits; n++) {
    yield* Effect.sleep("10 millis") // other work
    const ledger = yield* reporting(job.worker, n === job.stuckAt, report)
    yield* (job.locked ? depositLocked(1) : deposit(1)).pipe(
      Effect.provideService(Ledger, ledger),
      // This machine was so busy that the lease ran out in the middle of a section. It happens; do it again.
      Effect.retry({ while: ({ _tag }) => _tag === "LockLost" || _tag === "StaleToken" })
    )
  }
})

/** A ledger that reports each deposit, as soon as it is written, and when the section began and ended. */
const reporting = Effect.fnUntraced(function* (
  worker: number,
  getsStuck: boolean,
  report: (event: WorkerEvent) => Effect.Effect<void>
) {
  const ledger = yield* Ledger
  const askedAt = yield* millis
  let enteredAt = askedAt

  return Ledger.of({
    ...ledger,

    balance: Effect.gen(function* () {
      enteredAt = yield* millis
      return yield* ledger.balance
    }),

    write: Effect.fnUntraced(function* (balance, token) {
      if (getsStuck) {
        yield* report({ _tag: "Stuck", worker, askedAt, enteredAt, token: token ?? 0n, balance })
        return yield* Effect.never
      }
      // written and reported, or neither: else the deposits could not be counted
      yield* Effect.gen(function* () {
        yield* ledger.write(balance, token)
        yield* report({ _tag: "Deposited", worker, askedAt, enteredAt, leftAt: yield* millis, token })
      }).pipe(Effect.uninterruptible)
    })
  })
})
