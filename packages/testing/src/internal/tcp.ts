import * as Effect from "effect/Effect"
import { connect, createServer } from "node:net"

/** Ports above this have no room for the cluster bus, which listens on the port + 10000. */
const HIGHEST_PORT = 55_535

/** A port of 127.0.0.1 that was free a moment ago; the caller must be ready to find it taken. */
export const freePort: Effect.Effect<number, Error> = Effect.callback<number, Error>((resume) => {
  const server = createServer()
  server.once("error", (error) => resume(Effect.fail(error)))
  server.listen(0, "127.0.0.1", () => {
    const address = server.address()
    const port = typeof address === "object" && address !== null ? address.port : 0
    server.close(() => resume(Effect.succeed(port)))
  })
}).pipe(Effect.repeat({ until: (port) => port <= HIGHEST_PORT }))

/** Whether anything accepts a connection there within a second. */
export const accepts = (endpoint: { readonly host: string; readonly port: number }): Effect.Effect<boolean> =>
  Effect.callback<boolean>((resume) => {
    const socket = connect(endpoint)
    const answer = (accepted: boolean) => {
      socket.destroy()
      resume(Effect.succeed(accepted))
    }
    socket.setTimeout(1000, () => answer(false))
    socket.once("connect", () => answer(true))
    socket.on("error", () => answer(false))
    return Effect.sync(() => socket.destroy())
  })
