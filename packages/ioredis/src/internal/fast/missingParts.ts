import { AbstractConnector, Cluster, Command, Redis, SentinelConnector } from "ioredis"
import type { Socket } from "node:net"
import { Duplex } from "node:stream"
import type { ScriptRequest } from "../command/CommandPath.ts"
import { fastPath } from "./fastPath.ts"

type Check = readonly [part: string, isThere: () => boolean]

const isMethod = (target: unknown, name: string): boolean =>
  typeof (target as Readonly<Record<string, unknown>>)[name] === "function"

/** The parts that the rehearsal does not cover. */
const shapes: ReadonlyArray<Check> = [
  // ioredis 5 has another parser for replies: code written for version 6 is not tried on it
  ["Command.setReplyContext of ioredis 6", () => isMethod(Command.prototype, "setReplyContext")],
  ["Command.initPromise", () => isMethod(Command.prototype, "initPromise")],
  ["Command.toWritable", () => isMethod(Command.prototype, "toWritable")],
  ["Command.setTimeout", () => isMethod(Command.prototype, "setTimeout")],
  ["SentinelConnector.connectToSentinel", () => isMethod(SentinelConnector.prototype, "connectToSentinel")],
  [
    "SentinelConnector.failoverDetector",
    () => {
      const connector = new SentinelConnector({ sentinels: [{ host: "127.0.0.1", port: 1 }], name: "rehearsal" })
      return (connector as unknown as { readonly failoverDetector: unknown }).failoverDetector === null
    }
  ],
  [
    "Cluster.startupNodes",
    () => {
      const cluster = new Cluster([{ host: "rehearsal" }], { lazyConnect: true })
      const node = fastPath.startupNodeOf(cluster)
      cluster.disconnect()
      return node?.host === "rehearsal"
    }
  ]
]

/** A connection that leads nowhere. */
class Nowhere extends Duplex {
  written = ""

  override _read(): void {}

  override _write(chunk: Buffer, _: string, done: () => void): void {
    this.written += chunk.toString()
    done()
  }

  /** Emitted directly, as the connector of the fast path does. */
  reply(text: string): void {
    this.emit("data", Buffer.from(text))
  }

  setNoDelay() {}
  setKeepAlive() {}
  setTimeout() {}
}

class Rehearsed extends AbstractConnector {
  constructor() {
    super(0)
  }

  override connect(): Promise<Socket> {
    const stream = new Nowhere() as unknown as Socket
    this.stream = stream
    return Promise.resolve(stream)
  }
}

const options = {
  Connector: Rehearsed,
  lazyConnect: true,
  db: 0,
  // no handshake
  protocol: 2 as const,
  disableClientInfo: true,
  enableReadyCheck: false,
  enableOfflineQueue: false,
  retryStrategy: () => null
}

/** The most turns of the event loop that anything without a network may take. */
const TURNS = 50

const turns = async (count: number): Promise<void> => {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve))
}

const script = { name: "rehearsal", sha1: "0".repeat(40), lua: "return 1" }

const rehearsal = (sendsText: boolean): ScriptRequest & { outcome?: unknown } => ({
  ...{ script, keys: ["key"], args: [1, "two"], sendsText },
  onReply(reply) {
    this.outcome = Array.isArray(reply) ? reply.map(String) : reply
  },
  onError(error) {
    this.outcome = (error as Error).message
  },
  expire() {
    this.outcome = "expired"
  }
})

const wireOf = (...words: ReadonlyArray<string>): string =>
  `*${words.length}\r\n` + words.map((word) => `$${word.length}\r\n${word}\r\n`).join("")

/** Sends scripts over a connection that leads nowhere, and checks the outcome. */
const rehearse = async (): Promise<string | undefined> => {
  const client = new Redis(options)
  client.on("error", () => {})
  try {
    const connected = client.connect().then(
      () => true,
      () => false
    )
    if (!(await Promise.race([connected, turns(TURNS)]))) return "the option Connector"
    const stream = fastPath.socketOf(client)
    if (!(stream instanceof Nowhere)) return "Redis.stream"
    const send = fastPath.makeSend(client)
    const [bySha, byText, lost] = [rehearsal(false), rehearsal(true), rehearsal(false)]
    send(bySha)
    const sent = wireOf("evalsha", script.sha1, "1", "key", "1", "two")
    if (stream.written !== sent) return "Redis.sendCommand, which writes what Command.toWritable gives, at once"
    send(byText)
    send(lost)
    await turns(1)
    if (stream.written !== sent + wireOf("eval", script.lua, "1", "key", "1", "two") + sent) return "Redis.stream.cork"
    stream.reply("*2\r\n$3\r\none\r\n:2\r\n-NOSCRIPT no such script\r\n")
    if (String(bySha.outcome) !== "one,2") return "Command.resolve, which is given the reply"
    if (byText.outcome !== "NOSCRIPT no such script") return "Command.reject, which is given the error"
    stream.destroy()
    await turns(TURNS)
    return typeof lost.outcome === "string" ? undefined : "Command.reject, when the connection is lost"
  } finally {
    client.disconnect()
  }
}

const isThere = ([, check]: Check): boolean => {
  try {
    return check()
  } catch {
    return false
  }
}

let found: Promise<ReadonlyArray<string>> | undefined

/**
 * The names of the internals of ioredis that the fast path needs and this version lacks; empty if there are none. Determined
 * once per process, without a network, within a few milliseconds.
 */
export const missingParts = (): Promise<ReadonlyArray<string>> =>
  (found ??= (async () => {
    const missing = shapes.filter((check) => !isThere(check)).map(([part]) => part)
    if (missing.length > 0) return missing
    try {
      const part = await rehearse()
      return part === undefined ? [] : [part]
    } catch (error) {
      return [`a rehearsal failed: ${String(error)}`]
    }
  })())
