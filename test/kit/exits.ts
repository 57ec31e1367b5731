/**
 * What something failed with.
 */
import { assert } from "@effect/vitest"
import { Cause, Effect, Exit, Layer, Option } from "effect"
import { LockLost, LockStoreError, RedisDriver } from "effect-redis-lock"
import { soon } from "./eventually.ts"

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

/** The error of the driver with which building a layer fails. */
export const refusal = <A, E>(layer: Layer.Layer<A, E>) =>
  Effect.map(soon("building comes to an end", Effect.flip(Effect.scoped(Layer.build(layer)))), (error) => {
    assert.instanceOf(error, RedisDriver.RedisDriverError)
    return error as unknown as RedisDriver.RedisDriverError
  })
