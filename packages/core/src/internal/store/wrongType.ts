/**
 * Explains what a name holds if it is not of the expected kind.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import { LockStoreError } from "../../LockError.ts"
import type { Store } from "./Store.ts"
import * as lock from "./operations/lock.ts"
import type { StoreCommand } from "./operations/StoreOperation.ts"

/** The part of a client that queries the store. */
interface AskedClient {
  readonly store: Store
}

const foundText: Record<string, string> = {
  "read-write lock": "a ReadWriteLock",
  hash: "a lock of another kind, or some other hash",
  string: "a Semaphore, a PermitSemaphore, a CountDownLatch, or some other string",
  list: "a list",
  set: "a set",
  zset: "a sorted set",
  stream: "a stream"
}

/** What the scripts of semaphores and latches have found by themselves. */
const counterText = ({ cause }: LockStoreError): string | undefined => {
  const text = cause instanceof Error ? cause.message : ""
  return text.includes("a permit semaphore")
    ? "a PermitSemaphore"
    : text.includes("not a counter")
      ? "a string that is no number"
      : undefined
}

/**
 * Fails with the cause; a wrong type with what was expected and what was found.
 */
export const describeWrongType = (
  client: AskedClient,
  expected: string,
  key: string,
  cause: Cause.Cause<LockStoreError>
): Effect.Effect<never, LockStoreError> => {
  const failure = cause.reasons.find((reason) => reason._tag === "Fail")
  if (failure === undefined || failure.error.reason !== "WrongType") return Effect.failCause(cause)
  const { error } = failure
  return Effect.matchEffect(client.store.run(lock.found(key)), {
    onFailure: () => Effect.failCause(cause),
    onSuccess: (found) =>
      // nothing is wrong with the name itself: it is another key of the lock, or what was there is gone
      found === "none"
        ? Effect.failCause(cause)
        : Effect.fail(
            new LockStoreError({
              operation: error.operation,
              lock: error.lock,
              reason: "WrongType",
              expected,
              found: counterText(error) ?? foundText[found] ?? found,
              cause: error.cause
            })
          )
  })
}

/**
 * {@link describeWrongType} for an operation on several names: finds out which of them it was.
 */
export const describeWrongTypeOfOne = (
  client: AskedClient,
  asked: ReadonlyArray<{ readonly expected: string; readonly key: string }>,
  cause: Cause.Cause<LockStoreError>
): Effect.Effect<never, LockStoreError> => {
  const failure = cause.reasons.find((reason) => reason._tag === "Fail")
  if (failure === undefined || failure.error.reason !== "WrongType") return Effect.failCause(cause)
  const { cause: reply, operation, reason } = failure.error
  const isNoLock = ({ key }: { readonly key: string }) =>
    Effect.match(client.store.run(lock.found(key)), {
      onFailure: () => false,
      onSuccess: (found) => found !== "hash" && found !== "none"
    })
  return Effect.flatMap(Effect.filter(asked, isNoLock), ([first]) =>
    first === undefined
      ? Effect.failCause(cause)
      : describeWrongType(
          client,
          first.expected,
          first.key,
          Cause.fail(new LockStoreError({ operation, lock: first.key, reason, cause: reply }))
        )
  )
}

/** Runs one operation; if the name holds something other than a synchronizer of this title, says what. */
export const runOrDescribe = <A>(
  client: AskedClient,
  title: string,
  command: StoreCommand<A>
): Effect.Effect<A, LockStoreError> =>
  Effect.catchCause(client.store.run(command), (cause) => describeWrongType(client, title, command.keys[0]!, cause))
