/**
 * Selling one article: read the stock, compute, write it back. Without the lock two sellers would sell the same one.
 */
import { Effect } from "effect"
import { Lock } from "effect-redis-lock"

export const url = process.env["REDIS_URL"] ?? "redis://localhost:6379"

/** What the seller's own client does. */
export interface Stock<E> {
  readonly read: Effect.Effect<string | null, E>
  readonly write: (left: number) => Effect.Effect<unknown, E>
}

export const sell = <E>(article: string, { read, write }: Stock<E>) =>
  Effect.flatMap(read, (left) => write(Number(left) - 1)).pipe(Lock.withLock(`stock:${article}`))
