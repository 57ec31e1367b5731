/**
 * Conversions shared by the replies of several scripts.
 */
import type { Reply } from "../../../../RedisDriver.ts"
import type { StoreOperation } from "../StoreOperation.ts"

/** What is known about the holder of a lock that was not granted. */
export interface Denial {
  /** Milliseconds left of its lease; negative: no expiry. */
  readonly remaining: number
  readonly owner: string
  /** Whether a minority of a quorum may have granted it. */
  readonly isPartial: boolean
  /** How long to leave it to others, when nobody has a majority. */
  readonly pauseMillis: number
}

/** The answer to an acquisition: a fencing token, or what is known about the holder. */
export type AcquireReply = number | Denial

export const acquireReply = (raw: Reply): AcquireReply => {
  if (typeof raw === "number") return raw
  const [remaining, owner] = raw as readonly [number, string]
  return { remaining, owner, isPartial: false, pauseMillis: 0 }
}

export const numberReply = (raw: Reply): number => raw as number

/** 1: it was done. */
export const doneReply = (raw: Reply): boolean => raw === 1

export const numbersReply = (raw: Reply): ReadonlyArray<number> => raw as ReadonlyArray<number>

/** The grant of an acquisition whose first argument is the owner: a field of the lock. */
export const grantsOwner: NonNullable<StoreOperation<AcquireReply>["grants"]> = ({ args, keys }, reply) =>
  typeof reply === "number" ? { key: keys[0]!, mark: `h${args[0]}` } : undefined

/** The grant of a re-entry; a lease of zero ends a hold. */
export const grantsHold: NonNullable<StoreOperation<number>["grants"]> = ({ args, keys }, reply) =>
  reply === 1 && Number(args[2]) > 0 ? { key: keys[0]!, mark: `h${args[0]}` } : undefined
