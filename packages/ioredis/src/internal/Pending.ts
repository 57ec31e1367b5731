import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { RedisDriver } from "effect-redis-lock"
import { Command, type Redis } from "ioredis"

type Outcome = Effect.Effect<RedisDriver.Reply, RedisDriver.RedisDriverError>
export type Resume = (outcome: Outcome) => void

export const fail = (reason: RedisDriver.RedisDriverError["reason"], message: string) =>
  Effect.fail(new RedisDriver.RedisDriverError({ reason, cause: new Error(message) }))

/**
 * The commands whose replies are waited for, in the order of sending, which is that of their timeouts: one timer watches
 * over all.
 */
export class Deadlines {
  readonly timeoutMillis: number
  readonly pending = new Set<Pending>()
  #timer: ReturnType<typeof setTimeout> | undefined

  private constructor(timeoutMillis: number) {
    this.timeoutMillis = timeoutMillis
  }

  static make(timeoutMillis: number): Effect.Effect<Deadlines, never, Scope.Scope> {
    return Effect.acquireRelease(
      Effect.sync(() => new Deadlines(timeoutMillis)),
      (deadlines) => Effect.sync(() => clearTimeout(deadlines.#timer))
    )
  }

  add(command: Pending): void {
    this.pending.add(command)
    this.#timer ??= setTimeout(this.#expire, this.timeoutMillis).unref()
  }

  readonly #expire = (): void => {
    this.#timer = undefined
    const now = performance.now()
    for (const command of this.pending) {
      if (command.until > now) {
        // what a timeout has led to may have set it already, for later
        clearTimeout(this.#timer)
        this.#timer = setTimeout(this.#expire, command.until - now).unref()
        break
      }
      command.expire()
    }
  }
}

/** A command whose reply somebody waits for. */
export class Pending {
  readonly until: number
  readonly #deadlines: Deadlines
  readonly #resume: Resume
  #command: Command | undefined

  constructor(deadlines: Deadlines, resume: Resume) {
    this.until = performance.now() + deadlines.timeoutMillis
    this.#deadlines = deadlines
    this.#resume = resume
    deadlines.add(this)
  }

  get isWaiting(): boolean {
    return this.#deadlines.pending.has(this)
  }

  send(client: Redis, name: string, args: Array<string | number>): Promise<unknown> {
    this.#command = new Command(name, args, { replyEncoding: "utf8" })
    return client.sendCommand(this.#command) as Promise<unknown>
  }

  settle(outcome: Outcome): void {
    if (this.#deadlines.pending.delete(this)) this.#resume(outcome)
  }

  fail(reason: RedisDriver.RedisDriverError["reason"], message: string): void {
    this.giveUp()
    this.#resume(fail(reason, message))
  }

  /** No reply came in time. */
  expire(): void {
    this.fail("TimedOut", `no reply within ${this.#deadlines.timeoutMillis} ms`)
  }

  /**
   * An application's own client may keep the command and send it when it is connected again, long after everybody has given
   * up. It cannot be taken back there, but it can be made harmless; what has been sent already stays as it is.
   */
  giveUp(): void {
    this.#deadlines.pending.delete(this)
    if (this.#command !== undefined) {
      this.#command.name = "ping"
      this.#command.args = []
    }
  }
}
