/**
 * `lua/semaphore/`: anonymous permits. `initial` is the number of permits with which a missing semaphore is created;
 * undefined not to create it.
 */
import { grantMarker, permitIds } from "../keys.ts"
import { doneReply, numberReply, operation, StoreCommand } from "./StoreOperation.ts"
import { type PermitsReply, tellingKeys, type TellingStore, type Wants, wantsArgs } from "./permitPlaces.ts"

export const operations = {
  acquire: operation("semaphore/acquire", {
    reply: (raw): PermitsReply => {
      const [granted, available, exists, remaining] = raw as readonly [number, number, number, number]
      return { isGranted: granted === 1, available, exists: exists === 1, remaining, held: undefined }
    },
    grants: ({ keys }, { isGranted }) => (isGranted ? { key: keys[2]!, mark: "s" } : undefined)
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
  initial: number | undefined,
  { id, markerMillis, permits }: Grant,
  wants: Wants,
  store: TellingStore
): StoreCommand<PermitsReply> =>
  new StoreCommand(
    operations.acquire,
    [key, permitIds(key), grantMarker(key, id), ...tellingKeys(key, store)],
    [initial ?? "", permits, markerMillis, store.publish, ...wantsArgs(store, wants)]
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
