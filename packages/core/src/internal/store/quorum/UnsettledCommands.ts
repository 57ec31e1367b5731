/**
 * Commands that failed at some members of a quorum with unknown outcome: they may take effect there for as long as a command lives.
 */
import * as Exit from "effect/Exit"
import { LockStoreError } from "../../../LockError.ts"
import type { StoreCommand } from "../operations/StoreOperation.ts"
import { mayHaveRun } from "../outcome.ts"
import { type Member, type Outcome, type Outcomes } from "./QuorumCall.ts"

interface Unsettled {
  readonly members: ReadonlyArray<number>
  readonly lastEffectAt: number
}

/** How often those that can no longer take effect are removed, milliseconds. */
const cleanUpIntervalMillis = 1000

export class UnsettledCommands {
  /** By owner, in the order of the times until which something may take effect. */
  readonly #unsettled = new Map<string, Unsettled>()
  #cleanUpAt = 0

  get(owner: string): Unsettled | undefined {
    return this.#unsettled.get(owner)
  }

  /** The members at which a command of the owner may still take effect; undefined where there are none. */
  membersAt(owner: string, now: number): ReadonlyArray<number> | undefined {
    const unsettled = this.#unsettled.get(owner)
    return unsettled !== undefined && unsettled.lastEffectAt >= now ? unsettled.members : undefined
  }

  delete(owner: string): void {
    this.#unsettled.delete(owner)
  }

  /** Notes the outcomes of a command that has settled. */
  note(owner: string, outcomes: ReadonlyArray<Outcome<unknown>>, members: ReadonlyArray<Member>, now: number): void {
    if (now >= this.#cleanUpAt) this.#cleanUp(now)
    let unknown: Array<number> | undefined
    let lifeMillis = 0
    for (let i = 0; i < outcomes.length; i++) {
      const outcome = outcomes[i]!
      if (Exit.isSuccess(outcome) || !mayHaveRun(outcome.cause)) continue
      ;(unknown ??= []).push(i)
      lifeMillis = Math.max(lifeMillis, members[i]!.store.commandLifeMillis)
    }
    if (unknown === undefined) return
    const before = this.#unsettled.get(owner)
    if (before !== undefined) {
      for (const earlier of before.members) if (!unknown.includes(earlier)) unknown.push(earlier)
      this.#unsettled.delete(owner)
    }
    this.#unsettled.set(owner, { members: unknown, lastEffectAt: now + lifeMillis })
  }

  #cleanUp(now: number): void {
    this.#cleanUpAt = now + cleanUpIntervalMillis
    for (const [owner, { lastEffectAt }] of this.#unsettled) {
      if (lastEffectAt > now) break
      this.#unsettled.delete(owner)
    }
  }
}

/** The outcomes where the replies of some members count as failures. */
export const withoutMembers = <A>(
  outcomes: Outcomes<A>,
  members: ReadonlyArray<number>,
  { keys, operation }: StoreCommand<A>
): Outcomes<A> =>
  outcomes.map((outcome, i) =>
    outcome !== undefined && Exit.isSuccess(outcome) && members.includes(i)
      ? Exit.fail(
          new LockStoreError({
            operation: operation.name,
            lock: keys[0]!,
            reason: "TimedOut",
            cause: new Error("the release of another hold, which was not answered, may still take effect there")
          })
        )
      : outcome
  )
