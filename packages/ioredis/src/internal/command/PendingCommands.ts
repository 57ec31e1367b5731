import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { ScriptCommand } from "./ScriptCommand.ts"

/**
 * The commands that await replies, oldest first, and so in the order of their timeouts: one timer serves all. They form a
 * linked list, the cheapest structure to enter and to leave.
 */
export class PendingCommands {
  readonly timeoutMillis: number
  #first: ScriptCommand | undefined
  #last: ScriptCommand | undefined
  #timer: ReturnType<typeof setTimeout> | undefined
  #immediate: ReturnType<typeof setImmediate> | undefined

  private constructor(timeoutMillis: number) {
    this.timeoutMillis = timeoutMillis
  }

  /** `ownMillis`: an application's client may have a timeout of its own; to ioredis null is none. */
  static make(
    timeoutMillis: number,
    ownMillis: number | null | undefined
  ): Effect.Effect<PendingCommands, never, Scope.Scope> {
    return Effect.acquireRelease(
      Effect.sync(() => new PendingCommands(Math.min(timeoutMillis, ownMillis ?? timeoutMillis))),
      (pending) =>
        Effect.sync(() => {
          for (const command of pending.all) command.close()
          clearTimeout(pending.#timer)
          clearImmediate(pending.#immediate)
        })
    )
  }

  /** All commands that await replies now. */
  get all(): ReadonlyArray<ScriptCommand> {
    const commands: Array<ScriptCommand> = []
    for (let command = this.#first; command !== undefined; command = command.next) commands.push(command)
    return commands
  }

  add(command: ScriptCommand): void {
    command.previous = this.#last
    if (this.#last === undefined) this.#first = command
    else this.#last.next = command
    this.#last = command
    this.#timer ??= setTimeout(this.#onTimer, this.timeoutMillis).unref()
  }

  remove(command: ScriptCommand): void {
    if (command.previous === undefined) this.#first = command.next
    else command.previous.next = command.next
    if (command.next === undefined) this.#last = command.previous
    else command.next.previous = command.previous
    command.previous = command.next = undefined
  }

  /** If the event loop was blocked, replies may be waiting in the socket: they are read first. */
  readonly #onTimer = (): void => {
    this.#immediate = setImmediate(this.#expire)
  }

  readonly #expire = (): void => {
    this.#timer = this.#immediate = undefined
    const now = performance.now()
    for (let first = this.#first; first !== undefined; first = this.#first) {
      if (first.until > now) {
        // the consequences of a timeout may already have set it for later
        clearTimeout(this.#timer)
        this.#timer = setTimeout(this.#onTimer, first.until - now).unref()
        break
      }
      first.expire()
    }
  }
}
