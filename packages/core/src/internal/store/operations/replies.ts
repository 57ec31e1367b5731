/**
 * What the scripts' replies mean, where several of them share it.
 */
import type { Reply } from "../../../RedisDriver.ts"

/** What is known of the holder of a lock that was not granted. */
export interface Denial {
  /** Milliseconds that its lease has left; below zero: no expiry. */
  readonly remaining: number
  readonly owner: string
  /** Whether a minority of a quorum may have granted it. */
  readonly isPartial: boolean
  /** How long to leave it to others, when nobody has a majority. */
  readonly pauseMillis: number
}

/** The answer to an acquisition: a fencing token, or what is known of the holder. */
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
