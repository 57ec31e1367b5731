/**
 * One message storage for several processes: Effect's in memory, of the test's own process, which runners reach over a socket. What the
 * tests are about is who handles messages, not how they are kept.
 */
import { Effect, Layer, Option, type Scope } from "effect"
import { MessageStorage, Snowflake } from "effect/cluster"
import { once } from "node:events"
import { type AddressInfo, createConnection, createServer, type Socket } from "node:net"
import { createInterface } from "node:readline"

/** JSON has neither of these; an Option would turn itself into something else before the replacer sees it. */
const toJson = (value: unknown) =>
  JSON.stringify(value, function (this: Record<string, unknown>, key, part: unknown) {
    const given = this[key]
    if (typeof given === "bigint") return { $bigint: String(given) }
    return Option.isOption(given) ? { $option: Option.toArray(given) } : part
  })
const fromJson = (text: string): unknown =>
  JSON.parse(text, (_, part: unknown) => {
    if (typeof part !== "object" || part === null) return part
    if ("$bigint" in part) return BigInt(String(part.$bigint))
    return "$option" in part ? Option.fromNullishOr((part.$option as ReadonlyArray<unknown>)[0]) : part
  })

/** A connection that breaks has no more lines. */
const linesOf = (socket: Socket, onLine: (line: string) => void) =>
  void createInterface(socket)
    .on("error", () => {})
    .on("line", onLine)

type Method = Exclude<keyof MessageStorage.Encoded, "withTransaction">

interface Call {
  readonly id: number
  readonly method: Method
  readonly args: ReadonlyArray<unknown>
}

type Operations = Record<Method, (...args: ReadonlyArray<unknown>) => Effect.Effect<unknown, unknown>>

/** Serves a storage on a free port. */
export const serveMessages = Effect.fnUntraced(function* (
  storage: MessageStorage.Encoded
): Effect.fn.Return<number, never, Scope.Scope> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on("error", () => {})
    linesOf(socket, (line) => {
      const { args, id, method } = fromJson(line) as Call
      void Effect.runPromise((storage as unknown as Operations)[method](...args)).then((result) => {
        socket.write(`${toJson({ id, result })}\n`)
      })
    })
  })
  server.listen(0, "127.0.0.1")
  yield* Effect.promise(() => once(server, "listening"))
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      for (const socket of sockets) socket.destroy()
      server.close()
    })
  )
  return (server.address() as AddressInfo).port
})

/** The storage that another process serves. */
export const layerRemote = (port: number): Layer.Layer<MessageStorage.MessageStorage> =>
  Layer.effect(
    MessageStorage.MessageStorage,
    Effect.gen(function* () {
      const socket = yield* Effect.acquireRelease(
        Effect.sync(() => createConnection(port, "127.0.0.1").on("error", () => {})),
        (socket) => Effect.sync(() => socket.destroy())
      )
      const waiting = new Map<number, (result: unknown) => void>()
      linesOf(socket, (line) => {
        const { id, result } = fromJson(line) as { readonly id: number; readonly result: unknown }
        waiting.get(id)?.(result)
        waiting.delete(id)
      })
      let calls = 0
      const operations = new Proxy({} as Operations, {
        get:
          (_, method: Method) =>
          (...args: ReadonlyArray<unknown>) =>
            Effect.callback<unknown>((resume) => {
              const id = ++calls
              waiting.set(id, (result) => resume(Effect.succeed(result)))
              socket.write(`${toJson({ id, method, args } satisfies Call)}\n`)
            })
      })
      return yield* MessageStorage.makeEncoded(
        new Proxy(operations as unknown as MessageStorage.Encoded, {
          get: (target, name: Method | "withTransaction") =>
            name === "withTransaction" ? (effect: Effect.Effect<unknown>) => effect : target[name]
        })
      )
    })
  ).pipe(Layer.provide(Snowflake.layerGenerator))
