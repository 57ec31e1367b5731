/**
 * The job of a worker, process or fiber: its deposits, one after the other, with a report on each.
 */
import { Clock, Effect } from "effect"
import { deposit, depositLocked } from "./deposit.ts"
import { Ledger } from "./Ledger.ts"
import type { Job, WorkerEvent } from "./Workers.ts"

/** Monotonic time, the same for all processes of a machine. */
const millis = Effect.map(Clock.monotonicTimeNanos, (nanos) => Number(nanos) / 1e6)

export const work = Effect.fnUntraced(function* (job: Job, report: (event: WorkerEvent) => Effect.Effect<void>) {
  for (let n = 1; n <= job.deposits; n++) {
    yield* Effect.sleep("10 millis") // other work
    const ledger = yield* reporting(job.worker, n === job.stuckAt, report)
    yield* (job.locked ? depositLocked(1) : deposit(1)).pipe(
      Effect.provideService(Ledger, ledger),
      // On a busy machine the lease may run out in the middle of a section. Then the deposit is made again.
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
      // written and reported, or neither: otherwise the deposits could not be counted
      yield* Effect.gen(function* () {
        yield* ledger.write(balance, token)
        yield* report({ _tag: "Deposited", worker, askedAt, enteredAt, leftAt: yield* millis, token })
      }).pipe(Effect.uninterruptible)
    })
  })
})
