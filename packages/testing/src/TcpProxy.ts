/**
 * A TCP proxy for fault tests: a client connects to it instead of the server, and the test then cuts, stalls, delays or
 * drops what passes. It knows nothing of Redis except for the shape of its `url`.
 */
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import { createServer } from "node:net"
import { Connection, type Mode } from "./internal/connection.ts"
import { withRealClock } from "./internal/realClock.ts"

/** Where to forward to. */
export interface Options {
  /** The server: host (default `127.0.0.1`) and port, or a URL like `TestRedis`'s. A {@link RedisServer} can be passed as it is. */
  readonly target: string | { readonly host?: string | undefined; readonly port: number }
  /** The proxy's own port on 127.0.0.1. Default: a free one. */
  readonly port?: number | undefined
}

/**
 * What a client has to send to match: this text anywhere in its bytes (compared exactly; ioredis sends command names in
 * lower case), or anything that the function recognizes. The function gets the last 64 KiB that one connection has sent
 * since it was armed, each byte as one character.
 */
export type Match = string | ((sent: string) => boolean)

/**
 * A running proxy. Its settings apply to all connections, including later ones.
 *
 * Requests are the bytes from clients to the server, replies those from the server to clients, pushed messages included.
 * Each method changes only what it names; {@link TcpProxy.resume} and {@link TcpProxy.restore} undo the changes.
 */
export interface TcpProxy {
  /** Always `127.0.0.1`. */
  readonly host: string
  readonly port: number
  /** The target's URL with the proxy's host and port; `redis://127.0.0.1:<port>` if the target is no URL. */
  readonly url: string
  /** How many clients are connected. */
  readonly connections: Effect.Effect<number>
  /** Breaks every connection (clients see ECONNRESET) and stops listening (clients see ECONNREFUSED). */
  readonly cut: Effect.Effect<void>
  /** Listens again after {@link TcpProxy.cut}, on the same port. Fails if another process has taken it meanwhile. */
  readonly restore: Effect.Effect<void, TcpProxyError>
  /** Breaks every connection and accepts new ones at once: a blip. */
  readonly dropConnections: Effect.Effect<void>
  /** Accepts connections and keeps them open, but holds everything back in both directions, even the end of a connection. */
  readonly stall: Effect.Effect<void>
  /** Forwards requests and holds replies back: commands are run, but their replies do not come. */
  readonly stallReplies: Effect.Effect<void>
  /** Forwards requests and discards replies, including those held back. The end of a connection is still passed on. */
  readonly dropReplies: Effect.Effect<void>
  /**
   * {@link TcpProxy.stallReplies} from the moment a client sends what matches: those bytes are still forwarded, their reply is
   * held back. The effect inside completes at that moment. Once only; {@link TcpProxy.resume} disarms it, and then the
   * effect inside never completes.
   */
  readonly stallRepliesAfter: (match: Match) => Effect.Effect<Effect.Effect<void>>
  /**
   * {@link TcpProxy.dropReplies} from the moment a client sends what matches: those bytes are still forwarded, their reply is
   * discarded. The effect inside completes at that moment. Once only; {@link TcpProxy.resume} disarms it, and then the
   * effect inside never completes.
   */
  readonly dropRepliesAfter: (match: Match) => Effect.Effect<Effect.Effect<void>>
  /** Forwards in both directions again, beginning with what was held back. A {@link TcpProxy.delay} stays. */
  readonly resume: Effect.Effect<void>
  /** Delays everything by this much in each direction, so a round trip by twice as much. 0 ends it. Default: 0. */
  readonly delay: (each: Duration.Input) => Effect.Effect<void>
}

/** The proxy could not listen on its port, or the target is not valid. */
export class TcpProxyError extends Schema.TaggedError<TcpProxyError>("@effect-redis-lock/testing/TcpProxyError")(
  "TcpProxyError",
  { message: Schema.String }
) {}

const REMEMBERED = 64 * 1024

interface Trigger {
  readonly matches: (sent: string) => boolean
  readonly replies: Mode
  readonly sent: WeakMap<Connection, string>
  readonly happened: Deferred.Deferred<void>
}

const parseTarget = (target: Options["target"]) => {
  if (typeof target !== "string") {
    const { host = "127.0.0.1", port } = target
    return { host, port, url: new URL("redis://127.0.0.1") }
  }
  const url = new URL(target)
  if (url.hostname === "") throw new Error(`no host in ${target}`)
  return { host: url.hostname.replace(/^\[|\]$/g, ""), port: Number(url.port) || 6379, url }
}

/**
 * Starts a proxy on a free port of 127.0.0.1. When the scope closes it stops listening and breaks its connections.
 *
 * If the target cannot be reached, the client sees a connection that breaks at once.
 *
 * **Example**
 *
 * ```ts
 * import { RedisServer, TcpProxy } from "@effect-redis-lock/testing"
 * import { Effect } from "effect"
 * import { Redis } from "ioredis"
 *
 * const program = Effect.scoped(Effect.gen(function*() {
 *   const server = yield* RedisServer.start()
 *   const proxy = yield* TcpProxy.make({ target: server })
 *   const client = yield* Effect.acquireRelease(
 *     Effect.sync(() => new Redis(proxy.url, { commandTimeout: 200 })),
 *     (client) => Effect.sync(() => client.disconnect())
 *   )
 *   const sent = yield* proxy.stallRepliesAfter("greeting")
 *   const reply = client.set("greeting", "hello").catch((error) => error.message)
 *   yield* sent // the server has the command, its answer stays here
 *   console.log(yield* Effect.promise(() => reply)) // Command timed out
 *   yield* proxy.resume
 *   console.log(yield* Effect.promise(() => client.get("greeting"))) // hello
 * }))
 *
 * await Effect.runPromise(program)
 * ```
 */
export const make: (options: Options) => Effect.Effect<TcpProxy, TcpProxyError, Scope.Scope> = Effect.fnUntraced(
  function* (options: Options) {
    const { url, ...target } = yield* Effect.try({
      try: () => parseTarget(options.target),
      catch: (error) => new TcpProxyError({ message: `The target is not valid: ${String(error)}` })
    })

    const connections = new Set<Connection>()
    let requests: Mode = "flow"
    let replies: Mode = "flow"
    let delayMillis = 0
    let triggers: ReadonlyArray<Trigger> = []

    const onRequest = (connection: Connection, bytes: Buffer) => {
      for (const trigger of triggers) {
        const sent = ((trigger.sent.get(connection) ?? "") + bytes.toString("latin1")).slice(-REMEMBERED)
        trigger.sent.set(connection, sent)
        try {
          if (!trigger.matches(sent)) continue
          replies = trigger.replies
          Deferred.doneUnsafe(trigger.happened, Effect.void)
        } catch (error) {
          Deferred.doneUnsafe(trigger.happened, Effect.die(error))
        }
        triggers = triggers.filter((other) => other !== trigger)
      }
    }

    const rules = { requests: () => requests, replies: () => replies, delayMillis: () => delayMillis, onRequest }
    const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
      connections.add(new Connection(client, target, rules, (closed) => connections.delete(closed)))
    })

    const listen = (port: number) =>
      Effect.callback<void, TcpProxyError>((resume) => {
        const refused = (error: Error) => {
          server.off("listening", listening)
          resume(
            Effect.fail(
              new TcpProxyError({ message: `The proxy cannot listen on 127.0.0.1:${port}: ${error.message}` })
            )
          )
        }
        const listening = () => {
          server.off("error", refused)
          resume(Effect.void)
        }
        server.once("error", refused).once("listening", listening).listen(port, "127.0.0.1")
      })

    const breakAll = () => {
      for (const connection of connections) connection.destroy()
    }

    const close = Effect.callback<void>((resume) => {
      // the callback comes when the last connection is gone, at once with an ignored error when it does not listen
      server.close(() => resume(Effect.void))
      breakAll()
    })

    yield* Effect.acquireRelease(listen(options.port ?? 0), () => close)
    const address = server.address()
    const port = typeof address === "object" && address !== null ? address.port : 0
    url.host = `127.0.0.1:${port}`

    const deliver = (newRequests: Mode, newReplies: Mode) =>
      Effect.sync(() => {
        requests = newRequests
        replies = newReplies
        for (const connection of connections) connection.pump()
      })

    const after = (match: Match, mode: Mode) =>
      Effect.sync(() => {
        const happened = Deferred.makeUnsafe<void>()
        const text = typeof match === "string" ? Buffer.from(match).toString("latin1") : ""
        const matches = typeof match === "string" ? (sent: string) => sent.includes(text) : match
        triggers = [...triggers, { matches, replies: mode, sent: new WeakMap(), happened }]
        return Deferred.await(happened)
      })

    const lock = Semaphore.makeUnsafe(1)
    const proxy: TcpProxy = {
      host: "127.0.0.1",
      port,
      url: url.href,
      connections: Effect.sync(() => [...connections].filter((connection) => connection.hasClient).length),
      cut: lock.withPermit(close),
      restore: lock
        .withPermit(
          Effect.suspend(() =>
            server.listening
              ? Effect.void
              : // for a moment the port may serve someone's outgoing connection
                Effect.retry(listen(port), { schedule: Schedule.spaced(50), times: 20 })
          )
        )
        .pipe(withRealClock),
      dropConnections: Effect.sync(breakAll),
      stall: deliver("hold", "hold"),
      stallReplies: deliver("flow", "hold"),
      dropReplies: deliver("flow", "drop"),
      stallRepliesAfter: (match) => after(match, "hold"),
      dropRepliesAfter: (match) => after(match, "drop"),
      resume: Effect.suspend(() => {
        triggers = []
        return deliver("flow", "flow")
      }),
      delay: (each) =>
        Effect.sync(() => {
          delayMillis = Duration.toMillis(Duration.fromInputUnsafe(each))
        })
    }
    return proxy
  }
)
