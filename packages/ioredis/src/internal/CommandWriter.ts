import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Command, Redis } from "ioredis"
import type { Connection } from "./Connection.ts"

/** So many commands at most share a write, so that the server does not wait for the last of a long series. */
const LONGEST_BURST = 16

/** CommandWriters through which something was sent since the event loop last came round. */
const used: Array<CommandWriter> = []

/**
 * The way to one server: sends commands, and replaces a connection on which nothing comes back.
 *
 * The first of several commands that are sent in one go is written at once, so that the server begins; those that follow are
 * gathered, because a write costs more than all else that a client does for a command.
 *
 * A connection is replaced when a command has timed out and no reply comes at all for as long again, or when the handshake takes
 * twice as long. One on which nothing has come back for a while is sent a PING, and replaced when that is not answered either.
 * (The socketTimeout of ioredis would set and clear a timer for every reply.)
 */
export class CommandWriter {
  readonly client: Redis
  /** How long a command may take; undefined for a client that is not ours to disconnect. */
  readonly patienceMillis: number | undefined
  /** Names the present connection, or the last one: after a reconnect another server may answer. */
  server = ""
  #connections = 0
  readonly connection: Connection | undefined
  #sent = 0
  #corked: Redis["stream"] | undefined
  #silence: ReturnType<typeof setTimeout> | undefined
  readonly #heartbeat: ReturnType<typeof setInterval> | undefined
  #hasHeard = false
  /** Scripts that the server has been sent since there was reason to doubt that it knows any. */
  #scripts: Set<string> | undefined
  /** How often there was. */
  doubts = 0

  constructor(client: Redis, patienceMillis: number | undefined, connection?: Connection) {
    this.client = client
    this.patienceMillis = patienceMillis
    this.connection = connection
    client.on("connect", this.#onConnect).on("ready", this.answered).on("close", this.#closed)
    if (patienceMillis !== undefined) this.#heartbeat = setInterval(this.#beat, 2 * patienceMillis).unref()
  }

  static make(
    client: Redis,
    patienceMillis: number | undefined,
    connection?: Connection
  ): Effect.Effect<CommandWriter, never, Scope.Scope> {
    return Effect.acquireRelease(
      Effect.sync(() => new CommandWriter(client, patienceMillis, connection)),
      (writer) => Effect.sync(() => writer.close())
    )
  }

  /**
   * Whether a script may be called by its SHA: the server knows it, or is being sent it at the moment. Otherwise the caller sends
   * its text. A server is taken to know all scripts until it says NOSCRIPT or the connection breaks, as a restart forgets them.
   */
  mayKnow(sha1: string): boolean {
    if (this.#scripts === undefined || this.#scripts.has(sha1)) return true
    this.#scripts.add(sha1)
    return false
  }

  doubtScripts(): void {
    this.#scripts = new Set()
    this.doubts++
  }

  readonly #closed = (): void => {
    this.doubtScripts()
    this.answered()
  }

  send(command: Command): void {
    if (this.#sent === 0) {
      if (used.push(this) === 1) process.nextTick(flushAll)
    } else if (this.#sent % LONGEST_BURST === 1) {
      this.#corked?.uncork()
      this.#corked = this.client.stream
      this.#corked.cork()
    }
    this.#sent++
    void this.client.sendCommand(command)
  }

  flush(): void {
    this.#sent = 0
    const corked = this.#corked
    this.#corked = undefined
    corked?.uncork()
  }

  /** A command has timed out: the server owes an answer. */
  onCommandTimeout(): void {
    if (this.patienceMillis !== undefined) this.#watch(this.patienceMillis)
  }

  /** A connection stands, and the handshake begins. */
  readonly #onConnect = (): void => {
    this.server = `${this.client.options.host}:${this.client.options.port}#${++this.#connections}`
    if (this.patienceMillis === undefined) return
    const { client, patienceMillis } = this
    const { stream } = client
    this.#watch(2 * patienceMillis)
    // while a server loads its data, ioredis asks it now and then
    const alive = () => {
      if (client.status === "ready") return stream.off("data", alive)
      this.answered()
      return this.#watch(2 * patienceMillis + (client.options.maxLoadingRetryTime ?? 0))
    }
    stream.on("data", alive)
  }

  /** Nothing has come back since the last time: asks for a sign of life. An error is one as well. */
  readonly #beat = (): void => {
    if (this.client.status === "ready" && !this.#hasHeard) {
      this.expectAnswer()
      this.client.ping().then(this.answered, this.answered)
    }
    this.#hasHeard = false
  }

  /** Something was sent that will be answered at once. */
  expectAnswer(): void {
    if (this.patienceMillis !== undefined) this.#watch(2 * this.patienceMillis)
  }

  #watch(millis: number): void {
    if (this.#silence !== undefined) return
    const silence = setTimeout(() => {
      // where the event loop was blocked, an answer may lie in the socket: it is read first
      setImmediate(() => {
        if (this.#silence !== silence) return
        this.#silence = undefined
        this.client.stream.destroy(new Error(`timed out: nothing has come back for ${millis} ms`))
      })
    }, millis).unref()
    this.#silence = silence
  }

  /** The server has answered, or the connection is gone. */
  readonly answered = (): void => {
    this.#hasHeard = true
    if (this.#silence === undefined) return
    clearTimeout(this.#silence)
    this.#silence = undefined
  }

  close(): void {
    this.client.off("connect", this.#onConnect).off("ready", this.answered).off("close", this.#closed)
    clearInterval(this.#heartbeat)
    this.answered()
  }
}

const flushAll = (): void => {
  let flushed = 0
  try {
    while (flushed < used.length) used[flushed++]!.flush()
  } finally {
    // one that throws keeps nothing back: neither the others, nor what is sent later
    used.splice(0, flushed)
    if (used.length > 0) process.nextTick(flushAll)
  }
}
