/**
 * `lua/semaphore/`: anonymous permits. `initial` is the number of permits with which a missing semaphore is created;
 * undefined not to create it. Then what both kinds of semaphore share: what a reply tells, and the places of clients that wait.
 */
import { grantMarker, permitIds, permitPlaces, semaphoreChannel } from "../keys.ts"
import type { Store } from "../Store.ts"
import { doneReply, numberReply, operation, StoreCommand } from "./StoreOperation.ts"

export const operations = {
  acquire: operation("semaphore/acquire", {
    reply: (raw): PermitsReply => {
      const [granted, available, exists, remaining] = raw as readonly [number, number, number, number]
      return { isGranted: granted === 1, available, exists: exists === 1, remaining, held: undefined }
    },
    grants: ({ keys }, { isGranted }) => (isGranted ? { key: keys[2]!, mark: "s", leastMillis: 0 } : undefined)
  }),
  giveBack: operation("semaphore/return", { givesBack: "owner", reply: numberReply }),
  leave: operation("semaphore/leave", { givesBack: "client", reply: numberReply }),
  add: operation("semaphore/add", { reply: doneReply }),
  set: operation("semaphore/set", { reply: doneReply }),
  drain: operation("semaphore/drain", { reply: numberReply }),
  available: operation("semaphore/available", { reply: (raw) => (raw as number | null) ?? undefined })
}

/** Permits of one grant, which a marker remembers. */
interface Grant {
  readonly id: string
  readonly permits: number
  readonly markerMillis: number
}

export const acquire = (
  key: string,
  { id, markerMillis, permits }: Grant,
  wants: Wants,
  store: TellingStore
): StoreCommand<PermitsReply> =>
  new StoreCommand(
    operations.acquire,
    [key, permitIds(key), grantMarker(key, id), ...tellingKeys(key, store)],
    [wants.initial ?? "", permits, markerMillis, store.publish, ...wantsArgs(store, wants)]
  )

/**
 * Replies 1: given back, or 0: the grant is not known. With a `trustedMillis` of zero, only permits that the marker records are given
 * back; otherwise the caller is trusted, and the return is remembered for that long.
 */
export const giveBack = (
  key: string,
  { id, permits }: Pick<Grant, "id" | "permits">,
  trustedMillis: number,
  store: TellingStore
): StoreCommand<number> =>
  new StoreCommand(
    operations.giveBack,
    [key, grantMarker(key, id), ...tellingKeys(key, store)],
    [permits, trustedMillis, store.publish]
  )

/** Gives up the place of a client that no longer waits for permits, with ids or without. Only for a store that hands over. */
export const leave = (key: string, clientId: string, store: TellingStore): StoreCommand<number> =>
  new StoreCommand(operations.leave, [key, ...tellingKeys(key, store)], [clientId, store.publish])

/** Replies whether there is such a semaphore. */
export const add = (
  key: string,
  initial: number | undefined,
  permits: number,
  onlyIfExists: boolean,
  store: TellingStore
): StoreCommand<boolean> =>
  new StoreCommand(
    operations.add,
    [key, permitIds(key), ...tellingKeys(key, store)],
    [onlyIfExists ? "" : (initial ?? ""), permits, onlyIfExists ? 1 : 0, store.publish]
  )

/** Replies whether it has created the semaphore. A life of zero has no end. */
export const set = (key: string, permits: number, lifeMillis: number, store: TellingStore): StoreCommand<boolean> =>
  new StoreCommand(
    operations.set,
    [key, permitIds(key), ...tellingKeys(key, store)],
    [permits, lifeMillis, store.publish]
  )

/** Replies how many were free. */
export const drain = (key: string, initial: number | undefined): StoreCommand<number> =>
  new StoreCommand(operations.drain, [key, permitIds(key)], [initial ?? ""])

/** Replies how many are free; undefined if there is no semaphore. */
export const available = (key: string): StoreCommand<number | undefined> =>
  new StoreCommand(operations.available, [key], [])

/** What a store needs to tell others that permits are free. */
export type TellingStore = Pick<Store, "publish" | "handsOver">

/** The reply to a request for permits, with ids or without. */
export interface PermitsReply {
  readonly isGranted: boolean
  /** How many are free now, and not kept for others if they were denied. */
  readonly available: number
  /** Whether there is such a semaphore. */
  readonly exists: boolean
  /**
   * Milliseconds: if denied, until the next lease ends, or until it may ask again, negative if that is not known; if permits without ids were
   * granted, until the semaphore ends, negative if it does not.
   */
  readonly remaining: number
  /** How many are held or kept for others, if permits with ids were denied; also those whose leases have just ended. */
  readonly held: number | undefined
}

/** What a denied request learns of a semaphore. */
export interface Supply {
  /** How many permits there are, held ones included; infinite if that is not known. */
  readonly total: number
  /** For how many seconds at a time, at most, several of them are kept for a request: see {@link isKept}. */
  readonly longestKept: number
}

/** Of permits without ids, Redis does not know how many are held. */
export const uncounted = (total = Number.POSITIVE_INFINITY): Supply => ({ total, longestKept: 16 })

/** Redis counts permits with ids, held ones as well: others wait only until those have come back. */
export const supplyOf = ({ available, held }: PermitsReply, initial: number | undefined): Supply =>
  held === undefined ? uncounted(initial) : { total: available + held, longestKept: 1_000_000 }

/**
 * Whether free permits are kept for the waiter that has waited longest. For several they are kept in turns, as others stand still meanwhile:
 * each turn is four times as long as the last one, up to the longest; then it is a quarter of the time. As
 * `lua/include/permit_places/place_at.lua`.
 */
export const isKept = (waitedMillis: number, permits: number, { longestKept: longest }: Supply): boolean => {
  const waited = waitedMillis / 1000
  if (permits === 1) return waited >= 0.1
  if (waited >= 4 * longest) return waited % (4 * longest) < longest
  return waited >= 1 && Math.floor(Math.log2(waited)) % 2 === 0
}

/** What the place of a client is for. */
export interface Want {
  /** How many permits would let one of its fibers in; zero if none waits. */
  readonly permits: number
  /** For how long that fiber has waited, or the client since it was last granted permits. */
  readonly waitedMillis: number
}

/** What a request says of the waiting fibers of its client. */
export interface Wants {
  readonly clientId: string
  /** The permits with which a missing semaphore is created, if any of them, or its own fiber, says so. */
  readonly initial: number | undefined
  readonly ifDenied: Want
  readonly ifGranted: Want
  /** Whether its fiber does not wait yet: it knows nothing of the others. */
  readonly isNew: boolean
}

export const nothing: Want = { permits: 0, waitedMillis: 0 }

/** The last keys of a command after which permits may be free. */
export const tellingKeys = (key: string, { handsOver }: TellingStore): ReadonlyArray<string> =>
  handsOver ? [semaphoreChannel(key), ...permitPlaces(key)] : [semaphoreChannel(key)]

/** The arguments that follow where there are keys of places. */
export const wantsArgs = (
  { handsOver }: TellingStore,
  { clientId, ifDenied, ifGranted, isNew }: Wants
): ReadonlyArray<string | number> =>
  handsOver
    ? [clientId, ifDenied.permits, ifDenied.waitedMillis, ifGranted.permits, ifGranted.waitedMillis, isNew ? 1 : 0]
    : []
