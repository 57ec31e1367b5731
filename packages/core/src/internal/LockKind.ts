/**
 * What differs between the kinds of lock that live under one key: the operations, and what they need to know. Waiting,
 * renewing, losing and releasing are the same for all.
 */
import type { Operation } from "../LockStore.ts"
import type { LockKeys } from "./keys.ts"
import type { Reply } from "../RedisDriver.ts"

/**
 * One operation with its keys and arguments, ready to run.
 */
export interface Request {
  readonly operation: Operation
  readonly keys: ReadonlyArray<string>
  readonly args: ReadonlyArray<string | number>
}

/**
 * The answer to an acquisition: a fencing token, or what is known of the holder (`remaining` below zero: no expiry).
 */
export type Answer =
  | { readonly granted: true; readonly token: number }
  | { readonly granted: false; readonly remaining: number; readonly owner: string }

export interface LockKind {
  readonly name: string
  readonly acquire: (keys: LockKeys, owner: string, leaseMillis: number) => Request
  readonly answer: (reply: Reply) => Answer
  /** Writes the hold count of an owner that holds; replies 1, or 0 when it does not hold. */
  readonly hold: (keys: LockKeys, owner: string, count: number, leaseMillis: number) => Request
  /** Replies 1 + the number of clients that were listening: released; 0 free; -1 held by another. */
  readonly release: (keys: LockKeys, owner: string, publish: string) => Request
  /** An operation over many keys: ARGV is the lease and one owner per key; replies 1 or 0 per key. */
  readonly renew: Operation
}

// The last token outlives any lease by a day, so that a server clock that steps back cannot lower tokens.
const tokenLifeMillis = 24 * 60 * 60 * 1000

/**
 * Redisson's RLock: reentrant, unfair.
 */
export const reentrant: LockKind = {
  name: "reentrant",
  acquire: (keys, owner, lease) => ({
    operation: "lock/acquire",
    keys: [keys.lock, keys.token],
    args: [owner, lease, lease + tokenLifeMillis]
  }),
  answer: (reply) => {
    if (typeof reply === "number") return { granted: true, token: reply }
    const [remaining, owner] = reply as readonly [number, string]
    return { granted: false, remaining, owner }
  },
  hold: (keys, owner, count, lease) => ({ operation: "lock/hold", keys: [keys.lock], args: [owner, count, lease] }),
  release: (keys, owner, publish) => ({
    operation: "lock/release",
    keys: [keys.lock, keys.channel],
    args: [owner, publish]
  }),
  renew: "lock/renew"
}
