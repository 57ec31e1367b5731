/**
 * Rules, shared by several operations, that combine the replies of a quorum's members.
 */
import type { Arguments, QuorumRule, Scale } from "./StoreOperation.ts"

/** The reply of a majority that confirms, or of enough that do not; undefined if the members that failed could tip the scales. */
const confirmed = (replies: ReadonlyArray<number>, { members, required }: Scale): number | undefined => {
  let positive = 0
  let highest = 0
  let lowest = 0
  for (const reply of replies) {
    if (reply >= 1) positive++
    highest = Math.max(highest, reply)
    lowest = Math.min(lowest, reply)
  }
  if (positive >= required) return highest
  return members - (replies.length - positive) < required ? lowest : undefined
}

/** For numeric replies: at least 1 if the member has done it. */
export const majority: QuorumRule<number> = { combine: confirmed }

/** For replies that say whether the member has done it. */
export const majorityDone: QuorumRule<boolean> = {
  combine: (replies, scale) => {
    const reply = confirmed(replies.map(Number), scale)
    return reply === undefined ? undefined : reply >= 1
  }
}

/** The same as `majority`, but only once all members have replied or failed. */
export const majorityOfAll: QuorumRule<number> = { waitsForAll: true, combine: confirmed }

export const firstArgument = (args: Arguments): string => String(args[0])

/** For replies with one number per key: -1 for a key without a majority. */
export const majorityPerKey: QuorumRule<ReadonlyArray<number>> = {
  renews: (args) => Number(args[0]),
  combine: (perMember, scale) => {
    const decided = perMember[0]!.map((_, i) =>
      confirmed(
        perMember.map((replies) => replies[i]!),
        scale
      )
    )
    return decided.some((reply) => reply === undefined) && !scale.isLast
      ? undefined
      : decided.map((reply) => reply ?? -1)
  }
}

/** Not decided by replies alone: the votes for an acquisition are counted in `countVotes.ts`. */
export const counted = { combine: () => undefined }
