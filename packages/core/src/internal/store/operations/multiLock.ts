/**
 * `lua/multi_lock/`: several locks of one slot, all or none.
 */
import type { LockKeys } from "../keys.ts"
import type { HandOverTerms } from "./lock.ts"
import { grantOf, operation, StoreCommand } from "./StoreOperation.ts"

/** The tokens, one for all or one for each lock; or the lock that another owner holds. */
type MultiLockReply = { readonly tokens: number | ReadonlyArray<number> } | { readonly deniedAt: number }

export const operations = {
  acquire: operation("multi_lock/acquire", {
    tellsTime: true,
    reply: (raw): MultiLockReply => {
      if (typeof raw === "number") return { tokens: raw }
      const [granted, ...rest] = raw as ReadonlyArray<number>
      return granted === 0 ? { deniedAt: rest[0]! } : { tokens: rest }
    },
    // one script acquired them all
    grants: ({ args, keys }, reply) => ("tokens" in reply ? grantOf(keys[0]!, `h${args[0]}`, args[1]) : undefined)
  }),
  release: operation("multi_lock/release", {
    givesBack: "owner",
    reply: (raw) => raw as number | ReadonlyArray<number>
  })
}

export const acquire = (
  locks: ReadonlyArray<string>,
  tokenKeys: ReadonlyArray<string>,
  owner: string,
  leaseMillis: number,
  tokenLifeMillis: number
): StoreCommand<MultiLockReply> =>
  new StoreCommand(operations.acquire, locks.concat(tokenKeys), [owner, leaseMillis, tokenLifeMillis])

/** A lock to be released. */
export interface Released {
  readonly keys: LockKeys
  /** The command that notifies others; empty to notify nobody. */
  readonly publish: string
  /** How it is handed over: all of them are, or none. */
  readonly terms: HandOverTerms | undefined
}

/** Replies as `lock.release` does, once for all or for each lock. */
export const release = (
  locks: ReadonlyArray<Released>,
  owner: string
): StoreCommand<number | ReadonlyArray<number>> => {
  const terms = locks[0]?.terms
  const allKeys: Array<string> = []
  const args = [owner, terms?.leaseMillis ?? "", terms?.tokenLifeMillis ?? ""]
  for (const { keys, publish, terms } of locks) {
    allKeys.push(keys.lock, keys.channel)
    if (terms !== undefined) allKeys.push(keys.places, terms.tokenKey)
    args.push(publish)
  }
  return new StoreCommand(operations.release, allKeys, args)
}
