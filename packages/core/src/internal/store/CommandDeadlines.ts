/**
 * Every command that creates something carries the time until which it may take effect, by the server's clock
 * (include/deadline.lua). A command that arrives later, over a connection that had broken or at a server that had stopped, is
 * refused: the release that undid it has long overtaken it. Its sender may wait longer for the reply, until the command
 * timeout is over.
 *
 * A refusal contains the server's time. While nothing is known about a server's clock, the first command is refused for that
 * reason alone, and sent again.
 */
import type { Reply } from "../../RedisDriver.ts"
import type { StoreCommand } from "./operations/StoreOperation.ts"
import { type ServerClock, ServerClocks } from "./ServerClock.ts"
import type { Store } from "./Store.ts"

/** How often a command is sent at most: it is resent if the server's clock was not known, or was stepped. */
export const maxSends = 3

/**
 * How long after it was first sent a command may take effect, milliseconds: each time it is sent again, its deadline is a new one.
 */
export const longestEffectMillis = ({
  commandLifeMillis,
  commandTimeoutMillis
}: Pick<Store, "commandLifeMillis" | "commandTimeoutMillis">): number =>
  (maxSends - 1) * commandTimeoutMillis + commandLifeMillis

/** Grants in quick succession say nothing new about a clock. */
const learnIntervalMillis = 10

/** A refusal as the scripts write it, with the server time in microseconds; anchored, as an error may quote the name of a key. */
const refusal = /^LATE (\d+)$/

export class CommandDeadlines {
  /** How long after it was sent a command may take effect, milliseconds. */
  readonly lifeMillis: number
  readonly now: () => number
  readonly #serverOf: (key: string) => string
  readonly #clocks = new ServerClocks()

  constructor(lifeMillis: number, now: () => number, serverOf: (key: string) => string) {
    this.lifeMillis = lifeMillis
    this.now = now
    this.#serverOf = serverOf
  }

  /** The clock of the server that keeps a key. */
  clockOf(key: string): ServerClock {
    return this.#clocks.of(this.#serverOf(key))
  }

  /** The server's time now at the latest, microseconds; undefined while nothing is known. */
  serverMicros(key: string): number | undefined {
    const micros = this.clockOf(key).latestMicrosAt(this.now())
    return micros === Number.POSITIVE_INFINITY ? undefined : micros
  }
}

/** A command with a deadline. */
export class TimedCommand<A> {
  readonly command: StoreCommand<A>
  readonly #deadlines: CommandDeadlines
  readonly #clock: ServerClock
  #sentAt = 0
  #sent = 0

  constructor(deadlines: CommandDeadlines, command: StoreCommand<A>) {
    this.#deadlines = deadlines
    this.#clock = deadlines.clockOf(command.keys[0]!)
    this.command = command
  }

  /** The arguments with the deadline behind them, for a command that is sent now. */
  stamp(): ReadonlyArray<string | number> {
    const { lifeMillis, now } = this.#deadlines
    this.#sent++
    this.#sentAt = now()
    const deadline = Math.floor(this.#clock.microsAt(this.#sentAt + lifeMillis) / 1000)
    return [...this.command.args, Math.max(0, deadline)]
  }

  /** The reply without the server's time: see `lua/include/tokens/granted.lua`. */
  read(reply: Reply): Reply {
    const { args, operation } = this.command
    if (!operation.tellsTime) return reply
    if (typeof reply === "number") {
      if (this.#sentAt - this.#clock.learntAt > learnIntervalMillis) this.#learn(reply)
      return operation.boundAt === undefined ? reply : Math.max(reply, Number(args[operation.boundAt] || 0))
    }
    const [tag, token, micros] = reply as ReadonlyArray<Reply>
    if (tag !== "granted") return reply
    this.#learn(Number(micros))
    return token!
  }

  get maySendAgain(): boolean {
    return this.#sent < maxSends
  }

  /** Whether a failure is the server's refusal of a late command, which was not run. */
  isLate(error: unknown): boolean {
    const late = error instanceof Error ? refusal.exec(error.message) : null
    if (late === null) return false
    this.#learn(Number(late[1]))
    return true
  }

  #learn(serverMicros: number): void {
    this.#clock.learn(serverMicros, this.#sentAt, this.#deadlines.now())
  }
}
