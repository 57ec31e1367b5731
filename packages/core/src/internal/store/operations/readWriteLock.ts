/**
 * `lua/read_lock/` and `lua/write_lock/`: the two sides of Redisson's RReadWriteLock.
 */
import type { LockKeys } from "../keys.ts"
import { type Asked, type HandOverTerms, leaseOf, type Leases, placeArguments, type TakesPlace } from "./lock.ts"
import {
  type AcquireReply,
  acquireReply,
  counted,
  grantOf,
  majorityOfAll,
  majorityPerKey,
  numberReply,
  numbersReply,
  operation,
  released,
  StoreCommand
} from "./StoreOperation.ts"

export const operations = {
  acquireRead: operation("read_lock/acquire", {
    reply: acquireReply,
    quorum: counted({
      writerToken: (args) => (args[2] === "" ? undefined : Number(args[3])),
      keepsTokens: false
    }),
    grants: ({ args, keys }, reply) => (typeof reply === "number" ? grantOf(keys[2]!, "s", args[1]) : undefined)
  }),
  releaseRead: operation("read_lock/release", { givesBack: "owner", reply: numberReply, quorum: released }),
  renewRead: operation("read_lock/renew", {
    writesShared: false,
    reply: numbersReply,
    quorum: majorityPerKey,
    // of a re-entry, which renews one reader
    grants: ({ args, keys }, [reply]) => (reply === 1 ? grantOf(keys[2]!, "s", args[0]) : undefined)
  }),
  forceReleaseRead: operation("read_lock/force_release", { reply: numberReply, quorum: majorityOfAll }),
  acquireWrite: operation("write_lock/acquire", {
    reply: acquireReply,
    tellsTime: true,
    boundAt: 3,
    quorum: counted({ keepsTokens: false }),
    grants: ({ args, keys }, reply) =>
      typeof reply === "number" ? grantOf(keys[0]!, `h${args[0]}:write`, args[1]) : undefined
  }),
  releaseWrite: operation("write_lock/release", { givesBack: "owner", reply: numberReply, quorum: released }),
  forceReleaseWrite: operation("write_lock/force_release", { reply: numberReply, quorum: majorityOfAll })
}

interface ReadAsked extends Omit<Asked, "tokenLifeMillis"> {
  /** The write lock that the reader holds. */
  readonly writer: { readonly owner: string; readonly token: number } | undefined
}

/** The reader lets writers go first that have waited longer than `waitedMillis`; none, if that is undefined. */
export const acquireRead = (
  { keys, leaseMillis, owner, place, tokenKey, writer }: ReadAsked,
  waitedMillis: number | undefined
): StoreCommand<AcquireReply> =>
  new StoreCommand(
    operations.acquireRead,
    [keys.lock, tokenKey, keys.readHold(owner), keys.readers, keys.places],
    [
      owner,
      leaseMillis,
      writer?.owner ?? "",
      writer?.token ?? 0,
      waitedMillis === undefined ? "" : Math.floor(waitedMillis * 1000),
      ...(place === undefined ? ["", 0] : placeArguments(place))
    ]
  )

/** The keys of everything that ends a hold. */
const sideKeys = ({ holdsStem, lock, readWriteChannel, readers }: LockKeys): ReadonlyArray<string> => [
  lock,
  readWriteChannel,
  holdsStem,
  readers
]

/** Those, and the last ones if it hands over. Literals, as in `lock.release`. */
const releaseKeys = (keys: LockKeys, terms: HandOverTerms | undefined): ReadonlyArray<string> =>
  terms === undefined
    ? sideKeys(keys)
    : [keys.lock, keys.readWriteChannel, keys.holdsStem, keys.readers, keys.places, terms.tokenKey]

/**
 * Replies 1 + the number of clients that were woken to ask: released; 0 free; -1 held by another. With `terms` the lock goes to the owners
 * whose places are the oldest, and an owner that does not hold the lock loses its place.
 */
export const releaseRead = (
  keys: LockKeys,
  owner: string,
  publish: string,
  terms?: HandOverTerms
): StoreCommand<number> =>
  new StoreCommand(
    operations.releaseRead,
    releaseKeys(keys, terms),
    terms === undefined ? [owner, publish] : [owner, publish, terms.leaseMillis, terms.tokenLifeMillis ?? ""]
  )

/** The same; an owner that does not hold the lock gives up the place of `placeOwner`: nobody's, if that is empty. */
export const releaseWrite = (
  keys: LockKeys,
  owner: string,
  publish: string,
  placeOwner: string,
  terms?: HandOverTerms
): StoreCommand<number> =>
  new StoreCommand(
    operations.releaseWrite,
    terms === undefined ? [...sideKeys(keys), keys.places] : releaseKeys(keys, terms),
    [owner, publish, terms?.leaseMillis ?? "", terms?.tokenLifeMillis ?? "", placeOwner]
  )

/** A release as it is sent later, without the place of the client: another of its writers may have that by then. */
export const keepingPlace = (release: StoreCommand<unknown>): StoreCommand<unknown> => {
  const { args, keys, operation } = release
  return operation === operations.releaseWrite ? new StoreCommand(operation, keys, [...args.slice(0, -1), ""]) : release
}

/** As `lock.renew`. */
export const renewRead = (
  readers: ReadonlyArray<{ readonly keys: LockKeys; readonly owner: string }>,
  leases: Leases
): StoreCommand<ReadonlyArray<number>> =>
  new StoreCommand(
    operations.renewRead,
    readers.flatMap(({ keys, owner }) => [keys.lock, keys.readers, keys.readHold(owner)]),
    readers.flatMap(({ owner }, i) => [leaseOf(leases, i), owner]),
    "none"
  )

/** Takes it from these owners, or without any from all of its side; replies 1, or 0 if nobody or others held it. */
const forceRelease =
  (of: "forceReleaseRead" | "forceReleaseWrite") =>
  (keys: LockKeys, publish: string, owners: ReadonlyArray<string>): StoreCommand<number> =>
    new StoreCommand(operations[of], sideKeys(keys), [publish, ...owners])

export const forceReleaseRead = forceRelease("forceReleaseRead")

export const forceReleaseWrite = forceRelease("forceReleaseWrite")

/** `placeOwner` is the owner of the place that the writer takes if it is denied; empty if it takes none. */
export const acquireWrite = (
  asked: Omit<Asked, "place"> & TakesPlace,
  placeOwner: string
): StoreCommand<AcquireReply> => {
  const { keys, leaseMillis, owner, tokenKey, tokenLifeMillis } = asked
  return new StoreCommand(
    operations.acquireWrite,
    [keys.lock, tokenKey, keys.readers, keys.places],
    [owner, leaseMillis, tokenLifeMillis, "", placeOwner, ...placeArguments(asked)]
  )
}
