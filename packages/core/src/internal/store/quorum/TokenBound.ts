import { type StoreCommand, withTokenAtLeast } from "../operations/StoreOperation.ts"
import { keyAt, type Member } from "./QuorumCall.ts"

/**
 * Added to the highest clock of the members, beside the time that an acquisition takes: for one that takes longer than the
 * last.
 */
const marginMicros = 2000

/** So far ahead of the clocks the bound is at most, however long acquisitions take. */
const longestMarginMicros = 100_000

/** How long a look at the members' clocks is good for: commands in quick succession teach nothing new about them. */
const lookMillis = 10

/** A lower bound for the token of each acquisition, so that all members grant the same token and no second round is needed. */
export class TokenBound {
  readonly #members: ReadonlyArray<Member>
  readonly #now: () => number
  /** How long acquisitions took of late, milliseconds: the longest, which fades as others follow. */
  #acquireMillis = 0
  #lookedAt = Number.NEGATIVE_INFINITY
  /** By how much the highest of the members' clocks was ahead of ours at the last look, microseconds. */
  #lead = 0

  constructor(members: ReadonlyArray<Member>, now: () => number) {
    this.#members = members
    this.#now = now
  }

  /** Adds the bound to an acquisition whose token can have one. */
  add<A>(command: StoreCommand<A>): StoreCommand<A> {
    const now = this.#now()
    if (now >= this.#lookedAt + lookMillis) {
      const clock = this.highestClock(command.keys[0]!)
      if (clock === undefined) return command
      this.#lookedAt = now
      this.#lead = clock - now * 1000
    }
    // the members' clocks may have advanced by this much before they run the command
    const margin = Math.min(marginMicros + this.#acquireMillis * 1000, longestMarginMicros)
    return withTokenAtLeast(command, Math.floor(this.#lead + now * 1000 + margin))
  }

  took(millis: number): void {
    this.#acquireMillis = Math.max(millis, this.#acquireMillis * 0.9)
  }

  /** The time of the member whose clock is ahead of the others', microseconds: as each has told its own. */
  highestClock(key: string): number | undefined {
    let highest: number | undefined
    for (const member of this.#members) {
      const micros = member.client.store.serverMicros(keyAt(member, key))
      if (micros !== undefined && (highest === undefined || micros > highest)) highest = micros
    }
    return highest
  }
}
