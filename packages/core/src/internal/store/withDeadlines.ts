import * as Cause from "effect/Cause"
import type * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { LockStoreError } from "../../LockError.ts"
import type { Store } from "./Store.ts"
import type { Reply } from "../../RedisDriver.ts"
import { type CommandDeadlines, TimedCommand } from "./CommandDeadlines.ts"
import type { OperationName, StoreCommand } from "./operations/StoreOperation.ts"
import { type Cancellable, start, Startable } from "./startable.ts"

/** Runs one operation whose last argument is its deadline, if it has one. */
export type Execute<E> = (
  operation: OperationName,
  keys: ReadonlyArray<string>,
  args: ReadonlyArray<string | number>
) => Effect.Effect<Reply, E>

type ToStoreError<E> = (error: E, operation: OperationName, keys: ReadonlyArray<string>) => LockStoreError

interface Target<E> {
  readonly deadlines: CommandDeadlines
  readonly execute: Execute<E>
  readonly toStoreError: ToStoreError<E>
  readonly onFailure: OnFailure
}

/** Told of every command that fails. */
type OnFailure = (error: LockStoreError) => void

type OnExit<A> = (exit: Exit.Exit<A, LockStoreError>) => void

/**
 * Adds a deadline to every operation that creates something, and sends it again where the server's clock was not known.
 */
export const withDeadlines = <E extends { readonly cause?: unknown }>(
  deadlines: CommandDeadlines,
  execute: Execute<E>,
  toStoreError: ToStoreError<E>,
  onFailure: OnFailure = () => {}
): Store["run"] => {
  const target = { deadlines, execute, toStoreError, onFailure }
  return <A>(command: StoreCommand<A>) => new Run<A, E>(command, target)
}

class Run<A, E extends { readonly cause?: unknown }> extends Startable<A, LockStoreError> {
  readonly #command: StoreCommand<A>
  readonly #target: Target<E>

  constructor(command: StoreCommand<A>, target: Target<E>) {
    super()
    this.#command = command
    this.#target = target
  }

  protected override begin(onExit: OnExit<A>): Cancellable {
    const command = this.#command
    const target = this.#target
    const { args, keys, operation } = command
    if (operation.hasDeadline) return new RepeatedCommand(command, target, onExit)
    return start(target.execute(operation.name, keys, args), (exit) =>
      onExit(Exit.isSuccess(exit) ? answer(command, exit.value, exit) : mapFailure(command, exit, target))
    )
  }
}

/** What a reply means; `exit` is what it came in, for a reply that means itself. */
const answer = <A, E>(
  { operation }: StoreCommand<A>,
  raw: Reply,
  exit: Exit.Success<Reply, E>
): Exit.Exit<A, LockStoreError> => {
  const reply = operation.reply(raw)
  return (reply as unknown) === exit.value ? (exit as Exit.Success<unknown> as Exit.Success<A>) : Exit.succeed(reply)
}

const mapFailure = <A, E>(
  { keys, operation }: StoreCommand<A>,
  exit: Exit.Failure<Reply, E>,
  { onFailure, toStoreError }: Target<E>
): Exit.Exit<never, LockStoreError> =>
  Exit.mapError(exit as Exit.Failure<never, E>, (error) => {
    const failure = toStoreError(error, operation.name, keys)
    onFailure(failure)
    return failure
  })

/** A command that is sent, and sent again where it was late. */
class RepeatedCommand<A, E extends { readonly cause?: unknown }> extends TimedCommand<A> implements Cancellable {
  readonly #target: Target<E>
  readonly #onExit: OnExit<A>
  #sent: Cancellable | undefined
  #isCancelled = false

  constructor(command: StoreCommand<A>, target: Target<E>, onExit: OnExit<A>) {
    super(target.deadlines, command)
    this.#target = target
    this.#onExit = onExit
    this.#send()
  }

  cancel(): void {
    this.#isCancelled = true
    this.#sent?.cancel()
  }

  #send(): void {
    const { keys, operation } = this.command
    this.#sent = start(this.#target.execute(operation.name, keys, this.stamp()), (exit) => this.#receive(exit))
  }

  #receive(exit: Exit.Exit<Reply, E>): void {
    const { command } = this
    if (Exit.isSuccess(exit)) return this.#onExit(answer(command, this.read(exit.value), exit))
    if (!this.isLate((Cause.squash(exit.cause) as E | null | undefined)?.cause)) {
      return this.#onExit(mapFailure(command, exit, this.#target))
    }
    if (this.maySendAgain) {
      if (!this.#isCancelled) this.#send()
      return
    }
    const failure = tooLate(command)
    this.#target.onFailure(failure)
    this.#onExit(Exit.fail(failure))
  }
}

/** The server's clock was stepped again and again, or the server stopped each time. */
const tooLate = ({ keys, operation }: StoreCommand<unknown>): LockStoreError =>
  new LockStoreError({ operation: operation.name, lock: keys[0]!, reason: "TooLate" })
