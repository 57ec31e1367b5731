import { connect as connectTcp, type NetConnectOpts, type Socket } from "node:net"
import { connect as connectTls, type ConnectionOptions } from "node:tls"
import * as IoRedis from "ioredis"
import type { CommandPath, SendScript } from "../command/CommandPath.ts"
import { given } from "../options/settings.ts"

/** ioredis' message after its own `commandTimeout`. */
const TIMED_OUT = "Command timed out"

/**
 * Commands as ioredis documents them for what it has no method for. Its methods would do for connections of our own, but a
 * command that an application's client keeps for its next connection could not be disarmed, and `enableAutoPipelining` would
 * keep it back.
 */
const makeSend =
  (client: IoRedis.Redis): SendScript =>
  (request) => {
    const { args, keys, script, sendsText } = request
    const [name, subject] = sendsText ? ["eval", script.lua] : ["evalsha", script.sha1]
    const command = new IoRedis.Command(name, [subject, keys.length, ...keys, ...args])
    void (client.sendCommand(command) as Promise<unknown>).then(
      (reply) => request.onReply(reply),
      (error: unknown) => {
        if (error instanceof Error && error.message === TIMED_OUT) request.expire()
        else request.onError(error)
      }
    )
    return {
      disarm: () => {
        command.name = "ping"
        command.args = []
      }
    }
  }

/** Those that our own connectors have opened, by the options of their clients. */
const sockets = new WeakMap<object, Socket>()

/**
 * Remembers the socket, and makes the whole handshake go out in one write: a second write to a server that has rejected the
 * connection would fail, and the server's explanation would be lost.
 */
const prepare = <A extends Socket>(options: object, socket: A, connected: "connect" | "secureConnect"): A => {
  sockets.set(options, socket)
  return socket.once(connected, () => {
    socket.cork()
    // some versions of ioredis write parts of it after a microtask
    setImmediate(() => socket.uncork())
  })
}

/** Connects to one server as ioredis' own connector does, but writes the handshake at once. */
export class Connector extends IoRedis.AbstractConnector {
  readonly #options: IoRedis.RedisOptions

  constructor(options: unknown) {
    super((options as { readonly disconnectTimeout: number }).disconnectTimeout)
    this.#options = options as IoRedis.RedisOptions
  }

  override async connect(): Promise<Socket> {
    this.connecting = true
    await undefined
    // ioredis may no longer want the connection
    if (!this.connecting) throw new Error("Connection is closed.")
    const { family, host, path, port, tls } = this.#options
    const socket = this.open((path ? { path } : given({ port, host, family })) as NetConnectOpts, tls)
    this.stream = socket
    socket.once("error", (error) => {
      this.firstError = error
    })
    return prepare(this.#options, socket, tls ? "secureConnect" : "connect")
  }

  protected open(address: NetConnectOpts, tls: ConnectionOptions | undefined): Socket {
    return tls ? connectTls({ ...address, ...tls }) : connectTcp(address)
  }
}

/** Connects to a master monitored by Sentinel, as ioredis does, but writes the handshake at once. */
export class SentinelConnector extends IoRedis.SentinelConnector {
  readonly #options: IoRedis.SentinelConnectionOptions

  constructor(options: unknown) {
    super(options as IoRedis.SentinelConnectionOptions)
    this.#options = options as IoRedis.SentinelConnectionOptions
  }

  override async connect(emit: Parameters<IoRedis.SentinelConnector["connect"]>[0]) {
    const stream = await super.connect(emit)
    const { enableTLSForSentinelMode, tls } = this.#options
    return prepare(this.#options, stream, enableTLSForSentinelMode && tls ? "secureConnect" : "connect")
  }
}

/** Uses only the public API of ioredis, from the oldest to the newest version that this package admits. */
export const plainPath: CommandPath = {
  name: "plain",
  Connector,
  SentinelConnector,
  // ioredis 5.4 and later write CLIENT SETINFO on its own: a server that has turned the connection away would not be heard
  defaults: { disableClientInfo: true },
  // ioredis may end for good if it hears of a failover while it looks up the master
  sentinelDefaults: { failoverDetector: false },
  makeSend,
  socketOf: (client) => sockets.get(client.options),
  startupNodeOf: () => undefined
}
