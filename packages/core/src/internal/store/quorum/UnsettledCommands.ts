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

export class UnsettledCommands {
  /** By owner, in the order of the times until which something may take effect. */
  readonly #unsettled = new Map<string, Unsettled>()

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
    for (const [earlier, { lastEffectAt }] of this.#unsettled) {
      if (lastEffectAt > now) break
      this.#unsettled.delete(earlier)
    }
    let unknown: Array<number> | undefined
    let lifeMillis = 0
    for (let i = 0; i < outcomes.length; i++) {
      const outcome = outcomes[i]!
      if (Exit.isSuccess(outcome) || !mayHaveRun(outcome.cause)) continue
      ;(unknown ??= []).push(i)
      lifeMillis = Math.max(lifeMillis, members[i]!.store.commandLifeMillis)
    }
    if (unknown === undefined) return
    for (const earlier of this.#unsettled.get(owner)?.members ?? []) {
      if (!unknown.includes(earlier)) unknown.push(earlier)
    }
    this.#unsettled.delete(owner)
    this.#unsettled.set(owner, { members: unknown, lastEffectAt: now + lifeMillis })
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
