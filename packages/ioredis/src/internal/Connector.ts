import { connect as connectTcp, type NetConnectOpts, type OnReadOpts, type Socket } from "node:net"
import { connect as connectTls } from "node:tls"
import { AbstractConnector, type RedisOptions } from "ioredis"

/** Of all connections: what is read is handed on before anything else can be. */
const buffer = Buffer.allocUnsafeSlow(64 * 1024)

/**
 * Has the whole handshake written at once. The second of several writes to a server that has turned the connection away would
 * fail, and what the server had to say with it.
 */
export const writingAtOnce = <A extends Socket>(stream: A, connected: "connect" | "secureConnect"): A =>
  stream.once(connected, () => {
    stream.cork()
    process.nextTick(() => stream.uncork())
  })

/**
 * Connects to one server as ioredis' own connector does, but reads into a buffer that is there already: Node would allocate
 * 64 KiB for every read and give most of it back, which costs more than a small reply is worth.
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
    // ioredis may have changed its mind
    if (!this.connecting) throw new Error("Connection is closed.")
    const { tls } = this.#options
    const onread: OnReadOpts = {
      buffer,
      callback: (length, bytes) => {
        // a parser may keep a part of it until the rest comes
        stream.emit("data", Buffer.from(bytes.subarray(0, length)))
        return true
      }
    }
    const options = { ...this.#address, ...tls, onread }
    const stream: Socket = tls ? connectTls(options) : connectTcp(options as NetConnectOpts)
    this.stream = stream
    stream.once("error", (error) => {
      this.firstError = error
    })
    return writingAtOnce(stream, tls ? "secureConnect" : "connect")
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
