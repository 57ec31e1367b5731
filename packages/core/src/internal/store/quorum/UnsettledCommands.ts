import * as Exit from "effect/Exit"
import { mayHaveRun } from "../failures.ts"
import type { Member, Outcome } from "./QuorumCall.ts"

interface Unsettled {
  readonly members: ReadonlyArray<number>
  readonly lastEffectAt: number
}

/** How often those that can no longer take effect are removed, milliseconds. */
const cleanUpIntervalMillis = 1000

/** Commands that failed at some members with unknown outcome: they may take effect there for as long as a command lives. */
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
