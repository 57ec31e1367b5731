import type { RedisDriver } from "effect-redis-lock"
import type { Redis } from "ioredis"
import type { SendScript } from "./CommandPath.ts"
import type { Connection } from "../connection/Connection.ts"
import { type Closable, listen } from "../connection/listening.ts"

/** Of all writers: the node of a cluster that comes back has a new one. */
let connections = 0

/**
 * Sends scripts to one server, and replaces a connection that has gone silent.
 *
 * A connection is replaced when a command has timed out and no reply at all arrives for as long again, or when the handshake takes
 * twice as long. A connection that has been silent for a while is sent a PING, and replaced if that is not answered either.
 * (The socketTimeout of ioredis would set and clear a timer for every reply.)
 */
export class CommandWriter {
  readonly connection: Connection
  readonly client: Redis
  /** How long a command may take. */
  readonly timeoutMillis: number
  /** Names the current connection, or the last one: after a reconnect another server may answer. */
  server: string
  readonly send: SendScript
  readonly #listening: Closable
  #silence: ReturnType<typeof setTimeout> | undefined
  readonly #heartbeat: ReturnType<typeof setInterval> | undefined
  #hasHeard = false
  /** Scripts sent to the server since the connection was opened, or since the last reason to doubt that it knows them. */
  #scripts = new Set<string>()
  /** How often there was such a reason. */
  doubts = 0

  constructor(connection: Connection, timeoutMillis: number) {
    this.connection = connection
    this.timeoutMillis = timeoutMillis
    const { client } = connection
    this.client = client
    // the connection may have been there for long
    this.server = this.#nextName()
    this.send = connection.path.makeSend(client)
    this.#listening = listen(client, { connect: this.#onConnect, ready: this.answered, close: this.#onClose })
    if (connection.isOurs) this.#heartbeat = setInterval(this.#beat, 2 * timeoutMillis).unref()
  }

  /**
   * Whether a script may be called by its SHA: the server knows it, or is being sent it right now. Otherwise the caller sends
   * its text. A server is taken to know all but the urgent ones until it says NOSCRIPT or the connection breaks, as a restart forgets them.
   */
  mayKnow({ isUrgent, sha1 }: RedisDriver.RedisScript): boolean {
    if ((this.doubts === 0 && isUrgent !== true) || this.#scripts.has(sha1)) return true
    this.#scripts.add(sha1)
    return false
  }

  doubtScripts(): void {
    this.#scripts = new Set()
    this.doubts++
  }

  /** A command has timed out: the server owes an answer. */
  onCommandTimeout(): void {
    this.#watch(this.timeoutMillis)
  }

  /** A command was sent that is answered at once. */
  expectAnswer(): void {
    this.#watch(2 * this.timeoutMillis)
  }

  /** The server has answered, or the connection is gone. */
  readonly answered = (): void => {
    this.#hasHeard = true
    if (this.#silence === undefined) return
    clearTimeout(this.#silence)
    this.#silence = undefined
  }

  close(): void {
    this.#listening.close()
    clearInterval(this.#heartbeat)
    this.answered()
  }

  #nextName(): string {
    const { host, port } = this.client.options
    return `${host}:${port}#${++connections}`
  }

  /** A connection is open, and the handshake begins. */
  readonly #onConnect = (): void => {
    const { client, connection, timeoutMillis } = this
    this.server = this.#nextName()
    if (!connection.isOurs) return
    this.#watch(2 * timeoutMillis)
    const socket = connection.path.socketOf(client)
    // while a server is loading, ioredis polls it
    const alive = () => {
      if (client.status === "ready") return socket?.off("data", alive)
      this.answered()
      return this.#watch(2 * timeoutMillis + (client.options.maxLoadingRetryTime ?? 0))
    }
    socket?.on("data", alive)
  }

  readonly #onClose = (): void => {
    this.doubtScripts()
    this.answered()
  }

  /** Nothing has arrived since the last check: sends a PING. Any reply, even an error, is a sign of life. */
  readonly #beat = (): void => {
    if (this.client.status === "ready" && !this.#hasHeard) {
      this.expectAnswer()
      this.#ping()
    }
    this.#hasHeard = false
  }

  #ping(): void {
    this.client.ping().then(this.answered, (error: Error) => {
      if (error.name === "ReplyError") this.answered()
      // ioredis has given it up (commandTimeout), and would not tell of a late reply
      else if (this.#silence !== undefined && error.message === "Command timed out") this.#ping()
    })
  }

  #watch(millis: number): void {
    if (this.#silence !== undefined || !this.connection.isOurs) return
    const silence = setTimeout(() => {
      // if the event loop was blocked, an answer may be waiting in the socket: it is read first
      setImmediate(() => {
        if (this.#silence !== silence) return
        this.#silence = undefined
        this.connection.replace(new Error(`timed out: nothing has come back for ${millis} ms`))
      })
    }, millis).unref()
    this.#silence = silence
  }
}
