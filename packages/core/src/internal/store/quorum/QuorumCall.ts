/**
 * The members of a quorum, and one command to all of them.
 */
import type * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { LockStoreError } from "../../../LockError.ts"
import type { Cancellable } from "../../../RedisDriver.ts"
import type { LockClient } from "../../client/LockClient.ts"
import type { Alarm, AlarmClock } from "../../time/clock.ts"
import { failureOf } from "../commands.ts"
import { StoreCommand } from "../operations/StoreOperation.ts"
import { start } from "../startable.ts"

export type Outcome<A> = Exit.Exit<A, LockStoreError>

/** The outcomes so far, by member; undefined for a member that has not answered. */
export type Outcomes<A> = ReadonlyArray<Outcome<A> | undefined>

/** What a quorum asks of a member's client. */
export type MemberClient = Pick<LockClient, "run" | "store" | "joinedBy" | "hasGivenBack">

export interface Member {
  /** Its name in messages if its store has no address. */
  readonly label: string
  /** The lock's name there, if it differs between members. */
  readonly lockName?: string | undefined
  /** Its client; until a server that cannot be reached at first has joined, what refuses everything. */
  client: MemberClient
  /** Maps a key or channel of the quorum's lock to this member's; undefined if they are the same. */
  readonly keyOf: ((key: string) => string) | undefined
}

/** How many are a majority of the members, or of their outcomes: any two majorities have one in common. */
export const majorityOf = ({ length }: ReadonlyArray<unknown>): number => Math.floor(length / 2) + 1

/** What a member is called in messages. */
export const memberText = ({ client, label, lockName }: Member): string => {
  const place = client.store.address?.() ?? label
  return lockName === undefined ? place : `${place} ("${lockName}")`
}

export const keyAt = ({ keyOf }: Member, key: string): string => (keyOf === undefined ? key : keyOf(key))

/** A command with the keys of one member. */
export const commandAt = <A>({ keyOf }: Member, asked: StoreCommand<A>): StoreCommand<A> =>
  keyOf === undefined ? asked : new StoreCommand(asked.operation, asked.keys.map(keyOf), asked.args, asked.acknowledge)

/** The outcome of a member whose answer was given up: the command may still take effect there. */
const unread: Outcome<never> = Exit.interrupt()

type Conclusion<A> = Effect.Effect<A, LockStoreError>

/** What is sent, what decides it, and what follows. */
interface CallSteps<A> {
  readonly command: StoreCommand<A>
  readonly timeoutMillis: number
  /** The conclusion from what has come in; undefined while more must come. */
  readonly conclude: (outcomes: Outcomes<A>) => Conclusion<A> | undefined
  /** Called when every member has answered, or was given up: before the conclusion, if none was reached until then. */
  readonly onSettled: (outcomes: ReadonlyArray<Outcome<A>>) => void
}

/**
 * One command to all members at once, each with the same time to answer. It is decided as soon as the outcomes so far suffice,
 * and settled when every member has one.
 */
export class QuorumCall<A> implements Alarm, Cancellable {
  due = 0
  heapIndex = -1
  readonly #members: ReadonlyArray<Member>
  readonly #alarms: AlarmClock
  readonly #timeoutMillis: number
  /** Undefined once the call is decided, or its caller has given up. */
  #conclude: CallSteps<A>["conclude"] | undefined
  /** Undefined once the call is settled, like what follows. */
  #command: StoreCommand<A> | undefined
  #onSettled: CallSteps<A>["onSettled"] | undefined
  #resume: ((conclusion: Conclusion<A>) => void) | undefined
  readonly #outcomes: Array<Outcome<A> | undefined>
  readonly #sent: Array<Cancellable | undefined>
  #pending: number

  constructor(
    members: ReadonlyArray<Member>,
    alarms: AlarmClock,
    { command, conclude, onSettled, timeoutMillis }: CallSteps<A>,
    resume: (conclusion: Conclusion<A>) => void
  ) {
    this.#members = members
    this.#alarms = alarms
    this.#command = command
    this.#timeoutMillis = timeoutMillis
    this.#conclude = conclude
    this.#onSettled = onSettled
    this.#resume = resume
    this.#pending = members.length
    this.#outcomes = members.map(() => undefined)
    this.#sent = members.map(() => undefined)
  }

  get isSettled(): boolean {
    return this.#pending === 0
  }

  start(now: number): this {
    const command = this.#command!
    this.#alarms.set(this, now + this.#timeoutMillis)
    for (let i = 0; i < this.#members.length; i++) {
      const member = this.#members[i]!
      const asked = start(member.client.run(commandAt(member, command)), (exit) => this.#settle(i, exit))
      if (this.#pending > 0) this.#sent[i] = asked
    }
    return this
  }

  #settle(i: number, outcome: Outcome<A>): void {
    const outcomes = this.#outcomes
    if (outcomes[i] !== undefined) return
    outcomes[i] = outcome
    this.#pending--
    const conclude = this.#conclude
    const onSettled = this.#onSettled!
    const resume = this.#resume!
    if (this.isSettled) {
      this.#letGo()
      // before the caller goes on, and perhaps releases what it was denied
      onSettled(outcomes as ReadonlyArray<Outcome<A>>)
    }
    // while a majority is pending, nothing can be decided
    if (this.#pending >= majorityOf(outcomes)) return
    const conclusion = conclude?.(outcomes)
    if (conclusion === undefined) return
    this.#conclude = undefined
    resume(conclusion)
  }

  /**
   * Drops what a settled call refers to, in its arrays as well: both may live until the next full collection of V8's old
   * generation, which keeps the earlier tables of a Map that once held the call, and in which V8 allocates some arrays at once.
   */
  #letGo(): void {
    this.#alarms.cancel(this)
    this.#command = this.#conclude = this.#onSettled = this.#resume = undefined
    this.#sent.fill(undefined)
  }

  /** Waits for the remaining replies no longer than until then. */
  hurry(until: number): void {
    if (until < this.due) this.#alarms.set(this, until)
  }

  /** The timeout is over: members without a reply count as failed. */
  ring(): void {
    const late = new Error(`no answer within the member timeout of ${Math.round(this.#timeoutMillis)} ms`)
    this.#settleRest(Exit.fail(failureOf(this.#command!, "TimedOut", late)))
  }

  /** Gives up the remaining replies. */
  abandon(): void {
    this.#settleRest(unread)
  }

  #settleRest(outcome: Outcome<A>): void {
    for (let i = 0; i < this.#members.length; i++) {
      if (this.#outcomes[i] !== undefined) continue
      this.#sent[i]?.cancel()
      this.#settle(i, outcome)
    }
  }

  /** The caller has given up. */
  cancel(): void {
    this.#conclude = undefined
    this.#alarms.cancel(this)
    for (const sent of this.#sent) sent?.cancel()
  }
}
