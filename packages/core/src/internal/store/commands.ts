/**
 * The way of a command, from top to bottom: a client sends it or not, and remembers it (closing, recent releases); a grant waits for
 * replicas (acknowledgement); the store gives it a deadline, sends it, and reads the reply.
 *
 * What follows is up to the caller ({@link matchOutcome}).
 *
 * Between the two halves is the seam `LockStore`: what replaces a store is sent commands by {@link runningOn}, and its own `run` may
 * be made by {@link sending}.
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Effectable from "effect/Effectable"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import { LockStoreError, type StoreReason } from "../../LockError.ts"
import {
  type EvalUnsafe,
  inTransaction,
  type RedisDriver,
  type RedisDriverError,
  type Reply
} from "../../RedisDriver.ts"
import type { LockClient } from "../client/LockClient.ts"
import type { Acknowledgement } from "../options/acquireOptions.ts"
import { report } from "../report/defects.ts"
import { type Arguments, listReply, type StoreCommand } from "./operations/StoreOperation.ts"
import { type Cancellable, type OnExit, start, Startable, StartKey } from "./startable.ts"
import type { Acknowledges, Store } from "./Store.ts"

/** What a grant needs in order to count, if more than a reply. The members of a quorum acknowledge for themselves. */
export const acknowledgementOf = (
  { isQuorum, options }: LockClient,
  { acknowledge = isQuorum ? undefined : options.acknowledge }: Pick<StoreCommand<unknown>, "acknowledge">
): Acknowledgement | undefined => (acknowledge === "none" ? undefined : acknowledge)

/** How a client runs its commands on its store. It takes note of a command when this is called: run the result at once. */
export const runningOn =
  (store: Store, client: LockClient): Store["run"] =>
  (command) => {
    const { operation } = command
    if (operation.givesBack === "owner") client.releases?.add(command)
    else if (client.isClosing && operation.givesBack === undefined) return Effect.fail(failureOf(command, "Closed"))
    if (operation.writesShared) client.tracking.writes(command.keys)
    if (operation.grants === undefined || store.acknowledges === undefined) return store.run(command)
    const wanted = acknowledgementOf(client, command)
    return wanted === undefined
      ? store.run(command)
      : acknowledged(store.run(command), command, wanted, store.acknowledges)
  }

/**
 * Every grant passes through here before it counts, however it was acquired: at once, after waiting in a queue, in a fair turn, by a
 * reader, as a permit, by re-entry. One that is not acknowledged makes its command fail like one with unknown outcome: the caller takes
 * it back.
 */
const acknowledged = <A>(
  ran: Effect.Effect<A, LockStoreError>,
  command: StoreCommand<A>,
  wanted: Acknowledgement,
  { confirm, prepare }: Acknowledges
): Effect.Effect<A, LockStoreError> => {
  const lock = command.keys[0]!
  return Effect.andThen(
    prepare(lock, wanted),
    Effect.flatMap(ran, (reply) => {
      const grant = command.operation.grants!(command, reply)
      return grant === undefined ? Effect.succeed(reply) : Effect.as(confirm(lock, grant, wanted), reply)
    })
  )
}

/**
 * `Effect.matchCauseEffect`, for what follows every command. Its object of handlers is an instance of a class, as is all else that is
 * made for every acquisition and refers to much: of literals, V8 may conclude from the first hundred that they live long. From then on it
 * makes them in the old generation, where dead ones keep alive whatever they refer to, until the next full collection.
 */
export const matchOutcome = <A, E, B, E2, R2, C, E3, R3>(
  self: Effect.Effect<A, E>,
  onSuccess: (value: A) => Effect.Effect<B, E2, R2>,
  onFailure: (cause: Cause.Cause<E>) => Effect.Effect<C, E3, R3>
): Effect.Effect<B | C, E2 | E3, R2 | R3> => Effect.matchCauseEffect(self, new Handlers(onSuccess, onFailure))

class Handlers<S, F> {
  readonly onSuccess: S
  readonly onFailure: F

  constructor(onSuccess: S, onFailure: F) {
    this.onSuccess = onSuccess
    this.onFailure = onFailure
  }
}

/** How often a command is sent at most: it is sent again if the server's clock was not known, or was stepped. */
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

/** Where commands are sent, and how long they may take effect. */
export interface Sender {
  readonly eval: EvalUnsafe
  readonly clocks: ServerClocks
  /** How long after it was sent a command may take effect, milliseconds. */
  readonly lifeMillis: number
  /** Told of every command that fails. */
  readonly onFailure?: ((reason: StoreReason) => void) | undefined
}

/** The callback that a driver's `eval` is made of, or one that runs it on a fiber for each command. */
export const evalUnsafeOf = (run: RedisDriver["Service"]["eval"]): EvalUnsafe => {
  const own = (run as { readonly [StartKey]?: { readonly of: unknown; readonly evalUnsafe: EvalUnsafe } })[StartKey]
  return own?.of === run ? own.evalUnsafe : (script, keys, args, onExit) => start(run(script, keys, args), onExit)
}

/** Runs commands by sending them to a server. They are sent in the order in which their Effects are run. */
export const sending =
  (sender: Sender): Store["run"] =>
  (command) =>
    new Startable((onExit) => new SentCommand(command, sender, onExit).send())

/** A spread would leave room for sixteen more. */
const withLast = (args: Arguments, last: number): Arguments => {
  // oxlint-disable-next-line unicorn/no-new-array -- Array.from calls its iterator
  const all = new Array<string | number>(args.length + 1)
  for (let i = 0; i < args.length; i++) all[i] = args[i]!
  all[args.length] = last
  return all
}

/**
 * A command on its way. As an Effect it is its own cancellation: a closure in an Effect would be two more objects for each command.
 *
 * If it creates something, it carries the time until which it may take effect, by the server's clock (include/deadline.lua). If it
 * arrives later, over a connection that had broken or at a server that had stopped, it is refused: the release that undid it has long
 * overtaken it. Its sender may wait longer for the reply, until the command timeout is over. A refusal contains the server's time. While
 * nothing is known about a server's clock, the first command is refused for that reason alone, and sent again.
 */
class SentCommand<A> extends Effectable.Class<void> implements Cancellable {
  readonly #command: StoreCommand<A>
  readonly #sender: Sender
  readonly #onExit: OnExit<A, LockStoreError>
  readonly #context: Context.Context<never>
  /** Undefined for a command without a deadline. */
  readonly #clock: ServerClock | undefined
  #sends = 0
  #sentAt = 0
  #sent: Cancellable | undefined
  #isCancelled = false

  constructor(command: StoreCommand<A>, sender: Sender, onExit: OnExit<A, LockStoreError>) {
    super()
    this.#command = command
    this.#sender = sender
    this.#onExit = onExit
    this.#context = Fiber.getCurrent()?.context ?? Context.empty()
    this.#clock = command.operation.hasDeadline ? sender.clocks.of(command.keys[0]!) : undefined
  }

  send(): this {
    const { keys, operation } = this.#command
    const { clocks, eval: run, lifeMillis } = this.#sender
    let { args } = this.#command
    this.#sends++
    if (this.#clock !== undefined) {
      this.#sentAt = clocks.now()
      const deadline = Math.floor(this.#clock.microsAt(this.#sentAt + lifeMillis) / 1000)
      args = withLast(args, Math.max(0, deadline))
    }
    this.#sent = run(operation.script, keys, args, this.#receive)
    return this
  }

  cancel(): void {
    this.#isCancelled = true
    this.#sent?.cancel()
  }

  override asEffect(): Effect.Effect<void> {
    this.cancel()
    return Effect.void
  }

  readonly #receive = (exit: Exit.Exit<Reply, RedisDriverError>): void => {
    const isLate = Exit.isFailure(exit) && this.#isLate(exit.cause)
    if (isLate && this.#sends < maxSends) {
      if (!this.#isCancelled) this.send()
      return
    }
    // if it is late, the server's clock was stepped again and again, or the server stopped each time
    const settled = Exit.isSuccess(exit)
      ? this.#read(exit)
      : isLate
        ? Exit.fail(this.#failure({ reason: "TooLate" }))
        : Exit.mapError(exit as Exit.Failure<never, RedisDriverError>, (error) => this.#failure(error))
    try {
      this.#onExit(settled)
    } catch (defect) {
      // what a resumed fiber's observers throw stays out of the driver
      report(this.#context, defect)
    }
  }

  /** What a driver calls back with may be anything, and what it means must not be thrown back into it. */
  #read(exit: Exit.Success<Reply, unknown>): Exit.Exit<A, LockStoreError> {
    if (exit.value === "QUEUED") return Exit.fail(this.#failure(inTransaction))
    const { operation } = this.#command
    try {
      const reply = operation.reply(operation.tellsTime ? this.#withoutTime(exit.value) : exit.value)
      // nearly every reply means itself
      return (reply as unknown) === exit.value
        ? (exit as Exit.Success<unknown> as Exit.Success<A>)
        : Exit.succeed(reply)
    } catch (cause) {
      return Exit.fail(this.#failure({ reason: "Failed", cause }))
    }
  }

  /** The reply without the server's time, from which the clock is learnt: see `granted.lua` and `denied.lua` under `lua/include/`. */
  #withoutTime(reply: Reply): Reply {
    const { args, operation } = this.#command
    if (typeof reply === "number") {
      if (this.#sentAt - this.#clock!.learntAt > learnIntervalMillis) this.#learn(reply)
      return operation.boundAt === undefined ? reply : Math.max(reply, Number(args[operation.boundAt] || 0))
    }
    const [tag, token, micros] = listReply(reply)
    // a denial may tell it as well
    if (typeof micros === "string") this.#learn(Number(micros))
    return tag === "granted" ? token! : reply
  }

  /** Whether a failure is the server's refusal of a late command, which was not run. */
  #isLate(cause: Cause.Cause<RedisDriverError>): boolean {
    if (this.#clock === undefined) return false
    const error = (Cause.squash(cause) as Partial<RedisDriverError> | null | undefined)?.cause
    const late = error instanceof Error ? refusal.exec(error.message) : null
    if (late === null) return false
    this.#learn(Number(late[1]))
    return true
  }

  #learn(serverMicros: number): void {
    this.#clock!.learn(serverMicros, this.#sentAt, this.#sender.clocks.now())
  }

  #failure({ cause, reason }: Partial<RedisDriverError> & Pick<RedisDriverError, "reason">): LockStoreError {
    this.#sender.onFailure?.(reason)
    return failureOf(this.#command, reason, cause)
  }
}

/** The failure of a command. */
export const failureOf = (
  { keys, operation }: StoreCommand<unknown>,
  reason: StoreReason,
  cause?: unknown
): LockStoreError =>
  new LockStoreError({
    operation: operation.name,
    lock: keys[0]!,
    reason,
    ...(cause === undefined ? undefined : { cause })
  })

/** How fast two clocks may drift apart: twice the most that NTP corrects (500 ppm). */
const driftRate = 0.001

/**
 * What a client knows about a server's clock. Every reply that contains the server's time bounds how far that clock is ahead of
 * ours: the server read it after we had sent the command and before we read the reply. Bounds that agree narrow each other;
 * bounds that contradict each other mean that a clock was stepped, and the newer ones win.
 */
export class ServerClock {
  /** Server time less our monotonic time, microseconds: bounds as of `learntAt`. */
  #least = Number.NEGATIVE_INFINITY
  #most = Number.POSITIVE_INFINITY
  /** When it was last learnt, our monotonic milliseconds. */
  learntAt = 0

  /** Takes note of the server's time in a reply. Ours are monotonic milliseconds. */
  learn(serverMicros: number, sentAt: number, receivedAt: number): void {
    const least = serverMicros - receivedAt * 1000
    const most = serverMicros - sentAt * 1000
    const drift = (receivedAt - this.learntAt) * 1000 * driftRate
    const knownLeast = this.#least - drift
    const knownMost = this.#most + drift
    const agrees = least <= knownMost && most >= knownLeast
    this.#least = agrees ? Math.max(least, knownLeast) : least
    this.#most = agrees ? Math.min(most, knownMost) : most
    this.learntAt = receivedAt
  }

  /**
   * The server's time at one of our times, microseconds: never ahead of it unless the server's clock was set back. Negative
   * infinity while nothing is known.
   */
  microsAt(millis: number): number {
    return this.#least + millis * 1000 - Math.max(0, millis - this.learntAt) * 1000 * driftRate
  }

  /**
   * The server's time at one of our times, microseconds, at the latest: what a reply cannot tell of the time that the command took is
   * added, what the clocks may have drifted apart since is not. Infinity while nothing is known.
   */
  latestMicrosAt(millis: number): number {
    return this.#most + millis * 1000
  }

  /**
   * How long ago the server's clock showed this time, at the longest, milliseconds. Negative if that is impossible: the clock was set
   * forward, or another server's is meant. Infinity while nothing is known.
   */
  longestSince(serverMicros: number, now: number): number {
    return (this.latestMicrosAt(now) - serverMicros) / 1000 + Math.max(0, now - this.learntAt) * driftRate
  }
}

/** At most this many servers: a forgotten clock is learnt again from one command. */
const maxClocks = 1000

/** The clocks of all servers of a store, by the server's name. */
export class ServerClocks {
  /** Our monotonic time, milliseconds. */
  readonly now: () => number
  readonly #serverOf: (key: string) => string
  readonly #clocks = new Map<string, ServerClock>()

  /** `serverOf` names the server that keeps a key now. */
  constructor(now: () => number, serverOf: (key: string) => string) {
    this.now = now
    this.#serverOf = serverOf
  }

  /** The clock of the server that keeps a key. */
  of(key: string): ServerClock {
    const server = this.#serverOf(key)
    let clock = this.#clocks.get(server)
    if (clock === undefined) {
      if (this.#clocks.size === maxClocks) this.#clocks.clear()
      this.#clocks.set(server, (clock = new ServerClock()))
    }
    return clock
  }

  /** The server's time now at the latest, microseconds; undefined while nothing is known. */
  latestMicros(key: string): number | undefined {
    const micros = this.of(key).latestMicrosAt(this.now())
    return micros === Number.POSITIVE_INFINITY ? undefined : micros
  }
}
