import type { Cluster, Command, Redis } from "ioredis"
import type { NetConnectOpts, OnReadOpts, Socket } from "node:net"
import type { ConnectionOptions } from "node:tls"
import type { CommandPath, SendScript, StartupNode } from "../command/CommandPath.ts"
import { Connector, SentinelConnector } from "../plain/plainPath.ts"
import { BurstWriter } from "./BurstWriter.ts"
import { FastCommand } from "./FastCommand.ts"

const makeSend = (client: Redis): SendScript => {
  const writer = new BurstWriter(client)
  return (request) => {
    const command = new FastCommand(request)
    writer.write(command as unknown as Command, request.script.isUrgent === true)
    return command
  }
}

/** Shared by all connections: each chunk is consumed synchronously. */
const buffer = Buffer.allocUnsafeSlow(64 * 1024)

/**
 * Reads into an existing buffer: Node would allocate 64 KiB for every read and return most of it, which is too expensive for a
 * small reply. To ioredis, a "data" event emitted here looks like one from the socket.
 */
class BufferedConnector extends Connector {
  protected override open(address: NetConnectOpts, tls: ConnectionOptions | undefined): Socket {
    const onread: OnReadOpts = {
      buffer,
      callback: (length, bytes) => {
        // a parser may keep a part of it until the rest arrives
        socket.emit("data", Buffer.from(bytes.subarray(0, length)))
        return true
      }
    }
    const socket = super.open({ ...address, onread }, tls)
    return socket
  }
}

/** The private parts of ioredis' connector that are used here. */
interface ConnectorInternals {
  failoverDetector: { cleanup(): void } | null
  connectToSentinel: (...args: ReadonlyArray<unknown>) => Redis
}

/**
 * Listens for failovers as ioredis does, but ignores them while it looks up the master.
 *
 * ioredis listens to the sentinels until its next connection is up, and ends its current one when they report a failover. If
 * they do so during the lookup, it considers itself closed and never reconnects.
 */
class ListeningConnector extends SentinelConnector {
  constructor(options: unknown) {
    super(options)
    // nothing handles the errors of the listening clients, and ioredis would print them
    const self = this as unknown as ConnectorInternals
    const connect = self.connectToSentinel.bind(this)
    self.connectToSentinel = (...args) => connect(...args).on("error", () => {})
  }

  override async connect(emit: Parameters<SentinelConnector["connect"]>[0]) {
    // the listeners of the lost connection; the next one will have its own
    const self = this as unknown as ConnectorInternals
    self.failoverDetector?.cleanup()
    self.failoverDetector = null
    return super.connect(emit)
  }
}

/** The private part of ioredis' Cluster that is used here. */
interface ClusterInternals {
  readonly startupNodes: ReadonlyArray<string | number | StartupNode>
}

/** Uses internals of ioredis for speed; only for versions in which {@link missingParts} finds none missing. */
export const fastPath: CommandPath = {
  name: "fast",
  Connector: BufferedConnector,
  SentinelConnector: ListeningConnector,
  defaults: {},
  // a failover reported by the sentinels ends a connection to a master that hangs
  sentinelDefaults: { failoverDetector: true },
  makeSend,
  socketOf: (client) => client.stream,
  startupNodeOf: (cluster: Cluster) => {
    const [node] = (cluster as unknown as ClusterInternals).startupNodes
    return typeof node === "object" ? node : undefined
  }
}
