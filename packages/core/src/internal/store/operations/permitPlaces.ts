/**
 * How the places of clients that wait for permits, with ids or without, go into commands.
 */
import type { Store } from "../Store.ts"
import { permitPlaces, semaphoreChannel } from "../keys.ts"

/** What a store needs to tell others that permits are free. */
export type TellingStore = Pick<Store, "publish" | "handsOver">

/** What a denied request learns of a semaphore. */
export interface Supply {
  /** How many permits there are, held ones included; infinite if that is not known. */
  readonly total: number
  /** For how many seconds at a time, at most, several of them are kept for a request: see {@link isDue}. */
  readonly longestKept: number
}

/** Redis counts permits with ids, held ones as well: others wait only until those have come back. */
export const counted = (total: number): Supply => ({ total, longestKept: 1_000_000 })

export const uncounted = (total = Number.POSITIVE_INFINITY): Supply => ({ total, longestKept: 16 })

/**
 * Whether free permits are kept for the waiter that has waited longest. For several they are kept in turns, as others stand still meanwhile:
 * each turn is four times as long as the last one, up to the longest; then it is a quarter of the time. As
 * `lua/include/permit_places/place_at.lua`.
 */
export const isDue = (waitedMillis: number, permits: number, { longestKept: longest }: Supply): boolean => {
  const waited = waitedMillis / 1000
  if (permits === 1) return waited >= 0.1
  if (waited >= 4 * longest) return waited % (4 * longest) < longest
  return waited >= 1 && Math.floor(Math.log2(waited)) % 2 === 0
}

/** What a request says of the waiting fibers of its client. */
export interface Asking {
  readonly clientId: string
  /** How many permits the client wants to be told of if it is denied these; zero if it will not wait. */
  readonly ifDenied: number
  /** How many its other fibers want if it is granted these; zero if none of them waits. */
  readonly ifGranted: number
  /** The waiter that has waited longest, another one, or a fiber that has not waited yet. */
  readonly who: "oldest" | "younger" | "new"
}

/** The last keys of a command after which permits may be free. */
export const tellingKeys = (key: string, { handsOver }: TellingStore): ReadonlyArray<string> =>
  handsOver ? [semaphoreChannel(key), ...permitPlaces(key)] : [semaphoreChannel(key)]

/** The arguments that follow where there are keys of places. */
export const askingArgs = (
  { handsOver }: TellingStore,
  { clientId, ifDenied, ifGranted, who }: Asking
): ReadonlyArray<string | number> => (handsOver ? [clientId, ifDenied, ifGranted, who] : [])
