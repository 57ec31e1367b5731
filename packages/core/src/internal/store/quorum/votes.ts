/**
 * What the members' outcomes come to: the votes on an acquisition, the decision on any other operation, and the failure if there is none.
 */
import * as Cause from "effect/Cause"
import * as Exit from "effect/Exit"
import { LockStoreError, QuorumNotReached } from "../../../LockError.ts"
import { mayHaveRun } from "../failures.ts"
import type { AcquireReply, Denial, QuorumRule, StoreCommand } from "../operations/StoreOperation.ts"
import { commandAt, majorityOf, type Member, memberText, type Outcome, type Outcomes } from "./QuorumCall.ts"

/** What members have replied: those that have run it. */
export const repliesIn = <A>(outcomes: Outcomes<A>): ReadonlyArray<A> => {
  const replies: Array<A> = []
  for (const outcome of outcomes) if (outcome !== undefined && Exit.isSuccess(outcome)) replies.push(outcome.value)
  return replies
}

/** The replies that deny a lock. */
export const denialsIn = (outcomes: Outcomes<AcquireReply>): ReadonlyArray<Denial> =>
  repliesIn(outcomes).filter((reply) => typeof reply !== "number")

export type Vote =
  /** A majority has granted; `onRecord` of them know this token. */
  | { readonly _tag: "Won"; readonly token: number; readonly onRecord: number }
  /** Somebody else has a majority, or nobody. */
  | { readonly _tag: "Lost"; readonly denial: Denial }
  /** There is no majority that answers. */
  | { readonly _tag: "Failed"; readonly acquired: number }

/**
 * The decision of a majority, undefined while it can still change. A reader under its own write lock gets that lock's token. The longest
 * pause is for when nobody is known to have a majority, so that asking again soon may help.
 */
export const countVotes = (
  outcomes: Outcomes<AcquireReply>,
  writerToken: number | undefined,
  longestPauseMillis: number
): Vote | undefined => {
  const required = majorityOf(outcomes)
  let granted = 0
  let failed = 0
  /** How many of the failures may have granted it, and of the denials: those by a minority of a member that is itself a quorum. */
  let unknown = 0
  let pending = 0
  let token = 0
  let onRecord = 0
  let isWriter = false
  for (const outcome of outcomes) {
    if (outcome === undefined) {
      pending++
    } else if (Exit.isFailure(outcome)) {
      failed++
      if (mayHaveRun(outcome.cause)) unknown++
    } else if (typeof outcome.value === "number") {
      granted++
      if (outcome.value > token) onRecord = 0
      token = Math.max(token, outcome.value)
      if (outcome.value === token) onRecord++
      if (outcome.value === writerToken) isWriter = true
    } else if (outcome.value.isPartial) unknown++
  }
  if (granted >= required) {
    // while the writer holds, no later grant can count, so its own token does
    return isWriter ? { _tag: "Won", token: writerToken!, onRecord: granted } : { _tag: "Won", token, onRecord }
  }
  if (granted + pending >= required) return undefined
  if (failed > outcomes.length - required) {
    return pending === 0 ? { _tag: "Failed", acquired: granted } : undefined
  }
  const { holder, remaining, votes } = holderOf(denialsIn(outcomes))
  const hasMajority = votes >= required
  // A pending member may still say who holds the lock, which decides how to wait. If it denies the lock, there is nothing to roll back.
  const mayMatter = hasMajority ? unknown === 0 : failed === 0 || votes + pending >= required
  if (granted === 0 && pending > 0 && mayMatter) return undefined
  // if no member granted, failed or is pending, each of them is held by somebody else, whose release to wait for
  const isSplit = !hasMajority && granted + failed + pending > 0
  // after a split vote too, whose denial comes with a pause
  const isPartial = isSplit || granted + unknown + pending > 0
  const denial = isSplit
    ? { remaining: 0, owner: holder, isPartial, pauseMillis: Math.random() * longestPauseMillis }
    : { remaining, owner: holder, isPartial, pauseMillis: 0 }
  return { _tag: "Lost", denial }
}

/** The holder that most members name, and how long the first of all holders still has. */
const holderOf = (denials: ReadonlyArray<Denial>) => {
  const deniedBy = new Map<string, number>()
  let remaining = -1
  for (const { owner, remaining: left } of denials) {
    deniedBy.set(owner, (deniedBy.get(owner) ?? 0) + 1)
    if (left >= 0) remaining = remaining < 0 ? left : Math.min(remaining, left)
  }
  let holder = ""
  let votes = 0
  for (const [owner, count] of deniedBy) if (count > votes) [holder, votes] = [owner, count]
  return { holder, remaining, votes }
}

/** The reply on which a majority agrees, to anything but an acquisition; undefined while there is none. */
export const decide = <A>(rule: QuorumRule<A>, outcomes: Outcomes<A>): A | undefined => {
  const isLast = !outcomes.includes(undefined)
  if (!isLast && rule.waitsForAll === true) return undefined
  const replies = repliesIn(outcomes)
  const required = majorityOf(outcomes)
  return replies.length < required ? undefined : rule.combine(replies, { members: outcomes.length, required, isLast })
}

/** The outcomes of a release, where what a reconnect has repeated at a member gave back what that finds no more. */
export const withGivenBack = <A>(
  outcomes: Outcomes<A>,
  members: ReadonlyArray<Member>,
  release: StoreCommand<A>
): Outcomes<A> =>
  outcomes.map((outcome, i) => {
    const member = members[i]!
    const isDenied = outcome !== undefined && Exit.isSuccess(outcome) && Number(outcome.value) < 1
    return isDenied && member.client.hasGivenBack(commandAt(member, release)) ? givenBack : outcome
  })

/** A release replies a number. */
const givenBack: Outcome<any> = Exit.succeed(1)

/**
 * The failure of a command on which no majority has agreed, with what went wrong at each member. An acquisition was granted by `acquired`
 * of them; any other command was run by `ran`.
 */
export const notReached = (
  members: ReadonlyArray<Member>,
  { keys, operation }: { readonly keys: ReadonlyArray<string>; readonly operation: { readonly name: string } },
  outcomes: Outcomes<unknown>,
  acquired: number,
  ran = 0
): Exit.Exit<never, LockStoreError> => {
  const name = keys[0]!
  const required = majorityOf(members)
  const failed = outcomes.flatMap((outcome, i) =>
    outcome === undefined || Exit.isSuccess(outcome)
      ? []
      : [{ member: memberText(members[i]!), error: errorOf(outcome.cause, name) }]
  )
  // without the members whose failures pass there is no majority, or without the others
  const isLasting = failed.filter(({ error }) => !error.isTransient).length > members.length - required
  const decisive = failed.find(({ error }) => error.isTransient !== isLasting) ?? failed[0]
  const mayHaveRun = acquired + ran > 0 || failed.some(({ error }) => error.isOutcomeUnknown)
  const failures = failed.map(({ member, error: { cause, found, message, reason } }) => ({
    member,
    reason,
    // the text of the reason is said once for all members
    message: cause instanceof Error && found === undefined ? cause.message : message
  }))
  return Exit.fail(
    new LockStoreError({
      operation: operation.name,
      lock: name,
      reason: decisive?.error.reason ?? "Failed",
      ...(mayHaveRun ? { mayHaveRun } : undefined),
      cause: new QuorumNotReached({ lock: name, acquired, required, members: members.length, failures })
    })
  )
}

/** What went wrong at a member. */
const errorOf = (cause: Cause.Cause<LockStoreError>, name: string): LockStoreError => {
  const error = Cause.squash(cause)
  return error instanceof LockStoreError
    ? error
    : new LockStoreError({ operation: "run", lock: name, reason: "Failed", cause: error })
}
