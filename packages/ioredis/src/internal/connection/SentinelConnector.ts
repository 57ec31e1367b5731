import * as IoRedis from "ioredis"
import { prepare } from "./Connector.ts"

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
