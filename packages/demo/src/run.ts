/**
 * One run: four workers on a new ledger, started together and watched until all have ended.
 */
import { Array, Effect, Latch, Order, type Scope, Stream } from "effect"
import { Ledger } from "./Ledger.ts"
import { type Deposited, type Stuck, type Worker, type WorkerEvent, type WorkerFailed, Workers } from "./Workers.ts"

export const workerCount = 4
export const depositsPerWorker = 100

export interface Plan {
  readonly locked: boolean
  /** How long the lock outlives a worker that dies with it. Default: 30 seconds. */
  readonly leaseMillis?: number
  /** Which worker is killed in its section, and at which of its deposits. */
  readonly kill?: { readonly worker: number; readonly deposit: number }
}

export interface Outcome {
  /** All deposits, in the order in which the workers entered their sections. */
  readonly deposits: ReadonlyArray<Deposited>
  readonly balance: number
  readonly lost: number
  /** The worker that was killed, as it was last seen. */
  readonly killed: Stuck | undefined
}

export const run = Effect.fnUntraced(function* (
  plan: Plan,
  watch: (event: Deposited | Stuck) => Effect.Effect<void>
): Effect.fn.Return<Outcome, WorkerFailed, Workers | Ledger | Scope.Scope> {
  const ledger = yield* Ledger
  const workers = yield* Workers
  const go = yield* Latch.make()
  const deposits: Array<Deposited> = []
  let ready = 0
  let killed: Stuck | undefined

  const onEvent = (worker: Worker) =>
    Effect.fnUntraced(function* (event: WorkerEvent) {
      switch (event._tag) {
        case "Ready":
          if (++ready === workerCount) yield* go.open
          return
        case "Deposited":
          deposits.push(event)
          return yield* watch(event)
        case "Stuck":
          yield* worker.kill
          killed = event
          return yield* watch(event)
        case "WorkerFailed":
          return yield* event
      }
    })

  const crew = yield* Effect.forEach(
    Array.range(1, workerCount),
    (worker) =>
      workers.start(
        {
          worker,
          ledger: ledger.file,
          deposits: depositsPerWorker,
          locked: plan.locked,
          leaseMillis: plan.leaseMillis ?? 30_000,
          stuckAt: plan.kill?.worker === worker ? plan.kill.deposit : undefined
        },
        go.await
      ),
    { concurrency: "unbounded" }
  )
  yield* Effect.forEach(crew, (worker) => Stream.runForEach(worker.events, onEvent(worker)), {
    concurrency: "unbounded",
    discard: true
  })

  const balance = yield* ledger.balance
  return {
    deposits: Array.sortWith(deposits, ({ enteredAt }) => enteredAt, Order.Number),
    balance,
    lost: deposits.length - balance,
    killed
  }
}, Effect.scoped)
