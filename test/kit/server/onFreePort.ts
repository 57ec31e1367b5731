import { RedisServer } from "@effect-redis-lock/testing"
import { Effect } from "effect"
import { type AddressInfo, createServer } from "node:net"

/** One that nobody listens on. */
export const freePort = Effect.callback<number>((resume) => {
  const server = createServer().listen(0, "127.0.0.1", () => {
    const { port } = server.address() as AddressInfo
    server.close(() => resume(Effect.succeed(port)))
  })
})

/** Starts a server that has another port besides its own: one that is free, also where somebody else takes one before the server does. */
export const onFreePort = (argsOf: (port: number) => ReadonlyArray<string>) =>
  freePort.pipe(
    Effect.flatMap((port) => Effect.map(RedisServer.start({ args: argsOf(port) }), (server) => ({ port, server }))),
    Effect.retry({ while: ({ reason }) => reason === "PortTaken", times: 9 })
  )
