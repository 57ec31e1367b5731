import type { NetConnectOpts, OnReadOpts, Socket } from "node:net"
import type { ConnectionOptions } from "node:tls"
import { Connector } from "../connection/Connector.ts"

/** Shared by all connections: each chunk is consumed synchronously. */
const buffer = Buffer.allocUnsafeSlow(64 * 1024)

/**
 * Reads into an existing buffer: Node would allocate 64 KiB for every read and return most of it, which is too expensive for a
 * small reply. To ioredis, a "data" event emitted here looks like one from the socket.
 */
export class BufferedConnector extends Connector {
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
