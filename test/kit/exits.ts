/**
 * What something failed with.
 */
import { assert } from "@effect/vitest"
import { Cause, Exit, Option } from "effect"
import { LockLost, LockStoreError } from "effect-redis-lock"

/** The typed error with which something failed. */
export const failure = <A, E>(exit: Exit.Exit<A, E>): E => {
  if (Exit.isSuccess(exit)) return assert.fail(`should have failed, but succeeded with ${String(exit.value)}`)
  return Option.getOrElse(Cause.findErrorOption(exit.cause), () => assert.fail(Cause.pretty(exit.cause)))
}

/** The loss with which a section failed. */
export const loss = (exit: Exit.Exit<unknown, unknown>): LockLost => {
  const error = failure(exit)
  assert.instanceOf(error, LockLost)
  return error
}

/** The error of Redis with which something failed. */
export const storeError = (exit: Exit.Exit<unknown, unknown>): LockStoreError => {
  const error = failure(exit)
  assert.instanceOf(error, LockStoreError)
  return error
}
