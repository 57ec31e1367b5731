/**
 * Decides an operation from the members' replies; for acquisitions see `countVotes.ts`.
 */
import * as Exit from "effect/Exit"
import type { QuorumRule } from "../operations/StoreOperation.ts"
import type { Outcomes } from "./QuorumCall.ts"

export type Decision<A> =
  | { readonly _tag: "Decided"; readonly reply: A }
  | { readonly _tag: "Undecided"; readonly outcomes: Outcomes<A> }

/** Undefined while replies that are still to come may matter. */
export const decide = <A>(
  rule: QuorumRule<A>,
  outcomes: Outcomes<A>,
  required: number,
  isLast: boolean
): Decision<A> | undefined => {
  if (!isLast && rule.waitsForAll === true) return undefined
  const replies: Array<A> = []
  for (const outcome of outcomes) if (outcome !== undefined && Exit.isSuccess(outcome)) replies.push(outcome.value)
  const reply =
    replies.length < required ? undefined : rule.combine(replies, { members: outcomes.length, required, isLast })
  if (reply !== undefined) return { _tag: "Decided", reply }
  return isLast ? { _tag: "Undecided", outcomes } : undefined
}
