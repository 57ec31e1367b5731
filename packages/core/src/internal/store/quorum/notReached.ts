import * as Exit from "effect/Exit"
import { LockStoreError, QuorumNotReached, type StoreReason } from "../../../LockError.ts"
import { failureOf, type Member, memberText, type Outcomes } from "./QuorumCall.ts"

/** The failure of a command on which no majority has agreed, with what went wrong at each member. */
export const notReached = (
  members: ReadonlyArray<Member>,
  required: number,
  { keys, operation }: { readonly keys: ReadonlyArray<string>; readonly operation: { readonly name: string } },
  outcomes: Outcomes<unknown>,
  acquired: number
): Exit.Exit<never, LockStoreError> => {
  const name = keys[0]!
  const passing: Array<StoreReason> = []
  const lasting: Array<StoreReason> = []
  const failures = outcomes.flatMap((outcome, i) => {
    if (outcome === undefined || Exit.isSuccess(outcome)) return []
    const failure = failureOf(outcome, name)
    const { cause, found, isTransient, reason } = failure
    ;(isTransient ? passing : lasting).push(reason)
    // the text of the reason is said once for all members
    const message = cause instanceof Error && found === undefined ? cause.message : failure.message
    return [{ member: memberText(members[i]!), reason, message }]
  })
  // without the members whose failures pass there is no majority, or without the others
  const [reason = "Failed"] = lasting.length > members.length - required ? lasting : [...passing, ...lasting]
  return Exit.fail(
    new LockStoreError({
      operation: operation.name,
      lock: name,
      reason,
      cause: new QuorumNotReached({ lock: name, acquired, required: required, failures })
    })
  )
}
