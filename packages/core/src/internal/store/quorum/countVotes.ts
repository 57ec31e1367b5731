/**
 * Counts the members' votes on an acquisition.
 */
import * as Exit from "effect/Exit"
import type { AcquireReply } from "../operations/replies/replies.ts"
import type { Outcomes } from "./QuorumCall.ts"

export type Vote =
  /** A majority has granted; `onRecord` of them know this token. */
  | { readonly _tag: "Won"; readonly token: number; readonly onRecord: number }
  /** Somebody else has a majority, or nobody. */
  | {
      readonly _tag: "Lost"
      readonly remaining: number
      readonly owner: string
      /** Whether some member may have granted it. */
      readonly isPartial: boolean
      /** Whether nobody is known to have a majority, so that asking again soon may help. */
      readonly isSplit: boolean
    }
  | { readonly _tag: "Failed"; readonly outcomes: Outcomes<AcquireReply>; readonly acquired: number }

/** The decision of a majority, undefined while it can still change. A reader under its own write lock gets that lock's token. */
export const countVotes = (
  outcomes: Outcomes<AcquireReply>,
  required: number,
  isLast: boolean,
  writerToken: number | undefined
): Vote | undefined => {
  let granted = 0
  let failed = 0
  let pending = 0
  let token = 0
  let onRecord = 0
  let isWriter = false
  for (const outcome of outcomes) {
    if (outcome === undefined) {
      pending++
    } else if (Exit.isFailure(outcome)) {
      failed++
    } else if (typeof outcome.value === "number") {
      granted++
      if (outcome.value > token) onRecord = 0
      token = Math.max(token, outcome.value)
      if (outcome.value === token) onRecord++
      if (outcome.value === writerToken) isWriter = true
    }
  }
  if (granted >= required) {
    // while the writer holds, no later grant can count, so its own token does
    return isWriter ? { _tag: "Won", token: writerToken!, onRecord: granted } : { _tag: "Won", token, onRecord }
  }
  if (granted + pending >= required) return undefined
  if (failed > outcomes.length - required) {
    return isLast ? { _tag: "Failed", outcomes, acquired: granted } : undefined
  }
  const { holder, remaining, votes } = holderOf(outcomes)
  const hasMajority = votes >= required
  if (!hasMajority && granted + failed === 0 && pending > 0) return undefined
  const isPartial = granted + failed + pending > 0
  return {
    _tag: "Lost",
    remaining,
    owner: holder,
    isPartial,
    // if no member granted, failed or is pending, each of them is held by somebody else, whose release to wait for
    isSplit: isPartial && !hasMajority
  }
}

/** The holder that most members name, and how long the first of all holders still has. */
const holderOf = (outcomes: Outcomes<AcquireReply>) => {
  const deniedBy = new Map<string, number>()
  let remaining = -1
  for (const outcome of outcomes) {
    if (outcome === undefined || Exit.isFailure(outcome) || typeof outcome.value === "number") continue
    const { owner, remaining: left } = outcome.value
    deniedBy.set(owner, (deniedBy.get(owner) ?? 0) + 1)
    if (left >= 0) remaining = remaining < 0 ? left : Math.min(remaining, left)
  }
  let holder = ""
  let votes = 0
  for (const [owner, count] of deniedBy) if (count > votes) [holder, votes] = [owner, count]
  return { holder, remaining, votes }
}
