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
  /** Which runner calls. */
  readonly reader: string
  readonly id: number
  readonly method: Method
  readonly args: ReadonlyArray<unknown>
}

type Operations = Record<Method, (...args: ReadonlyArray<unknown>) => Effect.Effect<unknown, unknown>>

/** Who has read a message last, and when by `performance.now()`. */
export interface Read {
  readonly reader: string
  readonly at: number
}

/** A storage at a port. */
export interface ServedMessages {
  readonly port: number
  /** By request; of those that are not answered yet. */
  readonly reads: ReadonlyMap<string, Read>
}

/**
 * Serves a storage on a free port. Who reads a message claims it: for ten minutes in Effect's storages, here for a minute by default. A
 * runner that continues after a stop may claim messages of shards that it has lost, and drop them; they must come to their owner while a
 * test waits.
 */
export const serveMessages = Effect.fnUntraced(function* (
  storage: MessageStorage.Encoded,
  claimMillis = 60_000
): Effect.fn.Return<ServedMessages, never, Scope.Scope> {
  const reads = new Map<string, Read>()
  const read = (reader: string, args: Parameters<MessageStorage.Encoded["unprocessedMessages"]>) =>
    Effect.suspend(() => {
      const now = performance.now()
      const expired = [...reads].filter(([, { at }]) => now - at > claimMillis)
      return storage.resetRequests(expired.map(([request]) => Snowflake.Snowflake(request))).pipe(
        Effect.andThen(storage.unprocessedMessages(...args)),
        Effect.tap((messages) =>
          Effect.sync(() => {
            for (const { envelope } of messages) {
              if (envelope._tag === "Request") reads.set(envelope.requestId, { reader, at: now })
            }
          })
        )
      )
    })
  const served: MessageStorage.Encoded = {
    ...storage,
    saveReply: (reply) =>
      Effect.tap(storage.saveReply(reply), () =>
        Effect.sync(() => void (reply._tag === "WithExit" && reads.delete(reply.requestId)))
      )
  }
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on("error", () => {})
    linesOf(socket, (line) => {
      const { args, id, method, reader } = fromJson(line) as Call
      const answer =
        method === "unprocessedMessages"
          ? read(reader, args as Parameters<typeof read>[1])
          : (served as unknown as Operations)[method](...args)
      void Effect.runPromise(answer).then((result) => {
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
  return { port: (server.address() as AddressInfo).port, reads }
})

/** The storage that another process serves, for a runner of this name. */
export const layerRemote = (port: number, reader: string): Layer.Layer<MessageStorage.MessageStorage> =>
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
              socket.write(`${toJson({ reader, id, method, args } satisfies Call)}\n`)
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
