/**
 * A number outside Redis: behind a TCP port of this machine for Java (see `Counter.java`), and here for ourselves. Everybody
 * reads it and writes it back in a second step, so that an increment is lost whenever two sections overlap.
 */
import { Effect, type Scope } from "effect"
import { type AddressInfo, createServer, type Socket } from "node:net"
import { createInterface } from "node:readline"

export interface Counter {
  readonly port: number
  readonly value: () => number
  readonly increment: Effect.Effect<void>
}

export const make: Effect.Effect<Counter, never, Scope.Scope> = Effect.gen(function* () {
  let value = 0
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on("error", () => {}).on("close", () => sockets.delete(socket))
    createInterface(socket).on("line", (line) => {
      const [command, argument] = line.split(" ")
      if (command === "set") value = Number(argument)
      socket.write(`${value}\n`)
    })
  })
  yield* Effect.acquireRelease(
    Effect.callback<void>((resume) => {
      server.listen(0, "127.0.0.1", () => resume(Effect.void))
    }),
    () =>
      Effect.callback<void>((resume) => {
        for (const socket of sockets) socket.destroy()
        server.close(() => resume(Effect.void))
      })
  )
  return {
    port: (server.address() as AddressInfo).port,
    value: () => value,
    increment: Effect.gen(function* () {
      const read = value
      // long enough for whoever is not kept out
      yield* Effect.sleep(1)
      value = read + 1
    })
  }
})
