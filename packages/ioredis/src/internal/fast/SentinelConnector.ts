import type { Redis } from "ioredis"
import * as Plain from "../connection/SentinelConnector.ts"

/** The private parts of ioredis' connector that are used here. */
interface Internals {
  failoverDetector: { cleanup(): void } | null
  connectToSentinel: (...args: ReadonlyArray<unknown>) => Redis
}

/**
 * Listens for failovers as ioredis does, but ignores them while it looks up the master.
 *
 * ioredis listens to the sentinels until its next connection is up, and ends its current one when they report a failover. If
 * they do so during the lookup, it considers itself closed and never reconnects.
 */
export class SentinelConnector extends Plain.SentinelConnector {
  constructor(options: unknown) {
    super(options)
    // nothing handles the errors of the listening clients, and ioredis would print them
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
