/**
 * `lua/read_lock/` and `lua/write_lock/`: the two sides of Redisson's RReadWriteLock.
 */
import type { LockKeys } from "../keys.ts"
import type { HandOverTerms, TakesPlace } from "./lock.ts"
import { counted, firstArgument, majority, majorityOfAll, majorityPerKey } from "./majority.ts"
import { type AcquireReply, acquireReply, numberReply, numbersReply } from "./replies/replies.ts"
import { type Arguments, command, operation, type StoreCommand } from "./StoreOperation.ts"

const leaseMillis = (args: Arguments): number => Number(args[1])

export const operations = {
  acquireRead: operation("read_lock/acquire", {
    reply: acquireReply,
    quorum: {
      ...counted,
      acquires: {
        owner: firstArgument,
        leaseMillis,
        writerToken: (args) => (args[2] === "" ? undefined : Number(args[3])),
        keepsTokens: false
      }
    },
    grants: ({ keys }, reply) => (typeof reply === "number" ? { key: keys[2]!, mark: "s" } : undefined)
  }),
  holdRead: operation("read_lock/hold", {
    reply: numberReply,
    quorum: { ...majority, addsHold: firstArgument, renews: (args) => Number(args[2]) },
    grants: ({ keys }, reply) => (reply === 1 ? { key: keys[1]!, mark: "s" } : undefined)
  }),
  removeReadHold: operation("read_lock/remove_hold", {
    reply: numberReply,
    quorum: { ...majority, removesHold: firstArgument }
  }),
  releaseRead: operation("read_lock/release", {
    givesBack: true,
    reply: numberReply,
    quorum: { ...majority, releases: firstArgument }
  }),
  renewRead: operation("read_lock/renew", { reply: numbersReply, quorum: majorityPerKey }),
  forceReleaseRead: operation("read_lock/force_release", { reply: numberReply, quorum: majorityOfAll }),
  acquireWrite: operation("write_lock/acquire", {
    reply: acquireReply,
    tellsTime: true,
    boundAt: 5,
    quorum: { ...counted, acquires: { owner: firstArgument, leaseMillis, keepsTokens: false } },
    grants: ({ args, keys }, reply) =>
      typeof reply === "number" ? { key: keys[0]!, mark: `h${args[0]}:write` } : undefined
  }),
  releaseWrite: operation("write_lock/release", {
    givesBack: true,
    reply: numberReply,
    quorum: { ...majority, releases: firstArgument }
  }),
  forceReleaseWrite: operation("write_lock/force_release", { reply: numberReply, quorum: majorityOfAll }),
  withdraw: operation("write_lock/withdraw", { givesBack: true, reply: numberReply, quorum: majority })
}

/** The write lock that the reader holds. */
interface Writer {
  readonly owner: string
  readonly token: number
}

interface ReadTerms {
  readonly leaseMillis: number
  /** Whether it lets writers that wait go first. */
  readonly prefersWriters: boolean
  readonly writer: Writer | undefined
}

/** With `takesPlace` the owner has a place once it is denied, until it is granted the lock or released. */
const withPlace = (
  original: StoreCommand<AcquireReply>,
  { places }: LockKeys,
  takesPlace: TakesPlace | undefined
): StoreCommand<AcquireReply> =>
  takesPlace === undefined
    ? original
    : command(original.operation, [...original.keys, places], [...original.args, takesPlace.hasAsked ? 1 : 0])

export const acquireRead = (
  keys: LockKeys,
  tokenKey: string,
  owner: string,
  { leaseMillis, prefersWriters, writer }: ReadTerms,
  takesPlace?: TakesPlace
): StoreCommand<AcquireReply> =>
  withPlace(
    command(
      operations.acquireRead,
      [keys.lock, tokenKey, keys.readHold(owner, 1), keys.writers, keys.readers],
      [owner, leaseMillis, writer?.owner ?? "", writer?.token ?? 0, prefersWriters ? 1 : 0]
    ),
    keys,
    takesPlace
  )

/** Adds the hold of this number; replies 1, or 0 when the owner does not hold. */
export const holdRead = (keys: LockKeys, owner: string, count: number, leaseMillis: number): StoreCommand<number> =>
  command(operations.holdRead, [keys.lock, keys.readHold(owner, count), keys.readers], [owner, count, leaseMillis])

/** Ends the hold of this number, so that `count` remain; replies below 1 when the owner does not hold. */
export const removeReadHold = (
  keys: LockKeys,
  owner: string,
  count: number,
  number: number,
  publish: string
): StoreCommand<number> =>
  command(
    operations.removeReadHold,
    [keys.lock, keys.readWriteChannel, keys.holdsStem, keys.readers],
    [owner, count, publish, number]
  )

/**
 * Replies 1 + the number of clients that were woken to ask: released; 0 free; -1 held by another. With `terms` the lock goes to the owners
 * whose places are the oldest, and an owner that does not hold the lock loses its place.
 */
const release =
  (of: "releaseRead" | "releaseWrite") =>
  (keys: LockKeys, owner: string, publish: string, terms?: HandOverTerms): StoreCommand<number> => {
    const { holdsStem, lock, places, readWriteChannel, readers } = keys
    const ownKeys = [lock, readWriteChannel, holdsStem, readers]
    return terms === undefined
      ? command(operations[of], ownKeys, [owner, publish])
      : command(operations[of], [...ownKeys, places], [owner, publish, terms.leaseMillis])
  }

export const releaseRead = release("releaseRead")

export const releaseWrite = release("releaseWrite")

/** A reader with all its holds. */
interface Reader {
  readonly keys: LockKeys
  readonly owner: string
  readonly holds: number
}

export const renewRead = (readers: ReadonlyArray<Reader>, leaseMillis: number): StoreCommand<ReadonlyArray<number>> =>
  command(
    operations.renewRead,
    readers.flatMap(({ holds, keys, owner }) => [
      keys.lock,
      keys.readers,
      ...Array.from({ length: holds }, (_, i) => keys.readHold(owner, i + 1))
    ]),
    [leaseMillis, ...readers.flatMap(({ holds, owner }) => [owner, holds])]
  )

/** Replies 1, or 0 when nobody held it. */
export const forceReleaseRead = (keys: LockKeys, publish: string): StoreCommand<number> =>
  command(operations.forceReleaseRead, [keys.lock, keys.readWriteChannel, keys.holdsStem, keys.readers], [publish])

/** A writer, and how long it holds off readers while it waits. */
interface WriteTerms {
  readonly leaseMillis: number
  readonly tokenLifeMillis: number
  readonly clientId: string
  readonly announcementMillis: number
}

export const acquireWrite = (
  keys: LockKeys,
  tokenKey: string,
  owner: string,
  { announcementMillis, clientId, leaseMillis, tokenLifeMillis }: WriteTerms,
  takesPlace?: TakesPlace
): StoreCommand<AcquireReply> =>
  withPlace(
    command(
      operations.acquireWrite,
      [keys.lock, tokenKey, keys.writers, keys.readers],
      [owner, leaseMillis, tokenLifeMillis, clientId, announcementMillis, ""]
    ),
    keys,
    takesPlace
  )

/** Replies 1, or 0 when nobody held it. */
export const forceReleaseWrite = (keys: LockKeys, publish: string): StoreCommand<number> =>
  command(operations.forceReleaseWrite, [keys.lock, keys.readWriteChannel, keys.holdsStem, keys.readers], [publish])

/** Withdraws the announcement that a client's writers wait. */
export const withdraw = (keys: LockKeys, clientId: string, publish: string): StoreCommand<number> =>
  command(operations.withdraw, [keys.lock, keys.readWriteChannel, keys.writers], [clientId, publish])
