import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import { LockStoreError } from "../../LockError.ts"
import type { LockStore, Operation } from "../../LockStore.ts"
import type { Reply } from "../../RedisDriver.ts"
import type { CommandDeadlines, TimedCommand } from "./CommandDeadlines.ts"

/** Runs one operation whose last argument is its deadline, if it has one. */
export type Execute = LockStore["Service"]["run"]

/**
 * Gives every operation that creates something a deadline, and sends it again where the server's clock was not known.
 */
export const withDeadlines =
  (deadlines: CommandDeadlines, execute: Execute): LockStore["Service"]["run"] =>
  (operation, keys, args) =>
    Effect.suspend(() => {
      const command = deadlines.begin(operation, keys)
      return command === undefined ? execute(operation, keys, args) : send(command, execute, operation, keys, args)
    })

const send = (
  command: TimedCommand,
  execute: Execute,
  operation: Operation,
  keys: ReadonlyArray<string>,
  args: ReadonlyArray<string | number>
): Effect.Effect<Reply, LockStoreError> =>
  Effect.matchCauseEffect(execute(operation, keys, command.stamp(args)), {
    onSuccess: (reply) => Effect.succeed(command.read(reply)),
    onFailure: (cause) => {
      const error = Cause.squash(cause)
      const reason = error instanceof LockStoreError ? error.cause : undefined
      if (!command.isLate(reason)) return Effect.failCause(cause)
      return command.maySendAgain
        ? Effect.suspend(() => send(command, execute, operation, keys, args))
        : Effect.fail(tooLate(operation, keys))
    }
  })

/** The server's clock was stepped again and again, or the server stopped each time. */
export const tooLate = (operation: Operation, keys: ReadonlyArray<string>): LockStoreError =>
  new LockStoreError({ operation, lock: keys[0]!, reason: "TooLate" })
