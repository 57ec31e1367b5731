/**
 * One row of the table of operations: everything that is known of an operation, in one place.
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
  /** Whether it gives something back, as a client still does when it closes. */
  readonly givesBack: boolean
  /** What a script's reply means. */
  reply(raw: Reply): A
  /** How a quorum decides it; undefined if a quorum cannot run it. */
  readonly quorum: QuorumRule<A> | undefined
  /** What it has granted; absent for an operation by which nobody comes to hold anything. */
  grants?(command: GrantingCommand, reply: A): Grant | undefined
}

/** The part of a command that tells what it grants. */
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
  /** What a grant by it needs to count; absent for what the client says. */
  readonly acknowledge?: Acknowledgement | "none"
}

/** A command whose grant needs this to count. */
export const acknowledgedBy = <A>(
  command: StoreCommand<A>,
  { acknowledge }: { readonly acknowledge: Acknowledgement | "none" | undefined }
): StoreCommand<A> => (acknowledge === undefined ? command : { ...command, acknowledge })

/** An acquisition whose token is to be at least this one, as far as its kind allows. */
export const withTokenAtLeast = <A>(command: StoreCommand<A>, token: number): StoreCommand<A> => {
  const { boundAt } = command.operation
  if (boundAt === undefined) return command
  const args = [...command.args]
  args[boundAt] = token
  return { ...command, args }
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
  /** An acquisition, which has a count of votes of its own. */
  readonly acquires?: AcquireRule
  /** The owner whose last hold it ends. */
  releases?(args: Arguments): string
  /** The owner to whose holds it adds one, or of whose holds it ends one that is not the last. */
  addsHold?(args: Arguments): string
  removesHold?(args: Arguments): string
  /** The lease that it asks for, milliseconds, if it is for a lock that is held already. */
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
  /** The token of the write lock under which a reader asks. */
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
