import { tracingChannel } from "node:diagnostics_channel"
import type { RedisDriver } from "effect-redis-lock"
import { Command } from "ioredis"
import type { ScriptRequest, SentScript } from "../CommandPath.ts"

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
  readonly #request: ScriptRequest
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
    if (this.name === "ping") return []
    const { args, keys, script } = this.#request
    return [this.name === "eval" ? script.lua : script.sha1, keys.length, ...keys, ...args]
  }

  /** ioredis sets them when it makes the command. */
  set args(_: ReadonlyArray<string | number>) {}

  override toWritable(): string {
    switch (this.name) {
      case "evalsha":
        return evalshaOf(this.#request)
      case "eval":
        return evalOf(this.#request)
      default:
        return PING
    }
  }

  /** The client's own timeout is taken into account by PendingCommands. */
  override setTimeout(): void {}

  resolve(reply: unknown): void {
    this.#observer?.resolve(reply)
    this.#request.onReply(reply)
  }

  reject(error: unknown): void {
    this.#observer?.reject(error)
    this.#request.onError(error)
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

type Script = Pick<ScriptRequest, "keys" | "args"> & { readonly script: RedisDriver.RedisScript }

/** Ends the previous piece and begins a string of that many bytes: cached, as there are many pieces and each takes time to build. */
const beginnings: ReadonlyArray<string> = Array.from({ length: 256 }, (_, length) => `\r\n$${length}\r\n`)

const beginning = (length: number): string => beginnings[length] ?? `\r\n$${length}\r\n`

const bytesOf = (text: string): string => beginning(Buffer.byteLength(text)) + text

const wireOf = (command: string, { args, keys }: Script): string => {
  const count = String(keys.length)
  let wire = `*${3 + keys.length + args.length}${command}${beginning(count.length)}${count}`
  for (const key of keys) wire += bytesOf(key)
  for (const arg of args) {
    if (typeof arg === "string") wire += bytesOf(arg)
    else {
      const digits = String(arg)
      wire += beginning(digits.length) + digits
    }
  }
  return wire + "\r\n"
}

let last: { readonly sha1: string; readonly keys: unknown; readonly args: unknown; readonly wire: string } | undefined

/** Serialised once when the same command goes to several servers. */
const evalshaOf = (script: Script): string => {
  const {
    args,
    keys,
    script: { sha1 }
  } = script
  if (last === undefined || last.keys !== keys || last.args !== args || last.sha1 !== sha1) {
    last = { sha1, keys, args, wire: wireOf(`\r\n$7\r\nevalsha\r\n$40\r\n${sha1}`, script) }
  }
  return last.wire
}

const evalOf = (script: Script): string => wireOf(`\r\n$4\r\neval${bytesOf(script.script.lua)}`, script)
