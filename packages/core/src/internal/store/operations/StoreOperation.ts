/**
 * One row of the table of operations: everything about an operation, in one place.
 */
import type { Reply } from "../../../RedisDriver.ts"
import type { Acknowledgement } from "../../options/acknowledge.ts"
import { scripts } from "../redis/scripts.generated.ts"

export type OperationName = keyof typeof scripts

export type Arguments = ReadonlyArray<string | number>

export interface StoreOperation<A> {
  /** The path of its script under `lua/`. */
  readonly name: OperationName
  /** Whether its last argument, which the store adds, is the time until which it may take effect. */
  readonly hasDeadline: boolean
  /** Whether its script tells the server's time when it grants something. */
  readonly tellsTime: boolean
  /** Which of its arguments is a lower bound for the token; undefined where there is none. */
  readonly boundAt: number | undefined
  /** Whether it gives something back: a closing client still sends it. */
  readonly givesBack: boolean
  /** Converts a script's reply. */
  reply(raw: Reply): A
  /** How a quorum decides its result; undefined if a quorum cannot run it. */
  readonly quorum: QuorumRule<A> | undefined
  /** The grant that a reply confirms; absent for an operation that grants nothing. */
  grants?(command: GrantingCommand, reply: A): Grant | undefined
}

/** The part of a command that identifies what it grants. */
type GrantingCommand = Pick<StoreCommand<unknown>, "keys" | "args">

/** The trace of a grant in Redis, by which it is confirmed: see `lua/grant/confirm.lua`. */
export interface Grant {
  readonly key: string
  /** `h` and a field of a hash, `z` and the id of a permit, or `s` for a string. */
  readonly mark: string
}

/** One operation with its keys and arguments, ready to run. `keys[0]` is the lock. */
export interface StoreCommand<A> {
  readonly operation: StoreOperation<A>
  readonly keys: ReadonlyArray<string>
  readonly args: Arguments
  /** What its grant needs in order to count; absent for the client's own setting. */
  readonly acknowledge?: Acknowledgement | "none" | undefined
}

class OperationCommand<A> implements StoreCommand<A> {
  readonly operation: StoreOperation<A>
  readonly keys: ReadonlyArray<string>
  readonly args: Arguments
  readonly acknowledge: StoreCommand<A>["acknowledge"]

  constructor(
    operation: StoreOperation<A>,
    keys: ReadonlyArray<string>,
    args: Arguments,
    acknowledge: StoreCommand<A>["acknowledge"]
  ) {
    this.operation = operation
    this.keys = keys
    this.args = args
    this.acknowledge = acknowledge
  }
}

export const command = <A>(
  operation: StoreOperation<A>,
  keys: ReadonlyArray<string>,
  args: Arguments,
  acknowledge?: StoreCommand<A>["acknowledge"]
): StoreCommand<A> => new OperationCommand(operation, keys, args, acknowledge)

/** The command with what its grant needs in order to count. */
export const acknowledgedBy = <A>(
  asked: StoreCommand<A>,
  { acknowledge }: { readonly acknowledge: Acknowledgement | "none" | undefined }
): StoreCommand<A> =>
  acknowledge === undefined ? asked : command(asked.operation, asked.keys, asked.args, acknowledge)

/** An acquisition whose token is to be at least this one, as far as its kind allows. */
export const withTokenAtLeast = <A>(acquisition: StoreCommand<A>, token: number): StoreCommand<A> => {
  const { acknowledge, keys, operation } = acquisition
  if (operation.boundAt === undefined) return acquisition
  const args = acquisition.args.slice()
  args[operation.boundAt] = token
  return command(operation, keys, args, acknowledge)
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
  /** Present for an acquisition, whose votes are counted separately. */
  readonly acquires?: AcquireRule
  /** The owner whose last hold it ends. */
  releases?(args: Arguments): string
  /** The owner to which it adds a hold, or whose hold it ends, if that is not the last one. */
  addsHold?(args: Arguments): string
  removesHold?(args: Arguments): string
  /** The lease that it requests, milliseconds, if it is for a lock that is already held. */
  renews?(args: Arguments): number
}

export interface Scale {
  readonly members: number
  readonly required: number
  /** Whether no more replies will come. */
  readonly isLast: boolean
}

export interface AcquireRule {
  owner(args: Arguments): string
  leaseMillis(args: Arguments): number
  /** The token of the write lock that the reader holds. */
  writerToken?(args: Arguments): number | undefined
  /** Whether the last token is kept when no lease is left. */
  readonly keepsTokens: boolean
}

interface Row<A> {
  readonly reply: (raw: Reply) => A
  readonly tellsTime?: boolean
  readonly boundAt?: number
  readonly givesBack?: boolean
  readonly quorum?: QuorumRule<A>
  readonly grants?: NonNullable<StoreOperation<A>["grants"]>
}

/** A row of the table. */
export const operation = <A>(
  name: OperationName,
  { boundAt, givesBack = false, grants, quorum, reply, tellsTime = false }: Row<A>
): StoreOperation<A> => ({
  name,
  hasDeadline: scripts[name].hasDeadline,
  tellsTime,
  boundAt,
  givesBack,
  reply,
  quorum,
  ...(grants === undefined ? undefined : { grants })
})
