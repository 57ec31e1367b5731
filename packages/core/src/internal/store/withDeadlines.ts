import * as Cause from "effect/Cause"
import type * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { LockStoreError } from "../../LockError.ts"
import type { LockStore, Operation } from "../../LockStore.ts"
import type { Reply } from "../../RedisDriver.ts"
import type { CommandDeadlines } from "./CommandDeadlines.ts"
import { type Cancellable, start, startable } from "./startable.ts"

/** Runs one operation whose last argument is its deadline, if it has one. */
export type Execute<E> = (
  operation: Operation,
  keys: ReadonlyArray<string>,
  args: ReadonlyArray<string | number>
) => Effect.Effect<Reply, E>

/**
 * Adds a deadline to every operation that creates something, and sends it again where the server's clock was not known.
 */
export const withDeadlines =
  <E extends { readonly cause?: unknown }>(
    deadlines: CommandDeadlines,
    execute: Execute<E>,
    toStoreError: (error: E, operation: Operation, keys: ReadonlyArray<string>) => LockStoreError
  ): LockStore["Service"]["run"] =>
  (operation, keys, args) =>
    startable((onExit) => {
      const failed = (exit: Exit.Failure<Reply, E>) =>
        onExit(Exit.mapError(exit, (error) => toStoreError(error, operation, keys)))
      const command = deadlines.begin(operation, keys)
      if (command === undefined) {
        return start(execute(operation, keys, args), (exit) =>
          Exit.isSuccess(exit) ? onExit(exit as Exit.Success<Reply>) : failed(exit)
        )
      }
      let isCancelled = false
      let sent: Cancellable | undefined
      const send = () => {
        sent = start(execute(operation, keys, command.stamp(args)), (exit) => {
          if (Exit.isSuccess(exit)) return onExit(Exit.succeed(command.read(exit.value)))
          if (!command.isLate((Cause.squash(exit.cause) as E).cause)) return failed(exit)
          if (!command.maySendAgain) return onExit(Exit.fail(tooLate(operation, keys)))
          if (!isCancelled) send()
        })
      }
      send()
      return {
        cancel: () => {
          isCancelled = true
          sent?.cancel()
        }
      }
    })

/** The server's clock was stepped again and again, or the server stopped each time. */
const tooLate = (operation: Operation, keys: ReadonlyArray<string>): LockStoreError =>
  new LockStoreError({ operation, lock: keys[0]!, reason: "TooLate" })
