/**
 * What the demo is about: a deposit, without a lock and under one.
 */
import { Effect } from "effect"
import { Lock } from "effect-redis-lock"
import { Ledger } from "./Ledger.ts"

/** Read, modify, write. Whatever others deposit between the reading and the writing is lost. */
export const deposit = Effect.fnUntraced(function* (amount: number, token?: bigint) {
  const ledger = yield* Ledger
  const balance = yield* ledger.balance
  yield* Effect.sleep("2 millis") // as a real computation would take
  yield* ledger.write(balance + amount, token)
})

/** The same, but one at a time, whichever process it runs in; and the ledger is told the fencing token. */
export const depositLocked = (amount: number) =>
  Effect.gen(function* () {
    const { token } = yield* Lock.currentHolding("ledger")
    yield* deposit(amount, token)
  }).pipe(Lock.withLock("ledger"))
