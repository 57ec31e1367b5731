import type { Redis } from "ioredis"
import * as Plain from "../SentinelConnector.ts"

/** The private parts of ioredis' connector that are used here. */
interface Internals {
  failoverDetector: { cleanup(): void } | null
  connectToSentinel: (...args: ReadonlyArray<unknown>) => Redis
}

/**
 * Listens for failovers as ioredis does, but hears nothing of them while it asks for the master.
 *
 * ioredis listens to the sentinels until its next connection stands, and ends whatever connection it has when they tell of a
 * failover. Where they do while it asks them, it takes itself for closed and never connects again.
 */
export class SentinelConnector extends Plain.SentinelConnector {
  constructor(options: unknown) {
    super(options)
    // what listens for failovers has nobody to tell of its errors, and ioredis would print them
    const self = this as unknown as Internals
    const connect = self.connectToSentinel.bind(this)
    self.connectToSentinel = (...args) => connect(...args).on("error", () => {})
  }

  override async connect(emit: Parameters<Plain.SentinelConnector["connect"]>[0]) {
    // the listeners of the lost connection; the next one will have its own
    const self = this as unknown as Internals
    self.failoverDetector?.cleanup()
    self.failoverDetector = null
    return super.connect(emit)
  }
}
