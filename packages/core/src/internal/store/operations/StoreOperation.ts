/**
 * A row of the table of operations, which has everything about an operation in one place, and the commands made from it. Then what several
 * rows share: what replies mean, what they grant, and how a majority decides.
 */
import type { RedisScript, Reply } from "../../../RedisDriver.ts"
import type { Acknowledgement } from "../../options/acquireOptions.ts"
import { longestHandOverMillis } from "../../options/ClientOptions.ts"
import { shown } from "../../report/shown.ts"
import { scripts } from "../redis/scripts.generated.ts"

export type OperationName = keyof typeof scripts

export type Arguments = ReadonlyArray<string | number>

export interface StoreOperation<A> {
  /** The path of its script under `lua/`. */
  readonly name: OperationName
  readonly script: RedisScript
  /** Whether its last argument, which the store adds, is the time until which it may take effect. */
  readonly hasDeadline: boolean
  /** Whether its script tells the server's time when it grants something. */
  readonly tellsTime: boolean
  /** Which of its arguments is a lower bound for the token; undefined where there is none. */
  readonly boundAt: number | undefined
  /**
   * Whose it is what it gives back, if it does: a closing client still sends it. An owner id is used once, so what is an owner's may be
   * given back again at any time; what is the client's may be in use again by then.
   */
  readonly givesBack: "owner" | "client" | undefined
  /**
   * Whether it writes keys under which a client may have several leases, of readers or of permits, and so ends their tracking. By default
   * what is in their folders does; a renewal is followed by a command that tracks them again.
   */
  readonly writesShared: boolean
  /** Converts a script's reply. */
  reply(raw: Reply): A
  /** How a quorum decides its result; undefined if a quorum cannot run it. */
  readonly quorum: QuorumRule<A> | undefined
  /** The grant that a reply confirms; absent for an operation that grants nothing. */
  grants?(command: Pick<StoreCommand<unknown>, "keys" | "args">, reply: A): Grant | undefined
}

type Grants<A> = NonNullable<StoreOperation<A>["grants"]>

/** The trace of a grant in Redis, by which it is confirmed: see `lua/grant/confirm.lua`. */
export interface Grant {
  readonly key: string
  /** `h` and a field of a hash, `z` and the id of a permit, or `s` for a string. */
  readonly mark: string
  /** How long it must still last where it is confirmed, milliseconds; zero for whatever is left. */
  readonly leastMillis: number
}

/**
 * The grant of a lease. Where it is confirmed, more of it must be left than a server has that has only heard of the hand-over. Of a lease that is
 * hardly longer, whatever is left counts: the reply may take long against it.
 */
export const grantOf = (key: string, mark: string, leaseMillis: string | number | undefined): Grant => ({
  key,
  mark,
  leastMillis: Number(leaseMillis) >= 1.5 * longestHandOverMillis ? longestHandOverMillis + 1 : 0
})

/** One operation with its keys and arguments, ready to run. `keys[0]` is the lock. */
export class StoreCommand<A> {
  readonly operation: StoreOperation<A>
  readonly keys: ReadonlyArray<string>
  readonly args: Arguments
  /** What its grant needs in order to count; absent for the client's own setting. */
  readonly acknowledge?: Acknowledgement | "none" | undefined
  /** When the lease of what it releases is over, on the monotonic clock; a quorum tells members that are away until then. */
  declare readonly overAt?: number | undefined

  constructor(
    operation: StoreOperation<A>,
    keys: ReadonlyArray<string>,
    args: Arguments,
    acknowledge?: Acknowledgement | "none"
  ) {
    this.operation = operation
    this.keys = keys
    this.args = args
    this.acknowledge = acknowledge
  }
}

/** The command with what its grant needs in order to count. */
export const acknowledgedBy = <A>(
  asked: StoreCommand<A>,
  { acknowledge }: { readonly acknowledge: Acknowledgement | "none" | undefined }
): StoreCommand<A> =>
  acknowledge === undefined ? asked : new StoreCommand(asked.operation, asked.keys, asked.args, acknowledge)

/** An acquisition whose token is to be at least this one, as far as its kind allows. */
export const withTokenAtLeast = <A>(acquisition: StoreCommand<A>, token: number): StoreCommand<A> => {
  const { acknowledge, keys, operation } = acquisition
  if (operation.boundAt === undefined) return acquisition
  const args = acquisition.args.slice()
  args[operation.boundAt] = token
  return new StoreCommand(operation, keys, args, acknowledge)
}

/** How a majority of stores decides an operation. */
export interface QuorumRule<A> {
  /** The conclusion from the replies of at least a majority; undefined while they do not agree. */
  combine(replies: ReadonlyArray<A>, scale: Scale): A | undefined
  /**
   * Decided only when every member has answered or timed out: for a look at all members, and for commands that must reach all
   * of them.
   */
  readonly waitsForAll?: boolean
  /** Present for an acquisition, whose votes are counted separately. Its first arguments are the owner and the lease. */
  readonly acquires?: AcquireRule
  /** Whether it releases what the owner holds that is its first argument. */
  readonly releases?: boolean
}

interface Scale {
  readonly members: number
  readonly required: number
  /** Whether no more replies will come. */
  readonly isLast: boolean
}

export interface AcquireRule {
  /** The token of the write lock that the reader holds. */
  writerToken?(args: Arguments): number | undefined
  /** Whether the last token is kept when no lease is left. */
  readonly keepsTokens: boolean
}

export const operation = <A>(
  name: OperationName,
  row: Partial<StoreOperation<A>> & Pick<StoreOperation<A>, "reply">
): StoreOperation<A> => ({
  tellsTime: false,
  boundAt: undefined,
  givesBack: undefined,
  writesShared: /^(?:read_lock|write_lock|permit_semaphore)\//.test(name),
  quorum: undefined,
  ...row,
  name,
  script: scripts[name],
  hasDeadline: scripts[name].hasDeadline
})

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
  const [remaining, owner] = listReply(raw) as readonly [Reply, string]
  return { remaining: numberReply(remaining!), owner, isPartial: false, pauseMillis: 0 }
}

/** Not what a script replies, but what is between it and us: a driver, a proxy. */
const unexpected = (raw: Reply, wanted: string) =>
  new Error(`the driver gave ${shown(raw)} where ${wanted} was expected`)

export const numberReply = (raw: Reply): number => {
  if (typeof raw !== "number") throw unexpected(raw, "a number")
  return raw
}

export const listReply = (raw: Reply): ReadonlyArray<Reply> => {
  if (!Array.isArray(raw)) throw unexpected(raw, "a list")
  return raw
}

/** 1: it was done. */
export const doneReply = (raw: Reply): boolean => raw === 1

export const numbersReply = (raw: Reply): ReadonlyArray<number> => listReply(raw).map(numberReply)

/** The grant of an acquisition whose first argument is the owner: a field of the lock. */
export const grantsOwner: Grants<AcquireReply> = ({ args, keys }, reply) =>
  typeof reply === "number" ? grantOf(keys[0]!, `h${args[0]}`, args[1]) : undefined

/** The reply of a majority that confirms, or of enough that do not; undefined if the members that failed could tip the scales. */
const confirmed = (replies: ReadonlyArray<number>, { members, required }: Scale): number | undefined => {
  let positive = 0
  let highest = 0
  let lowest = 0
  for (const reply of replies) {
    if (reply >= 1) positive++
    highest = Math.max(highest, reply)
    lowest = Math.min(lowest, reply)
  }
  if (positive >= required) return highest
  return members - (replies.length - positive) < required ? lowest : undefined
}

/** What a majority of the members has replied. */
export const agreed = <A>(replies: ReadonlyArray<A>, required: number): A | undefined =>
  replies.find((reply) => replies.filter((other) => other === reply).length >= required)

/** For numeric replies: at least 1 if the member has done it. */
export const majority: QuorumRule<number> = { combine: confirmed }

/** The same as `majority`, but only once all members have replied or failed. */
export const majorityOfAll: QuorumRule<number> = { ...majority, waitsForAll: true }

/** For the release of an owner: a majority that has run it is enough, even if a member that failed may have had the lock. */
export const released: QuorumRule<number> = {
  combine: (replies, scale) => confirmed(replies, scale) ?? (scale.isLast ? Math.max(...replies) : undefined),
  releases: true
}

/** For one key of several, that no majority of a quorum has decided. */
export const undecided = -1

/** For replies with one number per key: {@link undecided} for one of several keys without a majority. */
export const majorityPerKey: QuorumRule<ReadonlyArray<number>> = {
  combine: (perMember, scale) => {
    const decided = perMember[0]!.map((_, i) =>
      confirmed(
        perMember.map((replies) => replies[i]!),
        scale
      )
    )
    return decided.some((reply) => reply === undefined) && (!scale.isLast || decided.length === 1)
      ? undefined
      : decided.map((reply) => reply ?? undecided)
  }
}

/** Not decided by replies alone: the votes for an acquisition are counted in `quorum/votes.ts`. */
export const counted = (acquires: AcquireRule): QuorumRule<AcquireReply> => ({ combine: () => undefined, acquires })

/** `lua/grant/`: what all kinds of grant have in common. */
export const operations = {
  confirm: operation("grant/confirm", { reply: numbersReply })
}

/** Replies for each grant whether it is there for long enough, 1 or 0, after writing one of them again as it is. All are of one slot. */
export const confirm = (grants: ReadonlyArray<Grant>): StoreCommand<ReadonlyArray<number>> =>
  new StoreCommand(
    operations.confirm,
    grants.map(({ key }) => key),
    [...grants.map(({ mark }) => mark), ...grants.map(({ leastMillis }) => leastMillis)]
  )
