/**
 * A payment under a lock, which PostgreSQL refuses if the lock has passed to somebody else meanwhile.
 */
import { Data, Effect } from "effect"
import { SqlClient } from "effect/sql"
import { Lock } from "effect-redis-lock"

/** A later holder of the lock has come to the account, or there is no such account: nothing was written. */
export class Outdated extends Data.TaggedError("Outdated")<{ readonly account: string; readonly token: bigint }> {
  override get message(): string {
    return `PostgreSQL refused the write: somebody with a token above ${this.token} has come to ${this.account}, or there is no such account`
  }
}

/** The account has less than the amount. */
export class InsufficientFunds extends Data.TaggedError("InsufficientFunds")<{ readonly balance: bigint }> {
  override get message(): string {
    return `the account has only ${this.balance}`
  }
}

/**
 * Takes an amount from an account, if the bank agrees. Returns what is left.
 *
 * Asking the bank takes time, in which no transaction should be open. So the account is read first and written afterwards, and a
 * lock keeps others out in between.
 */
export const pay = Effect.fnUntraced(function* <E, R>(
  account: string,
  amount: bigint,
  askBank: Effect.Effect<void, E, R>
) {
  const { token } = yield* Lock.currentHolding(lockOf(account))
  const sql = yield* SqlClient.SqlClient

  // Before it reads: from here on PostgreSQL refuses every earlier holder, so that what is read stays true.
  const [read] = yield* sql<{ readonly balance: string }>`
    UPDATE account SET fence = ${token} WHERE id = ${account} AND fence <= ${token} RETURNING balance::text`
  if (read === undefined) return yield* new Outdated({ account, token })
  const balance = BigInt(read.balance)
  if (balance < amount) return yield* new InsufficientFunds({ balance })

  yield* askBank

  // Only if nobody has come after us.
  const written = yield* sql`
    UPDATE account SET balance = ${balance - amount} WHERE id = ${account} AND fence = ${token} RETURNING id`
  if (written.length === 0) return yield* new Outdated({ account, token })
  return balance - amount
})

/** The name of the lock of an account. */
export const lockOf = (account: string): string => `account:${account}`
