/**
 * A network between the processes of a workload and their server: every piece of data, in either direction, is passed on a millisecond
 * later. Over one connection the order is kept.
 */
import { connect, createServer, type AddressInfo, type Socket } from "node:net"
import { argument, run, say } from "./Parent.ts"

export interface ProxyArgument {
  readonly port: number
  /** For how long each direction holds what it passes on. */
  readonly delayMillis: number
}

const pass = (from: Socket, to: Socket, delayMillis: number): void => {
  from.setNoDelay(true)
  from.on("data", (chunk) => setTimeout(() => to.write(chunk), delayMillis))
  from.on("close", () => setTimeout(() => to.destroy(), delayMillis))
  from.on("error", () => {})
}

run(async () => {
  const { delayMillis, port } = argument<ProxyArgument>()
  const server = createServer((client) => {
    const upstream = connect(port, "127.0.0.1")
    pass(client, upstream, delayMillis)
    pass(upstream, client, delayMillis)
  })
  server.listen(0, "127.0.0.1", () => say("ready", (server.address() as AddressInfo).port))
})
