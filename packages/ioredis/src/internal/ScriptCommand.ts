import { tracingChannel } from "node:diagnostics_channel"
import * as Exit from "effect/Exit"
import { RedisDriver } from "effect-redis-lock"
import { Command } from "ioredis"
import type { PendingCommands } from "./PendingCommands.ts"
import { failureOf } from "./failure.ts"
import type { CommandWriter } from "./CommandWriter.ts"

export type OnExit = (exit: Exit.Exit<RedisDriver.Reply, RedisDriver.RedisDriverError>) => void

/** What of ioredis' Command is defined anew here; its declaration keeps `initPromise` to itself. */
interface Sendable {
  name: string
  initPromise(): void
  toWritable(stream: object): string
  setTimeout(millis: number): void
}

const Sendable = Command as unknown as new (name: string, args: object, options: object) => Sendable

/** No arguments and no options for ioredis' constructor, which would make both anew for each command. */
const none = { flat: () => none }

const traced = tracingChannel("ioredis:command")

const PING = "*1\r\n$4\r\nping\r\n"

/**
 * A script on its way to a server: a command of ioredis whose reply goes straight to the one who waits for it. The Promise
 * that ioredis makes for each command, with its closures and turns of the event loop, would cost more than the reply.
 */
export class ScriptCommand extends Sendable {
  readonly until: number
  /** Its neighbours among those that are waited for. */
  previous: ScriptCommand | undefined = undefined
  next: ScriptCommand | undefined = undefined
  isWaiting = true
  readonly #pending: PendingCommands
  readonly #script: RedisDriver.RedisScript
  readonly #keys: ReadonlyArray<string>
  readonly #args: ReadonlyArray<string | number>
  readonly #onExit: OnExit
  #writer: CommandWriter | undefined
  /** What the writer thought of the server's scripts when this was sent. */
  #doubts = 0
  #wasUnknown = false
  #observer: Observer | undefined

  constructor(
    pending: PendingCommands,
    script: RedisDriver.RedisScript,
    keys: ReadonlyArray<string>,
    args: ReadonlyArray<string | number>,
    onExit: OnExit
  ) {
    super("evalsha", none, none)
    this.#pending = pending
    this.#script = script
    this.#keys = keys
    this.#args = args
    this.#onExit = onExit
    this.until = performance.now() + pending.timeoutMillis
    pending.add(this)
  }

  /** Again only after the server has turned it away unrun; the second time because of its SHA with its text. */
  send(writer: CommandWriter): void {
    const isKnown = this.name === "evalsha" && writer.mayKnow(this.#script.sha1)
    if (!isKnown) this.name = "eval"
    this.#writer = writer
    this.#doubts = writer.doubts
    writer.send(this as unknown as Command)
  }

  settle(exit: Exit.Exit<RedisDriver.Reply, RedisDriver.RedisDriverError>): void {
    if (!this.isWaiting) return
    this.#leave()
    this.#onExit(exit)
  }

  fail(reason: RedisDriver.RedisDriverError["reason"], message: string): void {
    if (!this.isWaiting) return
    this.refuse(new RedisDriver.RedisDriverError({ reason, cause: new Error(message) }))
  }

  refuse(error: RedisDriver.RedisDriverError): void {
    if (!this.isWaiting) return
    this.cancel()
    this.#onExit(Exit.fail(error))
  }

  /** No reply came in time. */
  expire(): void {
    this.#writer?.onCommandTimeout()
    this.fail("TimedOut", `no reply within ${this.#pending.timeoutMillis} ms`)
  }

  /**
   * An application's own client may keep the command and send it when it is connected again, long after everybody has given
   * up. It cannot be taken back there, but it can be made harmless; what has been sent already stays as it is.
   */
  cancel(): void {
    if (!this.isWaiting) return
    this.#leave()
    this.name = "ping"
  }

  #leave(): void {
    this.isWaiting = false
    this.#pending.remove(this)
  }

  /** The server or ioredis has turned it away while somebody waited for it. */
  onErrorReply(error: unknown): void {
    if (this.name === "evalsha" && RedisDriver.isUnknownScript(error)) {
      const writer = this.#writer!
      // of all that were sent with an unknown SHA, the first carries the text, and is there before the others
      if (this.#doubts === writer.doubts) writer.doubtScripts()
      if (this.#wasUnknown) this.name = "eval"
      this.#wasUnknown = true
      this.send(writer)
    } else {
      this.settle(Exit.fail(failureOf(error)))
    }
  }

  // From here on, what ioredis calls.

  override initPromise(): void {}

  /** For those who trace commands, and nobody else. */
  get promise(): Promise<unknown> | undefined {
    if (!traced.hasSubscribers) return undefined
    return (this.#observer ??= new Observer()).promise
  }

  get args(): ReadonlyArray<string | number> {
    if (this.name === "ping") return []
    const script = this.name === "eval" ? this.#script.lua : this.#script.sha1
    return [script, this.#keys.length, ...this.#keys, ...this.#args]
  }

  /** ioredis sets them when it makes the command. */
  set args(_: ReadonlyArray<string | number>) {}

  override toWritable(): string {
    switch (this.name) {
      case "evalsha":
        return evalshaOf(this.#script.sha1, this.#keys, this.#args)
      case "eval":
        return evalOf(this.#script.lua, this.#keys, this.#args)
      default:
        return PING
    }
  }

  /** The client's own timeout is taken into account by PendingCommands. */
  override setTimeout(): void {}

  resolve(reply: unknown): void {
    this.#writer!.answered()
    this.#observer?.resolve(reply)
    if (this.isWaiting) this.settle(Exit.succeed(textOf(reply)))
  }

  reject(error: unknown): void {
    this.#writer!.answered()
    this.#observer?.reject(error)
    // what was given up must not be sent after all
    if (this.isWaiting) this.onErrorReply(error)
  }
}

class Observer {
  resolve!: (reply: unknown) => void
  reject!: (error: unknown) => void
  readonly promise = new Promise((resolve, reject) => {
    this.resolve = resolve
    this.reject = reject
  })

  constructor() {
    // not every promise that ioredis takes is listened to
    this.promise.catch(() => {})
  }
}

/** Replies come as bytes. */
const textOf = (reply: unknown): RedisDriver.Reply =>
  typeof reply === "number" || reply === null ? reply : Array.isArray(reply) ? reply.map(textOf) : String(reply)

const bulk = (text: string): string => `$${Buffer.byteLength(text)}\r\n${text}\r\n`

const wireOf = (head: string, keys: ReadonlyArray<string>, args: ReadonlyArray<string | number>): string => {
  const count = String(keys.length)
  let wire = `*${3 + keys.length + args.length}\r\n${head}$${count.length}\r\n${count}\r\n`
  for (const key of keys) wire += bulk(key)
  for (const arg of args) wire += bulk(String(arg))
  return wire
}

let last: { readonly sha1: string; readonly keys: unknown; readonly args: unknown; readonly wire: string } | undefined

/** What is sent to several servers, one after the other, is put in words once. */
const evalshaOf = (sha1: string, keys: ReadonlyArray<string>, args: ReadonlyArray<string | number>): string => {
  if (last === undefined || last.keys !== keys || last.args !== args || last.sha1 !== sha1) {
    last = { sha1, keys, args, wire: wireOf(`$7\r\nevalsha\r\n$40\r\n${sha1}\r\n`, keys, args) }
  }
  return last.wire
}

const evalOf = (lua: string, keys: ReadonlyArray<string>, args: ReadonlyArray<string | number>): string =>
  wireOf(`$4\r\neval\r\n${bulk(lua)}`, keys, args)
