/**
 * The subject of the demo: a deposit, without a lock and under one.
 */
import { Effect } from "effect"
import { Lock } from "effect-redis-lock"
import { Ledger } from "./Ledger.ts"

/** Reads, modifies and writes the balance. Deposits that others make between the read and the write are lost. */
export const deposit = Effect.fnUntraced(function* (amount: number, token?: bigint) {
  const ledger = yield* Ledger
  const balance = yield* ledger.balance
  yield* Effect.sleep("2 millis") // stands for a real computation
  yield* ledger.write(balance + amount, token)
})

/** The same, but one at a time across all processes, and with the fencing token for the ledger. */
export const depositLocked = (amount: number) =>
  Effect.gen(function* () {
    const { token } = yield* Lock.currentHolding("ledger")
    yield* deposit(amount, token)
  }).pipe(Lock.withLock("ledger"))
