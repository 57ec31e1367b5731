import * as IoRedis from "ioredis"
import { writingAtOnce } from "../Connector.ts"

/**
 * Connects to the master that sentinels name, as ioredis does, but hears nothing of failovers while it asks for the master.
 *
 * ioredis listens to the sentinels until its next connection stands, and ends whatever connection it has when they tell of a
 * failover. Where they do while it asks them, it takes itself for closed and never connects again.
 */
export class SentinelConnector extends IoRedis.SentinelConnector {
  constructor(options: unknown) {
    super(options as IoRedis.SentinelConnectionOptions)
    // what listens for failovers has nobody to tell of its errors, and ioredis would print them
    const self = this as unknown as { connectToSentinel: (...args: ReadonlyArray<unknown>) => IoRedis.Redis }
    const connect = self.connectToSentinel.bind(this)
    self.connectToSentinel = (...args) => connect(...args).on("error", () => {})
  }

  override async connect(emit: Parameters<IoRedis.SentinelConnector["connect"]>[0]) {
    // what the lost connection listened with; the next one will have its own
    this["failoverDetector"]?.cleanup()
    this["failoverDetector"] = null
    const stream = await super.connect(emit)
    const { enableTLSForSentinelMode, tls } = this["options"]
    return writingAtOnce(stream, enableTLSForSentinelMode && tls ? "secureConnect" : "connect")
  }
}
