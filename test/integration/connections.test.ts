/**
 * The ways to a server, and replies that come in any pieces.
 */
import { sectionUntilTold } from "../kit/sections.ts"
import { IoRedis } from "@effect-redis-lock/ioredis"
import { RedisSentinel, RedisServer } from "@effect-redis-lock/testing"
import { assert, describe } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Layer, Option, Scope, Stream } from "effect"
import { Lock, RedisDriver, RedisLock } from "effect-redis-lock"
import { AbstractConnector, Redis } from "ioredis"
import { randomInt } from "node:crypto"
import { readFile } from "node:fs/promises"
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net"
import { tmpdir } from "node:os"
import { createServer as createTlsServer } from "node:tls"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { until } from "../kit/eventually.ts"
import { bare } from "../kit/server/bareRedis.ts"
import { onFreePort } from "../kit/server/onFreePort.ts"
import { redisUrl } from "../kit/server/redisUrl.ts"
import { testLive } from "../kit/test.ts"

const locksOver = (options: IoRedis.IoRedisOptions) =>
  Layer.build(
    Layer.fresh(
      Layer.provide(
        RedisLock.layer({ fallbackInterval: "1 minute", releaseTimeout: "1 minute" }),
        IoRedis.layer(options)
      )
    )
  )

/** One process holds a lock, another is woken by its release: both kinds of connection are in use. */
const handsOver = (options: IoRedis.IoRedisOptions) =>
  Effect.gen(function* () {
    const [ours, theirs] = yield* Effect.all([locksOver(options), locksOver(options)])
    const name = `connections:${crypto.randomUUID()}`
    const held = yield* sectionUntilTold((body) => Effect.provideContext(Lock.withLock(body, name), ours))
    const waiter = yield* Effect.succeed("woken").pipe(
      Lock.withLock(name, { waitTime: "20 seconds" }),
      Effect.provideContext(theirs),
      Effect.forkChild({ startImmediately: true })
    )
    // it asks a last time when it can hear
    yield* Effect.sleep("50 millis")
    yield* held.end
    assert.strictEqual(yield* Fiber.join(waiter), "woken")
  })

const certificate = fileURLToPath(new URL("tls/certificate.pem", import.meta.url))
const key = fileURLToPath(new URL("tls/key.pem", import.meta.url))

const listen = (server: Server): Effect.Effect<number> =>
  Effect.callback((resume) => {
    server.listen(0, "127.0.0.1", () => resume(Effect.succeed((server.address() as AddressInfo).port)))
  })

/** Where a server speaks TLS. */
const tlsServer = Effect.map(
  onFreePort((port) => {
    const files = ["--tls-cert-file", certificate, "--tls-key-file", key, "--tls-ca-cert-file", certificate]
    return ["--tls-port", String(port), ...files, "--tls-auth-clients", "no"]
  }),
  ({ port }) => port
)

/** Passes everything on; what the server says comes in pieces of a few bytes, now and then in one. */
const cutting = (target: URL): Effect.Effect<number, never, Scope.Scope> =>
  Effect.gen(function* () {
    const sockets = new Set<Socket>()
    const server = createServer((client) => {
      const upstream = connect(Number(target.port), target.hostname)
      for (const socket of [client, upstream]) {
        sockets.add(socket.setNoDelay(true))
        socket.on("error", () => {}).on("close", () => void [client, upstream].map((other) => other.destroy()))
      }
      client.pipe(upstream)
      const rest: Array<Buffer> = []
      const next = () => {
        const piece = rest.shift()
        if (piece === undefined) return
        client.write(piece)
        setImmediate(next)
      }
      upstream.on("data", (data) => {
        const isIdle = rest.length === 0
        // the first and the last bytes one by one or so; what is in between, where it is long, in larger pieces
        for (let at = 0; at < data.length;) {
          const isInside = at > 200 && at < data.length - 200
          const length = isInside ? randomInt(1, 40_000) : randomInt(1, 8)
          rest.push(data.subarray(at, at + length))
          at += length
        }
        if (isIdle) next()
      })
    })
    return yield* Effect.acquireRelease(listen(server), () =>
      Effect.sync(() => {
        server.close()
        for (const socket of sockets) socket.destroy()
      })
    )
  })

describe("a server is reached", () => {
  testLive("A server is reached over TLS if its certificate can be trusted", function* () {
    const port = yield* tlsServer
    const ca = yield* Effect.promise(() => readFile(certificate, "utf8"))
    yield* handsOver({ url: `rediss://127.0.0.1:${port}`, ioredis: { tls: { ca } } })
    yield* handsOver({ url: `rediss://localhost:${port}`, ioredis: { tls: { ca } } })
  })

  testLive("A server is not reached over TLS if its certificate cannot be trusted", function* () {
    const port = yield* tlsServer
    const error = yield* Effect.flip(locksOver({ url: `rediss://127.0.0.1:${port}`, connectTimeout: "5 seconds" }))
    assert.instanceOf(error, RedisDriver.RedisDriverError)
    assert.include(String((error as RedisDriver.RedisDriverError).cause), "self-signed certificate")
  })

  testLive("A server is reached by a socket of the file system", function* () {
    const path = join(tmpdir(), `effect-redis-lock-${crypto.randomUUID()}.sock`)
    yield* RedisServer.start({ args: ["--unixsocket", path] })
    yield* handsOver({ url: path })
    yield* handsOver({ ioredis: { path } })
  })

  testLive("A server is reached by a name with several addresses, of which one answers", function* () {
    const { port } = yield* RedisServer.start()
    yield* handsOver({ url: `redis://localhost:${port}` })
  })

  testLive("A server is reached through sentinels that are given as ioredis' own options", function* () {
    const redis = yield* RedisSentinel.start()
    const sentinels = redis.sentinels.map(({ host, port }) => ({ host, port }))
    yield* handsOver({ ioredis: { sentinels, name: redis.name } })
  })

  testLive("A server is reached through a connector of the application", function* () {
    const { hostname, port } = new URL(redisUrl)
    let connections = 0
    class Own extends AbstractConnector {
      constructor() {
        super(1000)
      }
      override connect() {
        connections++
        this.stream = connect(Number(port), hostname)
        return Promise.resolve(this.stream)
      }
    }
    yield* handsOver({ ioredis: { Connector: Own } })
    assert.isAtLeast(connections, 3)
  })
})

/** Notes what clients send first, and never answers. */
const firstBytes = Effect.gen(function* () {
  const received: Array<string> = []
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket.on("error", () => {}))
    socket.on("data", (data) => received.push(data.toString("latin1")))
  })
  const port = yield* listen(server)
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      server.close()
      for (const socket of sockets) socket.destroy()
    })
  )
  return { port, received }
})

describe("a URL with rediss://", () => {
  const options = { connectTimeout: "500 millis" } as const
  const ways = {
    layer: (url: string) => IoRedis.layer({ url, ...options }),
    layerCluster: (url: string) => IoRedis.layerCluster({ nodes: [url], ...options }),
    "layerCluster whose options leave TLS undefined": (url: string) =>
      IoRedis.layerCluster({ nodes: [url], ...options, ioredis: { redisOptions: { tls: undefined as never } } }),
    layerSentinel: (url: string) => IoRedis.layerSentinel({ sentinels: [url], ...options })
  }
  for (const [name, layerOf] of Object.entries(ways)) {
    for (const scheme of ["rediss", "REDISS"]) {
      testLive(
        `A URL with rediss:// means TLS for ${name}, and no password is sent in plain text: ${scheme}`,
        function* () {
          const { port, received } = yield* firstBytes
          const attempt = Effect.flip(Effect.scoped(Layer.build(layerOf(`${scheme}://u:s3cr3t@127.0.0.1:${port}`))))
          // on a busy machine the time to connect may be over before anything is sent
          yield* until(
            "something is sent",
            Effect.map(attempt, () => received.length > 0)
          )
          // the type of a TLS handshake record
          for (const bytes of received) assert.strictEqual(bytes.charCodeAt(0), 22, bytes)
        }
      )
    }
  }

  testLive("A URL with rediss:// means TLS to the sentinels, and ioredis' options decide for the master", function* () {
    const site = yield* RedisSentinel.start()
    const ca = yield* Effect.promise(() => readFile(certificate, "utf8"))
    const keyText = yield* Effect.promise(() => readFile(key, "utf8"))
    /** Speaks TLS, and passes on what it hears. */
    const terminating = (target: number) =>
      Effect.gen(function* () {
        const sockets = new Set<Socket>()
        const server = createTlsServer({ cert: ca, key: keyText }, (client) => {
          const upstream = connect(target, "127.0.0.1")
          for (const socket of [client, upstream]) sockets.add(socket.on("error", () => {}))
          client.pipe(upstream).pipe(client)
        }).on("tlsClientError", () => {})
        const port = yield* listen(server)
        yield* Effect.addFinalizer(() =>
          Effect.sync(() => {
            server.close()
            for (const socket of sockets) socket.destroy()
          })
        )
        return port
      })
    const sentinel = yield* terminating(site.sentinels[0]!.port)
    const master = yield* terminating(site.servers[0]!.port)
    const at = `${site.servers[0]!.host}:${site.servers[0]!.port}`
    const locks = yield* Layer.build(
      Layer.provide(
        RedisLock.layer(),
        IoRedis.layerSentinel({
          sentinels: [`rediss://127.0.0.1:${sentinel}`],
          name: site.name,
          ioredis: {
            sentinelTLS: { ca },
            tls: { ca },
            natMap: { [at]: { host: "127.0.0.1", port: master } }
          }
        })
      )
    )
    assert.strictEqual(yield* Effect.provideContext(Lock.withLock(Effect.succeed("done"), "report"), locks), "done")
  })
})

describe("a reply", () => {
  testLive("A driver whose layer has been closed opens no connection for those that still subscribe", function* () {
    const server = yield* RedisServer.start()
    const redis = yield* bare(server)
    const opened = Effect.promise(async () =>
      Number(/total_connections_received:(\d+)/.exec(await redis.info("stats"))![1])
    )
    const scope = yield* Scope.make()
    const driver = Context.get(
      yield* Layer.buildWithScope(IoRedis.layer({ url: server.url }), scope),
      RedisDriver.RedisDriver
    )
    yield* Scope.close(scope, Exit.void)
    const before = yield* opened
    yield* Effect.forkScoped(Stream.runDrain(driver.subscribe("channel")))
    // each look is a round trip, in which another connection would be there
    for (let i = 0; i < 20; i++) assert.strictEqual(yield* opened, before)
  })

  testLive(
    "A new connection for subscriptions asks for its number before it subscribes to anything, also where ioredis collects commands",
    function* () {
      const shared = yield* Effect.acquireRelease(
        Effect.sync(() => new Redis(redisUrl, { enableAutoPipelining: true })),
        (shared) => Effect.sync(() => shared.disconnect())
      )
      const built = yield* Layer.build(Layer.fresh(IoRedis.fromClient(shared)))
      const { invalidations, subscribe } = Context.get(built, RedisDriver.RedisDriver)
      const fork = Effect.runForkWith(yield* Effect.context<never>())
      const duplicate = shared.duplicate.bind(shared)
      shared.duplicate = (override) =>
        // in the same turn, but before the driver learns that it is ready
        duplicate(override).prependOnceListener("ready", () => {
          waiting = fork(Stream.runDrain(subscribe("any")))
        })
      let waiting: Fiber.Fiber<unknown, unknown> | undefined
      yield* Effect.addFinalizer(() => (waiting === undefined ? Effect.void : Fiber.interrupt(waiting)))
      assert.deepStrictEqual(yield* Stream.runHead(invalidations!), Option.some({ _tag: "Subscribed" }))
      assert.isDefined(waiting)
    }
  )

  testLive("A reply may arrive in pieces, be longer than one read, and overlap with others", function* () {
    const url = `redis://127.0.0.1:${yield* cutting(new URL(redisUrl))}`
    const stem = `pieces:${crypto.randomUUID()}:`.padEnd(150, "-")
    const commandTimeout = "1 minute"
    const direct = yield* locksOver({ url: redisUrl, commandTimeout })
    const cut = yield* Effect.all([1, 2, 3].map(() => locksOver({ url, commandTimeout })))
    const names = Array.from({ length: 1000 }, (_, i) => `${stem}${i}`)
    yield* Effect.gen(function* () {
      yield* Effect.forEach(names, (name) => Effect.provideContext(Lock.scoped(name), direct), {
        concurrency: "unbounded"
      })
      const listings = Effect.all(
        cut.map((context) => Lock.list(`${stem}*`).pipe(Stream.runCollect, Effect.provideContext(context))),
        { concurrency: "unbounded" }
      )
      // short replies on other connections, between the pieces of the long ones
      const pairs = Effect.forEach(
        Array.from({ length: 200 }, (_, i) => i),
        (i) =>
          Effect.provideContext(
            Lock.withLock(
              Effect.map(Lock.currentHolding(`${stem}pair:${i}`), ({ token }) => token),
              `${stem}pair:${i}`
            ),
            cut[i % 3]!
          ),
        { concurrency: 20 }
      )
      const [all, tokens] = yield* Effect.all([listings, pairs], { concurrency: "unbounded" })
      for (const states of all) {
        const found = new Set([...states].map((state) => state.name))
        for (const name of names) assert.isTrue(found.has(name), name)
      }
      for (const token of tokens) assert.isAbove(Number(token), 1e15)
    }).pipe(Effect.scoped)
  })
})
