import * as Cause from "effect/Cause"
import type * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { LockStoreError } from "../../LockError.ts"
import type { LockStore, Operation } from "../../LockStore.ts"
import type { Reply } from "../../RedisDriver.ts"
import type { CommandDeadlines, TimedCommand } from "./CommandDeadlines.ts"
import { type Cancellable, start, startable } from "./startable.ts"

/** Runs one operation whose last argument is its deadline, if it has one. */
export type Execute<E> = (
  operation: Operation,
  keys: ReadonlyArray<string>,
  args: ReadonlyArray<string | number>
) => Effect.Effect<Reply, E>

type ToStoreError<E> = (error: E, operation: Operation, keys: ReadonlyArray<string>) => LockStoreError

interface Target<E> {
  readonly execute: Execute<E>
  readonly toStoreError: ToStoreError<E>
}

type OnExit = (exit: Exit.Exit<Reply, LockStoreError>) => void

/**
 * Adds a deadline to every operation that creates something, and sends it again where the server's clock was not known.
 */
export const withDeadlines = <E extends { readonly cause?: unknown }>(
  deadlines: CommandDeadlines,
  execute: Execute<E>,
  toStoreError: ToStoreError<E>
): LockStore["Service"]["run"] => {
  const target = { execute, toStoreError }
  return (operation, keys, args) =>
    startable((onExit) => {
      const command = deadlines.begin(operation, keys)
      return command === undefined
        ? start(execute(operation, keys, args), (exit) =>
            onExit(
              Exit.isSuccess(exit) ? (exit as Exit.Success<Reply>) : mapFailure(exit, toStoreError, operation, keys)
            )
          )
        : new RepeatedCommand(command, target, args, onExit)
    })
}

const mapFailure = <E>(
  exit: Exit.Failure<Reply, E>,
  toStoreError: ToStoreError<E>,
  operation: Operation,
  keys: ReadonlyArray<string>
): Exit.Exit<Reply, LockStoreError> => Exit.mapError(exit, (error) => toStoreError(error, operation, keys))

/** A command that is sent, and sent again where it was late. */
class RepeatedCommand<E extends { readonly cause?: unknown }> implements Cancellable {
  readonly #command: TimedCommand
  readonly #target: Target<E>
  readonly #args: ReadonlyArray<string | number>
  readonly #onExit: OnExit
  #sent: Cancellable | undefined
  #isCancelled = false

  constructor(command: TimedCommand, target: Target<E>, args: ReadonlyArray<string | number>, onExit: OnExit) {
    this.#command = command
    this.#target = target
    this.#args = args
    this.#onExit = onExit
    this.#send()
  }

  cancel(): void {
    this.#isCancelled = true
    this.#sent?.cancel()
  }

  #send(): void {
    const { keys, operation } = this.#command
    const stamped = this.#command.stamp(this.#args)
    this.#sent = start(this.#target.execute(operation, keys, stamped), (exit) => this.#receive(exit))
  }

  #receive(exit: Exit.Exit<Reply, E>): void {
    const command = this.#command
    if (Exit.isSuccess(exit)) {
      const reply = command.read(exit.value)
      return this.#onExit(reply === exit.value ? (exit as Exit.Success<Reply>) : Exit.succeed(reply))
    }
    if (!command.isLate((Cause.squash(exit.cause) as E).cause)) {
      return this.#onExit(mapFailure(exit, this.#target.toStoreError, command.operation, command.keys))
    }
    if (!command.maySendAgain) return this.#onExit(Exit.fail(tooLate(command.operation, command.keys)))
    if (!this.#isCancelled) this.#send()
  }
}

/** The server's clock was stepped again and again, or the server stopped each time. */
const tooLate = (operation: Operation, keys: ReadonlyArray<string>): LockStoreError =>
  new LockStoreError({ operation, lock: keys[0]!, reason: "TooLate" })
