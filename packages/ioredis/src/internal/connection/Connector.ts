import { connect as connectTcp, type NetConnectOpts, type Socket } from "node:net"
import { connect as connectTls, type ConnectionOptions } from "node:tls"
import { AbstractConnector, type Redis, type RedisOptions } from "ioredis"

/** By the options of their clients. */
const sockets = new WeakMap<object, Socket>()

/** The socket of a client's current connection, or of the last one, if one of our connectors has opened it. */
export const socketOf = (client: Redis): Socket | undefined => sockets.get(client.options)

/**
 * Remembers the socket, and makes the whole handshake go out in one write: a second write to a server that has rejected the
 * connection would fail, and the server's explanation would be lost.
 */
export const prepare = <A extends Socket>(options: object, socket: A, connected: "connect" | "secureConnect"): A => {
  sockets.set(options, socket)
  return socket.once(connected, () => {
    socket.cork()
    // some versions of ioredis write parts of it after a microtask
    setImmediate(() => socket.uncork())
  })
}

/**
 * Connects to one server as ioredis' own connector does, but writes the handshake at once.
 */
export class Connector extends AbstractConnector {
  readonly #options: RedisOptions

  constructor(options: unknown) {
    super((options as { readonly disconnectTimeout: number }).disconnectTimeout)
    this.#options = options as RedisOptions
  }

  override async connect(): Promise<Socket> {
    this.connecting = true
    await undefined
    // ioredis may no longer want the connection
    if (!this.connecting) throw new Error("Connection is closed.")
    const { tls } = this.#options
    const socket = this.open(this.#address as NetConnectOpts, tls)
    this.stream = socket
    socket.once("error", (error) => {
      this.firstError = error
    })
    return prepare(this.#options, socket, tls ? "secureConnect" : "connect")
  }

  protected open(address: NetConnectOpts, tls: ConnectionOptions | undefined): Socket {
    return tls ? connectTls({ ...address, ...tls }) : connectTcp(address)
  }

  get #address() {
    const { family, host, path, port } = this.#options
    return path
      ? { path }
      : {
          ...(port == null ? {} : { port }),
          ...(host == null ? {} : { host }),
          ...(family == null ? {} : { family })
        }
  }
}
