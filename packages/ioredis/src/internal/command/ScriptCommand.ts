import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Scope from "effect/Scope"
import { RedisDriver } from "effect-redis-lock"
import { Command } from "ioredis"
import type { ScriptRequest, SentScript } from "./CommandPath.ts"
import type { CommandWriter } from "./CommandWriter.ts"
import { scoped, listen } from "../connection/listening.ts"
import { failed, type Failure, failureOf } from "../failure.ts"

export type OnExit = (exit: Exit.Exit<RedisDriver.Reply, Failure>) => void

/** A script in flight, until its caller is called back or cancels it. */
export class ScriptCommand implements ScriptRequest {
  readonly until: number
  /** Its neighbours in the list of pending commands. */
  previous: ScriptCommand | undefined = undefined
  next: ScriptCommand | undefined = undefined
  sendsText = false
  readonly script: RedisDriver.RedisScript
  readonly keys: ReadonlyArray<string>
  readonly args: ReadonlyArray<string | number>
  readonly #pending: PendingCommands
  /** Undefined once nobody waits: ioredis keeps a cancelled command, and with it all that its caller refers to. */
  #onExit: OnExit | undefined
  #writer: CommandWriter | undefined
  #sent: SentScript | undefined
  /** The writer's count of doubts about the server's scripts when this was sent. */
  #doubts = 0
  #wasUnknown = false

  constructor(
    pending: PendingCommands,
    script: RedisDriver.RedisScript,
    keys: ReadonlyArray<string>,
    args: ReadonlyArray<string | number>,
    onExit: OnExit
  ) {
    this.#pending = pending
    this.script = script
    this.keys = keys
    this.args = args
    this.#onExit = onExit
    this.until = performance.now() + pending.timeoutMillis
    pending.add(this)
  }

  /** Sent again only if the server has rejected it without running it; with its text if the SHA was unknown. */
  send(writer: CommandWriter): void {
    this.sendsText ||= !writer.mayKnow(this.script)
    this.#writer = writer
    this.#doubts = writer.doubts
    this.prepare(writer)
    this.#sent = writer.send(this)
  }

  /** Sends what must come immediately before the script. */
  protected prepare({ client }: CommandWriter): void {
    if (this.script.isTracked !== true) return
    // a server that does not track refuses this, and runs the script all the same
    ;(client.sendCommand(new Command("client", ["CACHING", "YES"])) as Promise<unknown>).catch(() => {})
  }

  get isWaiting(): boolean {
    return this.#onExit !== undefined
  }

  settle(exit: Exit.Exit<RedisDriver.Reply, Failure>): void {
    const onExit = this.#onExit
    if (onExit === undefined) return
    this.#leave()
    onExit(exit)
  }

  fail(reason: Failure["reason"], message: string): void {
    this.refuse(failed(reason, message))
  }

  refuse(error: Failure): void {
    this.#sent?.disarm()
    this.settle(Exit.fail(error))
  }

  /** No reply arrived in time. */
  expire(): void {
    this.#writer?.onCommandTimeout()
    this.fail("TimedOut", `no reply within ${this.#pending.timeoutMillis} ms`)
  }

  /** The driver is closed, and nothing watches over the command any more. */
  close(): void {
    if (this.#sent === undefined) this.fail("Closed", "the driver was closed before the command was sent")
    else this.fail("ConnectionLost", "the driver was closed before the reply came")
  }

  cancel(): void {
    if (!this.isWaiting) return
    this.#sent?.disarm()
    this.#leave()
  }

  #leave(): void {
    this.#onExit = this.#sent = undefined
    this.#pending.remove(this)
  }

  onReply(reply: unknown): void {
    this.#writer!.answered()
    if (this.isWaiting) this.settle(Exit.succeed(textOf(reply)))
  }

  onError(error: unknown): void {
    this.#writer!.answered()
    // a cancelled command must not be sent after all
    if (this.isWaiting) this.onErrorReply(error)
  }

  /** The server or ioredis has rejected it while its caller was waiting. */
  onErrorReply(error: unknown): void {
    if (!this.sendsText && RedisDriver.isUnknownScript(error)) {
      const writer = this.#writer!
      // the application may have selected another database since
      if (writer.connection.isUnusable) return this.refuse(writer.connection.notConnected)
      // of several that were sent with an unknown SHA, the first is resent with the text, and arrives before the others
      if (this.#doubts === writer.doubts) writer.doubtScripts()
      if (this.#wasUnknown) this.sendsText = true
      this.#wasUnknown = true
      this.send(writer)
    } else {
      const { connection } = this.#writer!
      const failure = failureOf(error)
      // before its caller goes on, who may send the next command at once
      if (failure.reason === "ReadOnly") connection.onReadOnly(failure)
      this.settle(Exit.fail(failure.reason === "ConnectionLost" ? (connection.leavesReplica ?? failure) : failure))
    }
  }
}

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

  /** `ownMillis`: an application's client may have a timeout of its own; to ioredis null is none. */
  constructor(timeoutMillis: number, ownMillis: number | null | undefined) {
    this.timeoutMillis = Math.min(timeoutMillis, ownMillis ?? timeoutMillis)
  }

  close(): void {
    for (const command of this.all) command.close()
    clearTimeout(this.#timer)
    clearImmediate(this.#immediate)
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

/** Replies come as bytes. */
const textOf = (reply: unknown): RedisDriver.Reply =>
  typeof reply === "number" || reply === null ? reply : Array.isArray(reply) ? reply.map(textOf) : String(reply)

/** Runs scripts by SHA on one server. */
export const makeEval = (writer: CommandWriter): Effect.Effect<RedisDriver.EvalUnsafe, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { client, connection, timeoutMillis } = writer
    const pending = yield* scoped(() => new PendingCommands(timeoutMillis, client.options.commandTimeout))
    const onClose = () => {
      const failure = connection.leavesReplica ?? failed("ConnectionLost", "the connection broke before the reply came")
      for (const command of pending.all) command.refuse(failure)
    }
    yield* scoped(() => listen(client, { close: onClose }))
    return (script, keys, args, onExit) => {
      const command = new ScriptCommand(pending, script, keys, args, onExit)
      if (client.status === "ready" && !connection.isUnusable) command.send(writer)
      else command.refuse(connection.notConnected)
      return command
    }
  })
