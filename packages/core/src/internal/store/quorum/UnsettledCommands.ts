import * as Exit from "effect/Exit"
import { ExpiringMap } from "../../time/ExpiringMap.ts"
import { mayHaveRun } from "../failures.ts"
import type { Member, Outcome } from "./QuorumCall.ts"

/** Commands that failed at some members with unknown outcome, by owner: they may take effect there for as long as a command lives. */
export class UnsettledCommands extends ExpiringMap<ReadonlyArray<number>> {
  /** The members at which a command of the owner may still take effect; undefined where there are none. */
  membersAt(owner: string, now: number): ReadonlyArray<number> | undefined {
    return this.get(owner, now)?.value
  }

  /** Notes the outcomes of a command that has settled. */
  note(owner: string, outcomes: ReadonlyArray<Outcome<unknown>>, members: ReadonlyArray<Member>, now: number): void {
    let unknown: Array<number> | undefined
    let lifeMillis = 0
    for (let i = 0; i < outcomes.length; i++) {
      const outcome = outcomes[i]!
      if (Exit.isSuccess(outcome) || !mayHaveRun(outcome.cause)) continue
      ;(unknown ??= []).push(i)
      lifeMillis = Math.max(lifeMillis, members[i]!.store.commandLifeMillis)
    }
    if (unknown === undefined) return
    for (const earlier of this.membersAt(owner, now) ?? []) if (!unknown.includes(earlier)) unknown.push(earlier)
    this.set(owner, unknown, now + lifeMillis, now)
  }
}
