/**
 * `lua/lock/`, and the acquisition of `lua/fenced_lock/`: the locks that share Redisson's hash of one owner.
 */
import { type LockKeys, permitIds } from "../keys.ts"
import {
  type Inspected,
  inspectedByMajority,
  inspectedReply,
  type LookedAt,
  lookedAtByMajority,
  lookedAtReply
} from "./inspected.ts"
import {
  acquireReply,
  type AcquireReply,
  counted,
  grantOf,
  grantsOwner,
  majority,
  majorityOfAll,
  majorityPerKey,
  numberReply,
  numbersReply,
  operation,
  released,
  StoreCommand
} from "./StoreOperation.ts"

export const operations = {
  acquire: operation("lock/acquire", {
    reply: acquireReply,
    tellsTime: true,
    boundAt: 3,
    quorum: counted({ keepsTokens: false }),
    grants: grantsOwner
  }),
  acquireFenced: operation("fenced_lock/acquire", {
    reply: acquireReply,
    tellsTime: true,
    quorum: counted({ keepsTokens: true }),
    grants: grantsOwner
  }),
  release: operation("lock/release", { givesBack: "owner", reply: numberReply, quorum: released }),
  keep: operation("lock/keep", { givesBack: "owner", reply: numberReply }),
  renew: operation("lock/renew", {
    reply: numbersReply,
    quorum: majorityPerKey,
    // of a re-entry, which renews one lock
    grants: ({ args, keys }, [reply]) => (reply === 1 ? grantOf(keys[0]!, `h${args[1]}`, args[0]) : undefined)
  }),
  forceRelease: operation("lock/force_release", { reply: numberReply, quorum: majorityOfAll }),
  raiseToken: operation("lock/raise_token", { reply: numberReply, quorum: majority }),
  found: operation("lock/found", {
    reply: String,
    quorum: { waitsForAll: true, combine: (types) => types.find((type) => type !== "none") ?? "none" }
  }),
  inspect: operation("lock/inspect", {
    reply: inspectedReply,
    quorum: { waitsForAll: true, combine: (replies, { required }) => inspectedByMajority(replies, required) }
  }),
  look: operation("lock/look", {
    reply: lookedAtReply,
    quorum: { waitsForAll: true, combine: (replies, { required }) => lookedAtByMajority(replies, required) }
  })
}

/** A place among the owners that a release hands the lock over to. */
export interface TakesPlace {
  /** Whether the owner has asked before: the lock may have been handed over to it. */
  readonly hasAsked: boolean
  /** How long ago its client was first denied since it was last let in: the place is as old, even if it was lost meanwhile. */
  readonly placeAgeMillis: number
}

export const placeArguments = ({ hasAsked, placeAgeMillis }: TakesPlace): ReadonlyArray<number> => [
  Number(hasAsked),
  Math.floor(placeAgeMillis * 1000)
]

/** What an owner asks for. */
export interface Asked {
  readonly keys: LockKeys
  readonly owner: string
  readonly leaseMillis: number
  /** The key of the last token: the lock itself for a kind without tokens. */
  readonly tokenKey: string
  /** How long its token is remembered, milliseconds. */
  readonly tokenLifeMillis: number
  /** The place that it has once it is denied, until it is granted the lock or released; undefined if it takes none. */
  readonly place: TakesPlace | undefined
}

export const acquire = (asked: Asked): StoreCommand<AcquireReply> => {
  const { keys, leaseMillis, owner, place, tokenKey, tokenLifeMillis } = asked
  const isNew = place === undefined || (!place.hasAsked && place.placeAgeMillis === 0)
  return new StoreCommand(
    operations.acquire,
    place === undefined ? [keys.lock, tokenKey] : [keys.lock, tokenKey, keys.places],
    isNew ? [owner, leaseMillis, tokenLifeMillis] : [owner, leaseMillis, tokenLifeMillis, "", ...placeArguments(place)]
  )
}

/** {@link acquire} with a counter as its token. */
export const acquireFenced = ({ keys, leaseMillis, owner, place }: Asked): StoreCommand<AcquireReply> =>
  new StoreCommand(
    operations.acquireFenced,
    place === undefined ? [keys.lock, keys.token] : [keys.lock, keys.token, keys.places],
    place === undefined ? [owner, leaseMillis] : [owner, leaseMillis, ...placeArguments(place)]
  )

/** How a release hands the lock over: what the owner that it is handed over to gets. See `lua/include/hand_over/hand_over.lua`. */
export interface HandOverTerms {
  /** Its lease, until it extends it. */
  readonly leaseMillis: number
  /** The key of the last token: the lock itself for a kind without tokens. */
  readonly tokenKey: string
  /** How long its token is remembered, milliseconds; undefined for a counter. */
  readonly tokenLifeMillis: number | undefined
}

/**
 * Replies 1 + the number of clients that were woken to ask: released; 0 free; -1 held by another. With `terms` the lock goes to the owner
 * whose place is the oldest, and an owner that does not hold the lock loses its place.
 */
export const release = (keys: LockKeys, owner: string, publish: string, terms?: HandOverTerms): StoreCommand<number> =>
  // of literals: a spread leaves room for sixteen more, and many releases are remembered
  terms === undefined
    ? new StoreCommand(operations.release, [keys.lock, keys.channel], [owner, publish])
    : new StoreCommand(
        operations.release,
        [keys.lock, keys.channel, keys.places, terms.tokenKey],
        [owner, publish, terms.leaseMillis, terms.tokenLifeMillis ?? ""]
      )

/** Gives the lock back, but keeps it taken for so long, by its owner with the suffix `kept`. Replies 1: released; 0 free; -1 held by another. */
export const keep = (
  { channel, lock, queue }: LockKeys,
  owner: string,
  millis: number,
  { publish, queued }: { readonly publish: string; readonly queued: boolean }
): StoreCommand<number> =>
  new StoreCommand(operations.keep, queued ? [lock, channel, queue] : [lock, channel], [owner, publish, millis])

/** One for all owners, or one for each. */
export type Leases = number | ReadonlyArray<number>

export const leaseOf = (leases: Leases, index: number): number => (typeof leases === "number" ? leases : leases[index]!)

/** Replies 1, 0 or -1 (a quorum cannot tell) for each owner. It needs no acknowledgement: a lost renewal only ends a lease early. */
export const renew = (
  held: ReadonlyArray<{ readonly keys: LockKeys; readonly owner: string }>,
  leases: Leases
): StoreCommand<ReadonlyArray<number>> =>
  new StoreCommand(
    operations.renew,
    held.map(({ keys }) => keys.lock),
    [leaseOf(leases, 0), ...held.map(({ owner }) => owner), ...(typeof leases === "number" ? [] : leases)],
    "none"
  )

/** Takes it from these owners, or without any from its holder; replies 1, or 0 if nobody or others held it. */
export const forceRelease = (
  { channel, lock }: LockKeys,
  publish: string,
  owners: ReadonlyArray<string>
): StoreCommand<number> => new StoreCommand(operations.forceRelease, [lock, channel], [publish, ...owners])

/** Records a token that other members have granted. */
export const raiseToken = (
  lock: string,
  tokenKey: string,
  token: number,
  tokenLifeMillis: number
): StoreCommand<number> => new StoreCommand(operations.raiseToken, [lock, tokenKey], [token, tokenLifeMillis])

/** Replies the type of the value of a key. */
export const found = (key: string): StoreCommand<string> => new StoreCommand(operations.found, [key], [])

export const inspect = ({ lock, token }: LockKeys): StoreCommand<Inspected> =>
  new StoreCommand(operations.inspect, [lock, token], [])

/** Replies everything under a name, with at most `most` waiters and permits. */
export const look = ({ lock, places, queue, readers, token }: LockKeys, most: number): StoreCommand<LookedAt> =>
  new StoreCommand(operations.look, [lock, token, queue, readers, permitIds(lock), places], [most])
