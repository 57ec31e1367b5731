/**
 * The members of a quorum, and one command to all of them.
 */
import * as Exit from "effect/Exit"
import type { LockStoreError } from "../../../LockError.ts"
import type { Cancellable } from "../../../RedisDriver.ts"
import type { LockClient } from "../../client/LockClient.ts"
import type { Alarm, AlarmClock } from "../../time/clock.ts"
import { failureOf } from "../commands.ts"
import { StoreCommand } from "../operations/StoreOperation.ts"
import { start } from "../startable.ts"
import type { Store } from "../Store.ts"

export type Outcome<A> = Exit.Exit<A, LockStoreError>

/** The outcomes so far, by member; undefined for a member that has not answered. */
export type Outcomes<A> = ReadonlyArray<Outcome<A> | undefined>

export interface Member {
  /** Its name in messages if its store has no address. */
  readonly label: string
  /** The lock's name there, if it differs between members. */
  readonly lockName?: string | undefined
  /** Replaced, with `run` and `client`, when a server that could not be reached at first has joined. */
  store: Omit<Store, "run">
  run: Store["run"]
  /** Its client; undefined before it has joined. */
  client?: LockClient | undefined
  /** Maps a key or channel of the quorum's lock to this member's; undefined if they are the same. */
  readonly keyOf: ((key: string) => string) | undefined
}

/** How many members are a majority: any two majorities have one in common. */
export const majorityOf = (members: ReadonlyArray<Member>): number => Math.floor(members.length / 2) + 1

/** What a member is called in messages. */
export const memberText = ({ label, lockName, store }: Member): string => {
  const place = store.address?.() ?? label
  return lockName === undefined ? place : `${place} ("${lockName}")`
}

export const keyAt = ({ keyOf }: Member, key: string): string => (keyOf === undefined ? key : keyOf(key))

/** A command with the keys of one member. */
export const commandAt = <A>({ keyOf }: Member, asked: StoreCommand<A>): StoreCommand<A> =>
  keyOf === undefined ? asked : new StoreCommand(asked.operation, asked.keys.map(keyOf), asked.args, asked.acknowledge)

/** The outcome of a member whose answer was given up: the command may still take effect there. */
const unread: Outcome<never> = Exit.interrupt()

/** What is sent, what decides it, and what follows. */
interface CallSteps<A, B> {
  readonly command: StoreCommand<A>
  readonly timeoutMillis: number
  /** The conclusion from what has come in; undefined while more must come. */
  readonly conclude: (outcomes: Outcomes<A>, isLast: boolean) => B | undefined
  readonly onDecided: (conclusion: B) => void
  /** Called when every member has answered, or was given up. */
  readonly onSettled: (outcomes: ReadonlyArray<Outcome<A>>) => void
}

/**
 * One command to all members at once, each with the same time to answer. It is decided as soon as the outcomes so far suffice,
 * and settled when every member has one.
 */
export class QuorumCall<A, B> implements Alarm {
  due = 0
  heapIndex = -1
  readonly #members: ReadonlyArray<Member>
  readonly #alarms: AlarmClock
  readonly #timeoutMillis: number
  /** Undefined once the call is settled, like what follows. */
  #command: StoreCommand<A> | undefined
  #conclude: CallSteps<A, B>["conclude"] | undefined
  #onDecided: CallSteps<A, B>["onDecided"] | undefined
  #onSettled: CallSteps<A, B>["onSettled"] | undefined
  readonly #outcomes: Array<Outcome<A> | undefined>
  readonly #sent: Array<Cancellable | undefined>
  /** The fewest outcomes that can decide it: enough to keep the others from being a majority. */
  readonly #fewest: number
  #pending: number
  #isDecided = false

  constructor(
    members: ReadonlyArray<Member>,
    alarms: AlarmClock,
    { command, conclude, onDecided, onSettled, timeoutMillis }: CallSteps<A, B>
  ) {
    this.#members = members
    this.#alarms = alarms
    this.#command = command
    this.#timeoutMillis = timeoutMillis
    this.#conclude = conclude
    this.#onDecided = onDecided
    this.#onSettled = onSettled
    this.#pending = members.length
    this.#fewest = members.length - majorityOf(members) + 1
    this.#outcomes = members.map(() => undefined)
    this.#sent = members.map(() => undefined)
  }

  get isSettled(): boolean {
    return this.#pending === 0
  }

  start(now: number): void {
    const command = this.#command!
    const sent = this.#sent
    this.#alarms.set(this, now + this.#timeoutMillis)
    for (let i = 0; i < this.#members.length; i++) {
      const member = this.#members[i]!
      const asked = start(member.run(commandAt(member, command)), (exit) => this.#settle(i, exit))
      if (this.#pending > 0) sent[i] = asked
    }
  }

  #settle(i: number, outcome: Outcome<A>): void {
    const outcomes = this.#outcomes
    if (outcomes[i] !== undefined) return
    outcomes[i] = outcome
    const isLast = --this.#pending === 0
    const conclude = this.#conclude!
    const onDecided = this.#onDecided!
    const onSettled = this.#onSettled!
    if (isLast) {
      this.#letGo()
      // before the caller goes on, and perhaps releases what it was denied
      onSettled(outcomes as ReadonlyArray<Outcome<A>>)
    }
    if (!this.#isDecided && (this.#members.length - this.#pending >= this.#fewest || isLast)) {
      const conclusion = conclude(outcomes, isLast)
      if (conclusion !== undefined) {
        this.#isDecided = true
        onDecided(conclusion)
      }
    }
  }

  /**
   * Drops what a settled call refers to, in its arrays as well: both may live until the next full collection of V8's old
   * generation, which keeps the earlier tables of a Map that once held the call, and in which V8 allocates some arrays at once.
   */
  #letGo(): void {
    this.#alarms.cancel(this)
    this.#command = this.#conclude = this.#onDecided = this.#onSettled = undefined
    this.#sent.fill(undefined)
  }

  /** Waits for the remaining replies no longer than until then. */
  hurry(until: number): void {
    if (until < this.due) this.#alarms.set(this, until)
  }

  /** The timeout is over: members without a reply count as failed. */
  ring(): void {
    const command = this.#command
    if (command === undefined) return
    const late = new Error(`no answer within the member timeout of ${Math.round(this.#timeoutMillis)} ms`)
    this.#settleRest(Exit.fail(failureOf(command, "TimedOut", late)))
  }

  /** Gives up the remaining replies. */
  abandon(): void {
    this.#settleRest(unread)
  }

  #settleRest(outcome: Outcome<A>): void {
    const outcomes = this.#outcomes
    const sent = this.#sent
    for (let i = 0; i < outcomes.length; i++) {
      if (outcomes[i] !== undefined) continue
      sent[i]?.cancel()
      this.#settle(i, outcome)
    }
  }

  /** The caller has given up. */
  cancel(): void {
    this.#isDecided = true
    this.#alarms.cancel(this)
    for (const sent of this.#sent) sent?.cancel()
  }
}
