/**
 * `lua/permit_semaphore/`: permits with ids and leases. `initial` is the number of permits with which a missing semaphore is
 * created; undefined not to create it.
 */
import { type LockKeys, permitIds } from "../keys.ts"
import { leaseOf, type Leases } from "./lock.ts"
import { doneReply, numberReply, numbersReply, operation, StoreCommand } from "./StoreOperation.ts"
import { type PermitsReply, tellingKeys, type TellingStore, type Wants, wantsArgs } from "./semaphore.ts"

interface PermitCounts {
  /** Undefined if there is no semaphore. */
  readonly available: number | undefined
  readonly held: number
}

export const operations = {
  acquire: operation("permit_semaphore/acquire", {
    reply: (raw): PermitsReply => {
      const [granted, available, remaining, held] = raw as readonly [number, number, number, number?]
      return { isGranted: granted === 1, available, exists: held !== -1, remaining, held }
    },
    // one script acquired them all
    grants: ({ args, keys }, { isGranted }) =>
      isGranted ? { key: keys[1]!, mark: `z${args[keys.length > 3 ? 9 : 3]}`, leastMillis: 0 } : undefined
  }),
  release: operation("permit_semaphore/release", { givesBack: "owner", reply: numberReply }),
  // remembered by its caller, and only if it has given back all
  tryRelease: operation("permit_semaphore/try_release", { reply: numberReply }),
  renew: operation("permit_semaphore/renew", { writesShared: false, reply: numbersReply }),
  set: operation("permit_semaphore/set", { reply: doneReply }),
  add: operation("permit_semaphore/add", { reply: numberReply }),
  count: operation("permit_semaphore/count", {
    reply: (raw): PermitCounts => {
      const [available, held] = raw as readonly [number | null, number]
      return { available: available ?? undefined, held }
    }
  }),
  lease: operation("permit_semaphore/lease", { writesShared: false, reply: numberReply }),
  updateLease: operation("permit_semaphore/update_lease", { reply: doneReply })
}

const keysOf = (key: string, store: TellingStore) => [key, permitIds(key), ...tellingKeys(key, store)]

export const acquire = (
  key: string,
  { ids, leaseMillis }: { readonly ids: ReadonlyArray<string>; readonly leaseMillis: number },
  wants: Wants,
  store: TellingStore
): StoreCommand<PermitsReply> =>
  new StoreCommand(operations.acquire, keysOf(key, store), [
    wants.initial ?? "",
    leaseMillis,
    store.publish,
    ...wantsArgs(store, wants),
    ...ids
  ])

/** Replies 1 + how many clients were listening, or -1: some were no longer held. */
export const release = (key: string, ids: ReadonlyArray<string>, store: TellingStore): StoreCommand<number> =>
  new StoreCommand(operations.release, keysOf(key, store), [store.publish, ...ids])

/** Gives all back or none; replies how many. */
export const tryRelease = (key: string, ids: ReadonlyArray<string>, store: TellingStore): StoreCommand<number> =>
  new StoreCommand(operations.tryRelease, keysOf(key, store), [store.publish, ...ids])

/** Replies 1 or 0 for each; the owner of several is their ids, joined by commas. */
export const renew = (
  held: ReadonlyArray<{ readonly keys: LockKeys; readonly owner: string }>,
  leases: Leases
): StoreCommand<ReadonlyArray<number>> =>
  new StoreCommand(
    operations.renew,
    held.map(({ keys }) => permitIds(keys.lock)),
    held.flatMap(({ owner }, i) => [leaseOf(leases, i), owner])
  )

/** Replies whether anything has changed. */
export const set = (key: string, permits: number, ifExists: boolean, store: TellingStore): StoreCommand<boolean> =>
  new StoreCommand(operations.set, keysOf(key, store), [permits, ifExists ? 1 : 0, store.publish])

/** Replies how many are free now. */
export const add = (
  key: string,
  initial: number | undefined,
  permits: number,
  store: TellingStore
): StoreCommand<number> => new StoreCommand(operations.add, keysOf(key, store), [initial ?? "", permits, store.publish])

export const count = (key: string, store: TellingStore): StoreCommand<PermitCounts> =>
  new StoreCommand(operations.count, keysOf(key, store), [store.publish])

/** Replies the milliseconds left: -1 for no end, -2 for a permit that is not held. */
export const lease = (key: string, id: string): StoreCommand<number> =>
  new StoreCommand(operations.lease, [permitIds(key)], [id])

/** Replies whether the permit is held. -1: without end. */
export const updateLease = (key: string, id: string, leaseMillis: number): StoreCommand<boolean> =>
  new StoreCommand(operations.updateLease, [permitIds(key)], [id, leaseMillis])
