import { RedisDriver } from "effect-redis-lock"
import type { Redis, RedisOptions } from "ioredis"
import type { EventEmitter } from "node:events"
import type { CommandPath } from "../command/CommandPath.ts"
import { type ConnectionLog, isLasting } from "./ConnectionLog.ts"
import { type Closable, listen } from "./listening.ts"
import { because, endedError, failed, type Failure, failureOf, type Hide, hiding } from "../failure.ts"

/** The first characters of the replies of Redis. */
const REPLY_TYPES = "+-:$*_#,(!=%~>|"

/** The shortest time between two replacements of a connection because its server is a replica. */
const READ_ONLY_PAUSE_MILLIS = 1000

/** The most listeners that a driver adds to any event of a client. */
const LISTENERS = 4

/** The number of characters shown of a reply that is not from a Redis. */
const SHOWN_CHARACTERS = 200

/** For our own connections beside that for commands: the subscriber itself resubscribes after a reconnect. */
const besideCommands: RedisOptions & { readonly commandTimeout: undefined } = {
  // over RESP3 ioredis does not pass on what the server reports about keys
  protocol: 2,
  lazyConnect: false,
  autoResubscribe: false,
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
  autoResendUnfulfilledCommands: false,
  // an application's is meant for its own commands; whether these connections are alive is watched here
  commandTimeout: undefined
}

export interface Options {
  readonly path: CommandPath
  readonly log: ConnectionLog
  /** Its name in the log. Default: `commands`. */
  readonly name?: string
  /** The node of a cluster, if several connections share a name. */
  readonly node?: string
  /** Whether it may be disconnected. Default: true. */
  readonly isOurs?: boolean
  /**
   * Whether another one replaces it when ioredis has ended it, as for subscriptions, acknowledgements and a cluster's nodes. Default: false.
   */
  readonly isReplaceable?: boolean
  /** Whether it is still wanted after it has closed. Default: unless it has ended for good. */
  readonly isWanted?: () => boolean
}

/** Several drivers over one client are no leak, of which Node.js would warn. */
export const allowListeners = (emitter: EventEmitter, more: number): void => {
  const most = emitter.getMaxListeners()
  // 0: any number
  if (most > 0) emitter.setMaxListeners(most + more)
}

/**
 * The state of one connection of ioredis across its reconnects: why it is unavailable, for callers and for the log.
 *
 * A connection whose SELECT is refused stays in database 0, and ioredis uses it anyway: it is dropped instead.
 */
export class Connection {
  readonly client: Redis
  readonly path: CommandPath
  readonly log: ConnectionLog
  readonly name: string
  /** What the log distinguishes connections by. */
  readonly key: string
  /** Whether it may be disconnected; otherwise the application may use it as well. */
  readonly isOurs: boolean
  readonly #isReplaceable: boolean
  readonly #isWanted: () => boolean
  readonly #hide: Hide
  readonly #listening: Closable
  /** Why the connection broke, or why the last attempt to connect failed. */
  failure: Failure | undefined
  /** The first problem since the current attempt began: later ones are mostly its consequences. */
  #first: Failure | undefined
  #wasReady: boolean
  #isUnusable = false
  /**
   * That of the locks, where it is the application that selects: commands fail while it has selected another one. Undefined for that of the
   * client's options.
   */
  database: number | undefined
  /** What the application has selected since there is this connection. */
  #selected: number | undefined
  /** Whether the connection has closed, and ioredis has not begun to connect again, or is given up: errors that follow are consequences. */
  #hasClosed = false
  #server: string | undefined
  /** The server's first message. */
  #greeting: string | undefined
  /** Whether the server of the current connection has rejected a script because it is a replica. */
  #isReplica = false
  /** Whether the connection before this one led to a replica: its address may lead to another server by now. */
  hasLeftReplica = false
  /** When it was last replaced because its server is a replica. */
  #readOnlyAt = Number.NEGATIVE_INFINITY

  /** From now on the client's errors have a listener, so that ioredis does not print them. */
  constructor(
    client: Redis,
    { isOurs = true, isReplaceable = false, isWanted, log, name = "commands", node = "", path }: Options
  ) {
    this.client = client
    this.path = path
    this.log = log
    this.name = name
    this.key = `${name} ${node}`
    this.isOurs = isOurs
    this.#isReplaceable = isReplaceable
    this.#isWanted = isWanted ?? (() => isReplaceable || client.status !== "end")
    const { password, sentinelPassword } = client.options
    this.#hide = hiding([password, sentinelPassword])
    this.#wasReady = client.status === "ready"
    if (!isOurs) allowListeners(client, LISTENERS)
    client.on("error", this.#onError)
    this.#listening = listen(client, {
      connecting: this.#onConnecting,
      connect: this.#onConnect,
      select: this.#onSelect,
      ready: this.#onReady,
      close: this.#onClose,
      end: this.#onEnd
    })
  }

  /** Another connection to the same server, of our own. */
  beside(name: string, settings: RedisOptions, options: Pick<Options, "node" | "isWanted"> = {}): Connection {
    const { client, log, path } = this
    const duplicate = client.duplicate({ ...besideCommands, ...settings })
    return new Connection(duplicate, { path, log, name, isReplaceable: true, ...options })
  }

  /** The connection has the wrong database, or the wrong user. */
  get isUnusable(): boolean {
    return this.#isUnusable || this.#strayedTo !== undefined
  }

  readonly #onSelect = (database: number): void => {
    this.#selected = database
  }

  /** Another database than that of the locks, if the application has selected one. */
  get #strayedTo(): number | undefined {
    return this.#selected === this.database || this.database === undefined ? undefined : this.#selected
  }

  /** Its destination, for messages. */
  get server(): string {
    const { host, name, path, port, sentinels } = this.client.options as Redis["options"] & { readonly path?: string }
    if (path) return path
    return sentinels ? (this.#server ?? `the master "${name}"`) : `${host}:${port}`
  }

  /** The failure of a command that cannot be sent now. */
  get notConnected(): Failure {
    if (this.#strayedTo !== undefined && this.client.status === "ready") {
      return failed(
        "NotConnected",
        `the application has selected database ${this.#strayedTo} on this connection, and the locks are in database ${this.database}`
      )
    }
    const { failure } = this
    if (failure !== undefined && (isLasting(failure) || failure.reason === "ReadOnly")) return failure
    if (this.client.status === "end" && !this.#isReplaceable) return this.#ended
    const state = `no connection to ${this.server} (${this.client.status})`
    return failed("NotConnected", state + because(failure), failure)
  }

  /** The failure of all commands once ioredis will not reconnect by itself. */
  get #ended(): Failure {
    return endedError(this.server, this.isOurs, this.failure)
  }

  /** An error of this connection, without its secrets. */
  failureOf(error: unknown): Failure {
    return failureOf(error, this.#hide)
  }

  /** Ends a useless connection of our own; ioredis opens another one. */
  replace(error: Error): void {
    this.#first ??= this.failureOf(error)
    this.#end(error)
  }

  /**
   * The server rejected a script because it is a replica: after a failover its address, or Sentinel, may lead to the master. A
   * replica that was configured on purpose must not be tried in a loop, and in a cluster the slots say which node is the master.
   */
  onReadOnly(failure: Failure): void {
    this.#isReplica = true
    const now = performance.now()
    if (!this.isOurs || this.#isReplaceable || this.client.status !== "ready") return
    if (now < this.#readOnlyAt + READ_ONLY_PAUSE_MILLIS) return
    this.#readOnlyAt = now
    this.#first = this.failure = failure
    this.#isUnusable = true
    this.#end(failure.cause as Error)
  }

  /**
   * The failure of commands without a reply where the connection is being replaced because its server was a replica: it may have been
   * promoted since, and have run them.
   */
  get leavesReplica(): Failure | undefined {
    const { failure } = this
    if (failure?.reason !== "ReadOnly") return undefined
    return failed("ConnectionLost", `it was replaced because the server was a replica${because(failure)}`, failure)
  }

  #end(error?: Error): void {
    const socket = this.path.socketOf(this.client)
    if (socket === undefined) this.client.disconnect(true)
    else socket.destroy(error)
  }

  /** A client of our own keeps its listener after it is closed: ioredis would print later errors. */
  close(): void {
    this.#listening.close()
    this.#hasClosed = true
    if (this.isOurs) return
    this.client.off("error", this.#onError)
    allowListeners(this.client, -LISTENERS)
  }

  readonly #onConnecting = (): void => {
    this.#hasClosed = false
    this.#first = undefined
    this.#greeting = undefined
  }

  readonly #onConnect = (): void => {
    const socket = this.path.socketOf(this.client)
    const { remoteAddress, remotePort } = socket ?? {}
    this.#server = remoteAddress === undefined ? undefined : `${remoteAddress}:${remotePort}`
    if (socket === undefined) return
    allowListeners(socket, 1)
    // before ioredis parses it
    socket.prependOnceListener("data", (data: Buffer) => {
      this.#greeting = data.subarray(0, 1000).toString("latin1")
    })
  }

  readonly #onError = (error: unknown): void => {
    // only then does the ready check of ioredis 5 fail, and for another reason than the one for which the connection closed
    if (this.#hasClosed) return
    const refused = (error as { readonly command?: { readonly name?: unknown } }).command?.name
    const refusesDatabase = refused === "select"
    const failure = this.#explain(error, refusesDatabase)
    this.#first ??= failure
    if (refusesDatabase) {
      this.#isUnusable = true
      if (this.isOurs) this.#end()
    }
    // ioredis ends it, but version 5 may report it as ready before that, as the default user
    if (refused === "auth") this.#isUnusable = true
    if (this.#wasReady) return
    this.failure = this.#first
    this.log.refused(this, this.#first)
  }

  readonly #onReady = (): void => {
    // a handshake may go on after its SELECT or AUTH was refused
    if (this.#isUnusable) return
    this.#wasReady = true
    this.hasLeftReplica = this.#isReplica
    this.#isReplica = false
    this.#first = this.failure = undefined
    this.log.ready(this)
  }

  readonly #onClose = (): void => {
    const first = this.#first ?? this.#explain(new Error("Connection is closed."), false)
    // only a connection attempt can show that further ones are futile
    const isLoss = this.#wasReady && isLasting(first)
    const failure = isLoss ? new RedisDriver.RedisDriverError({ reason: "ConnectionLost", cause: first.cause }) : first
    this.failure = failure
    if (this.#isWanted()) {
      if (this.#wasReady) this.log.lost(this, failure)
      else this.log.refused(this, failure)
    }
    this.#first = undefined
    this.#wasReady = this.#isUnusable = false
    this.#hasClosed = true
  }

  readonly #onEnd = (): void => {
    if (!this.#isReplaceable) this.log.ended(this, this.#ended)
  }

  /** A message from the server before the connection broke says more than how it broke. */
  #explain(error: unknown, refusesDatabase: boolean): Failure {
    const greeting = this.#greeting
    if (!this.#wasReady && greeting !== undefined) {
      const [line = ""] = greeting.split("\r\n", 1)
      if (!REPLY_TYPES.includes(greeting[0]!)) {
        const shown = JSON.stringify(this.#hide(line).slice(0, SHOWN_CHARACTERS))
        return failed("Failed", `the server is not Redis: it answered ${shown}`)
      }
      const isReply = error instanceof Error && error.name === "ReplyError"
      // a server without HELLO stays with RESP2
      const isRefusal = line.startsWith("-") && !/NOPROTO|unknown (sub)?command/i.test(line)
      if (isRefusal && !isReply) return failureOf(new Error(line.slice(1)), this.#hide)
    }
    const failure = failureOf(error, this.#hide)
    if (!refusesDatabase) return failure
    return failed(failure.reason, `cannot select database ${this.client.options.db}${because(failure)}`)
  }
}
