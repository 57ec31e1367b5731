import { tracingChannel } from "node:diagnostics_channel"
import { Command } from "ioredis"
import type { ScriptRequest, SentScript } from "../command/CommandPath.ts"

/** The parts of ioredis' Command that are redefined here; its declaration hides `initPromise`. */
interface Sendable {
  name: string
  initPromise(): void
  toWritable(stream: object): string
  setTimeout(millis: number): void
}

const Sendable = Command as unknown as new (name: string, args: object, options: object) => Sendable

/** Shared empty arguments and options for ioredis' constructor, which would allocate both for each command. */
const none = { flat: () => none }

const traced = tracingChannel("ioredis:command")

const PING = "*1\r\n$4\r\nping\r\n"

/**
 * A command of ioredis whose reply goes straight to its caller. The Promise that ioredis makes for each command,
 * with its closures and turns of the event loop, would cost more than the reply.
 */
export class FastCommand extends Sendable implements SentScript {
  /**
   * Undefined once it is answered. V8 may allocate ioredis' record of each command in the old generation, where it lives on until
   * the next full collection, and would keep everything alive that the caller refers to.
   */
  #request: ScriptRequest | undefined
  #observer: Observer | undefined

  constructor(request: ScriptRequest) {
    super(request.sendsText ? "eval" : "evalsha", none, none)
    this.#request = request
  }

  disarm(): void {
    this.name = "ping"
  }

  // Called by ioredis from here on.

  override initPromise(): void {}

  /** Only for tracers of commands. */
  get promise(): Promise<unknown> | undefined {
    if (!traced.hasSubscribers) return undefined
    return (this.#observer ??= new Observer()).promise
  }

  get args(): ReadonlyArray<string | number> {
    const request = this.#request
    if (request === undefined || this.name === "ping") return []
    const { args, keys, script } = request
    return [this.name === "eval" ? script.lua : script.sha1, keys.length, ...keys, ...args]
  }

  /** ioredis sets them when it makes the command. */
  set args(_: ReadonlyArray<string | number>) {}

  override toWritable(): string {
    const request = this.#request
    if (request === undefined || this.name === "ping") return PING
    return this.name === "eval" ? evalOf(request) : evalshaOf(request)
  }

  /** The client's own timeout is taken into account by PendingCommands. */
  override setTimeout(): void {}

  resolve(reply: unknown): void {
    this.#observer?.resolve(reply)
    this.#answered()?.onReply(reply)
  }

  reject(error: unknown): void {
    this.#observer?.reject(error)
    this.#answered()?.onError(error)
  }

  #answered(): ScriptRequest | undefined {
    const request = this.#request
    this.#request = undefined
    return request
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
    // ioredis does not listen to every promise that it takes
    this.promise.catch(() => {})
  }
}

type Script = Pick<ScriptRequest, "script" | "keys" | "args">

/** Ends the previous piece and begins a string of that many bytes: cached, as there are many pieces and each takes time to build. */
const beginnings: ReadonlyArray<string> = Array.from({ length: 256 }, (_, length) => `\r\n$${length}\r\n`)

const beginning = (length: number): string => beginnings[length] ?? `\r\n$${length}\r\n`

/** A word whose length in bytes `lengthOf` tells, behind the one before it. */
const wordOf = (word: string, lengthOf: (word: string) => number): string => beginning(lengthOf(word)) + word

const charactersIn = (word: string): number => word.length

/**
 * All but the last argument. Takes every word for ASCII, as nearly all are, and measures them together: one after the other would take twice as
 * long. That also joins the pieces of which V8 composes a string, once for all servers. Other words are measured in bytes.
 */
const startOf = (command: string, keys: Script["keys"], args: Script["args"], lengthOf = charactersIn): string => {
  let wire = `*${3 + keys.length + args.length}${command}${wordOf(String(keys.length), lengthOf)}`
  for (const key of keys) wire += wordOf(key, lengthOf)
  for (let i = 0; i < args.length - 1; i++) wire += wordOf(String(args[i]!), lengthOf)
  return lengthOf === Buffer.byteLength || Buffer.byteLength(wire) === wire.length
    ? wire
    : startOf(command, keys, args, Buffer.byteLength)
}

const endOf = (start: string, args: Script["args"]): string =>
  `${args.length === 0 ? start : start + wordOf(String(args[args.length - 1]!), Buffer.byteLength)}\r\n`

let last: Serialised | undefined

/** A command as it was serialised last: as a whole, and without its last argument. */
class Serialised {
  readonly script: Script["script"]
  readonly keys: Script["keys"]
  readonly args: Script["args"]
  readonly start: string
  readonly wire: string

  constructor({ args, keys, script }: Script, start: string) {
    this.script = script
    this.keys = keys
    this.args = args
    this.start = start
    this.wire = endOf(start, args)
  }
}

/** Serialised once when the same command goes to several servers, also with a deadline of each: the last argument. */
const evalshaOf = (request: Script): string => {
  const { args, keys, script } = request
  if (last === undefined || last.script !== script || last.keys !== keys || !areSameButLast(last.args, args)) {
    last = new Serialised(request, startOf(`\r\n$7\r\nevalsha\r\n$40\r\n${script.sha1}`, keys, args))
  }
  return last.args === args ? last.wire : endOf(last.start, args)
}

const areSameButLast = (some: Script["args"], others: Script["args"]): boolean => {
  if (some.length !== others.length) return false
  for (let i = 0; i < some.length - 1; i++) if (some[i] !== others[i]) return false
  return true
}

const evalOf = ({ args, keys, script }: Script): string =>
  endOf(startOf(`\r\n$4\r\neval${wordOf(script.lua, Buffer.byteLength)}`, keys, args), args)
