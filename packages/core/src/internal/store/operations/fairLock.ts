/**
 * `lua/fair_lock/`: Redisson's fair lock, whose waiters have places in a queue.
 */
import type { LockKeys } from "../keys.ts"
import type { Asked, HandOverTerms } from "./lock.ts"
import { type AcquireReply, acquireReply, grantsOwner, numberReply, operation, StoreCommand } from "./StoreOperation.ts"

/** The reply to a refresh: the time left of the holder's lease (-2: the lock is free), the holder, and the owner at the head of the queue. */
export interface RefreshReply {
  readonly left: number
  readonly head: string | undefined
  readonly headMillis: number
  readonly holder: string | undefined
  /** Whether the client was taken for dead, or was not noted: its waiters may have lost their places. */
  readonly mayHaveLostPlaces: boolean
}

/** Not for a quorum, each member of which would have a queue of its own. */
export const operations = {
  acquire: operation("fair_lock/acquire", { reply: acquireReply, tellsTime: true, grants: grantsOwner }),
  release: operation("fair_lock/release", { givesBack: "owner", reply: numberReply }),
  forceRelease: operation("fair_lock/force_release", { reply: numberReply }),
  refresh: operation("fair_lock/refresh", {
    reply: (raw): RefreshReply => {
      type Raw = readonly [number, string | null, number, string | null, number]
      const [left, head, headMillis, holder, lost] = raw as Raw
      return { left, head: head ?? undefined, headMillis, holder: holder ?? undefined, mayHaveLostPlaces: lost === 1 }
    }
  })
}

/** The terms of a waiter's place. */
export interface PlaceTerms {
  /** What each waiter adds to the scores of those behind it, milliseconds; zero for an owner that does not wait. */
  readonly waiterTimeoutMillis: number
  readonly clientId: string
  readonly placeLifeMillis: number
  readonly publish: string
}

const queueKeys = ({ channel, clients, lock, queue, timeouts }: LockKeys) => [lock, channel, queue, timeouts, clients]

interface FairAsked extends Omit<Asked, "place"> {
  /** By what the owner recognises the message that hands the lock over to it. */
  readonly secret: string
}

export const acquire = (
  {
    keys: { channel, clients, lock, queue, timeouts },
    leaseMillis,
    owner,
    secret,
    tokenKey,
    tokenLifeMillis
  }: FairAsked,
  { clientId, placeLifeMillis, publish, waiterTimeoutMillis }: PlaceTerms
): StoreCommand<AcquireReply> =>
  new StoreCommand(
    operations.acquire,
    [lock, tokenKey, queue, timeouts, clients, channel],
    [owner, leaseMillis, tokenLifeMillis, waiterTimeoutMillis, clientId, placeLifeMillis, publish, secret]
  )

/** Replies 1 + the number of clients that were woken to ask: released; 0 free; -1 held by another. */
export const release = (
  { channel, clients, lock, queue, timeouts }: LockKeys,
  owner: string,
  publish: string,
  { leaseMillis, tokenKey, tokenLifeMillis }: HandOverTerms,
  waiterTimeoutMillis: number
): StoreCommand<number> =>
  new StoreCommand(
    operations.release,
    // a literal, as in `lock.release`
    [lock, channel, queue, timeouts, clients, tokenKey],
    [owner, publish, leaseMillis, tokenLifeMillis ?? "", waiterTimeoutMillis]
  )

/** Takes it from these owners, or without any from its holder; replies 1, or 0 if nobody or others held it. */
export const forceRelease = (keys: LockKeys, publish: string, owners: ReadonlyArray<string>): StoreCommand<number> =>
  new StoreCommand(operations.forceRelease, queueKeys(keys), [publish, ...owners])

/** A client's report on its waiters. */
interface Refreshed {
  /** Whether the client has any waiter. */
  readonly waits: boolean
  /**
   * Some that wait, in their order: they get a place if they have none. If the client was taken for dead, they do so only if the
   * first of all is among them.
   */
  readonly reported: { readonly owners: ReadonlyArray<string>; readonly fromFirst: boolean }
  /** Owners whose places are to be removed. */
  readonly gone: ReadonlyArray<string>
}

/** Keeps the places of a client's waiters. */
export const refresh = (
  keys: LockKeys,
  { clientId, placeLifeMillis, publish, waiterTimeoutMillis }: PlaceTerms,
  { gone, reported, waits }: Refreshed
): StoreCommand<RefreshReply> =>
  new StoreCommand(operations.refresh, queueKeys(keys), [
    publish,
    waiterTimeoutMillis,
    clientId,
    waits ? placeLifeMillis : 0,
    reported.fromFirst ? 1 : 0,
    reported.owners.length,
    ...reported.owners,
    ...gone
  ])
