/**
 * Servers that turn a connection away, or that are no Redis: what they say is what the error says.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { RedisCluster, RedisSentinel, RedisServer, TcpProxy } from "@effect-redis-lock/testing"
import { assert, describe, it, vi } from "@effect/vitest"
import { Effect, Exit, Fiber, Latch, Layer, Logger, type Scope } from "effect"
import { Lock, RedisLock } from "effect-redis-lock"
import { type AddressInfo, createServer, type Server, type Socket } from "node:net"
import { createServer as createHttpServer } from "node:http"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { networkInterfaces, tmpdir } from "node:os"
import { join } from "node:path"
import { createServer as createTlsServer } from "node:tls"
import { pathOfThisRun } from "../kit/commandPath.ts"
import { client, clientOf, locksOver } from "../kit/clients.ts"
import { eventually, soon } from "../kit/eventually.ts"
import { refusal, storeError } from "../kit/exits.ts"
import { bare } from "../kit/server/bareRedis.ts"
import { onServer } from "../kit/server/onServer.ts"
import { testLive } from "../kit/test.ts"

const done = Lock.withLock(Effect.succeed("done"), "report")

const listening = (make: () => Server): Effect.Effect<number, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.callback<Server>((resume) => {
      const server = make()
      server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
    }),
    (server) => Effect.sync(() => server.close())
  ).pipe(Effect.map((server) => (server.address() as AddressInfo).port))

const overTls = () =>
  createTlsServer({
    key: readFileSync(new URL("../integration/tls/key.pem", import.meta.url)),
    cert: readFileSync(new URL("../integration/tls/certificate.pem", import.meta.url))
  }).on("tlsClientError", () => {})

/** Keeps its connections until the scope closes. */
const accepting = (onConnection: (socket: Socket) => void) =>
  Effect.gen(function* () {
    const sockets = new Set<Socket>()
    const port = yield* listening(() =>
      createServer((socket) => {
        sockets.add(socket.on("error", () => {}))
        onConnection(socket)
      })
    )
    yield* Effect.addFinalizer(() => Effect.sync(() => sockets.forEach((socket) => socket.destroy())))
    return { port, sockets }
  })

/** What is printed as an error until the test ends. */
const silentConsole = Effect.acquireRelease(
  Effect.sync(() => vi.spyOn(console, "error").mockImplementation(() => {})),
  (spy) => Effect.sync(() => spy.mockRestore())
)

/** What a local server can be reached by besides 127.0.0.1. */
const otherAddress = Object.values(networkInterfaces())
  .flatMap((addresses) => addresses ?? [])
  .find(({ family, internal }) => family === "IPv4" && !internal)?.address

describe("a server that turns a connection away", () => {
  testLive(
    "The error of a server with too many clients has the server's own words and is transient, and the lock is acquired when there is room",
    function* () {
      const { redis, server } = yield* onServer()
      yield* Effect.promise(() => redis.config("SET", "maxclients", "1"))
      for (const ioredis of [{}, { protocol: 2 as const }, { enableReadyCheck: false }]) {
        // at once or only after it has read something: both happen
        for (let i = 0; i < 10; i++) {
          const error = yield* refusal(IoRedis.layer({ url: server.url, ioredis }))
          assert.strictEqual(error.reason, "ConnectionRefused")
          assert.include(error.message, "ERR max number of clients reached")
        }
      }
      yield* Effect.promise(() => redis.config("SET", "maxclients", "100"))
      const mine = yield* client(server)
      yield* Effect.promise(() => redis.config("SET", "maxclients", "1"))
      yield* Effect.promise(() => redis.call("CLIENT", "KILL", "SKIPME", "yes", "USER", "default"))
      const error = yield* eventually(
        "a command is told why there is no connection",
        // who waits is told nothing: it may pass
        async () => storeError(await Effect.runPromise(Effect.exit(mine.run(Lock.isLocked("report"))))),
        ({ message }) => message.includes("ERR max number of clients reached")
      )
      assert.strictEqual(error.reason, "NotConnected")
      assert.isTrue(error.isTransient)
      yield* Effect.promise(() => redis.config("SET", "maxclients", "100"))
      yield* eventually("the lock is taken", () => Effect.runPromise(Effect.exit(mine.run(done))), Exit.isSuccess)
    }
  )

  testLive("The error of a cluster with too many clients has the server's own words, too", function* () {
    const { urls } = yield* RedisCluster.start()
    for (const url of urls) {
      const redis = yield* bare({ url })
      yield* Effect.promise(() => redis.config("SET", "maxclients", "1"))
    }
    const error = yield* refusal(IoRedis.layerCluster({ nodes: urls }))
    assert.strictEqual(error.reason, "ConnectionRefused")
    assert.include(error.message, "ERR max number of clients")
  })

  it.live.skipIf(otherAddress === undefined)(
    "The error of a server in protected mode says so, and is not transient",
    () =>
      Effect.gen(function* () {
        const { port } = yield* RedisServer.start({ args: ["--bind", "0.0.0.0", "--protected-mode", "yes"] })
        const error = yield* refusal(IoRedis.layer({ url: `redis://${otherAddress}:${port}` }))
        assert.strictEqual(error.reason, "NotAuthenticated")
        // Redis, or Valkey
        assert.match(error.message, /DENIED (Redis is running|Running) in protected mode/)
      })
  )

  testLive("The error of a server that belongs to a cluster names layerCluster, and is not transient", function* () {
    const cluster = yield* RedisCluster.start()
    const mine = yield* clientOf(locksOver(IoRedis.layer({ url: cluster.urls[0] })))
    const names = ["a", "b", "c", "d", "e", "f"]
    const exits = yield* Effect.forEach(names, (name) => Effect.exit(mine.run(Lock.withLock(Effect.void, name))))
    const failed = exits.filter(Exit.isFailure)
    assert.isNotEmpty(failed)
    for (const exit of failed) {
      const error = storeError(exit)
      assert.strictEqual(error.reason, "ClusterMismatch")
      assert.isFalse(error.isTransient)
      assert.include(error.message, "Connect with IoRedis.layerCluster")
      assert.include(error.message, "MOVED")
    }
  })
})

describe("a server that is not Redis", () => {
  testLive(
    "The error of sentinels with an untrusted certificate says so, and names what is wrong with each of them",
    function* () {
      const port = yield* listening(overTls)
      for (const sentinels of [`127.0.0.1:${port}`, `127.0.0.1:${port},127.0.0.1:1`]) {
        const { message } = yield* refusal(IoRedis.layer({ url: `rediss+sentinel://:s3cret@${sentinels}/mymaster` }))
        assert.match(message, /no sentinel can be reached: .*self.signed certificate.*\?ca=\/PATH/)
        assert.strictEqual(message.includes("ECONNREFUSED 127.0.0.1:1"), sentinels.endsWith(":1"))
        assert.notInclude(message, "s3cret")
      }
    }
  )

  testLive(
    "Locks work, also for waiters, on a server that does not know INFO, and one warning says what is unchecked",
    function* () {
      const server = yield* RedisServer.start({ args: ["--rename-command", "INFO", ""] })
      const warnings: Array<string> = []
      const logger = Logger.make(({ message }) => void warnings.push(String(message)))
      const locks = yield* Layer.build(
        Layer.fresh(Layer.provide(RedisLock.layer(), IoRedis.layer({ url: server.url })))
      ).pipe(Effect.provide(Logger.layer([logger])))
      const inside = yield* Latch.make()
      const leave = yield* Latch.make()
      const section = Lock.withLock(Effect.andThen(inside.open, leave.await), "ledger").pipe(
        Effect.provideContext(locks)
      )
      const holder = yield* Effect.forkScoped(section)
      yield* inside.await
      const waiter = yield* Effect.forkScoped(
        Lock.withLock(Effect.succeed("in"), "ledger").pipe(Lock.withOwner, Effect.provideContext(locks))
      )
      yield* leave.open
      yield* Fiber.join(holder)
      assert.strictEqual(yield* Fiber.join(waiter), "in")
      assert.strictEqual(warnings.filter((text) => text.includes("does not know INFO")).length, 1, warnings.join("\n"))
    }
  )

  testLive("The error of a server that speaks HTTP has its first line, and is not transient", function* () {
    const port = yield* listening(() => createHttpServer((_, response) => response.end("hello")))
    for (const protocol of [2, 3] as const) {
      const error = yield* refusal(IoRedis.layer({ url: `redis://127.0.0.1:${port}`, ioredis: { protocol } }))
      assert.strictEqual(error.reason, "Failed")
      assert.include(error.message, `the server is not Redis: it answered "HTTP/1.1 400 Bad Request"`)
    }
  })

  testLive("The error of a mail server has its greeting", function* () {
    const { port } = yield* accepting((socket) => socket.write("220 mail.example ESMTP Postfix\r\n"))
    const error = yield* refusal(IoRedis.layer({ url: `redis://127.0.0.1:${port}` }))
    assert.strictEqual(error.reason, "Failed")
    assert.include(error.message, `it answered "220 mail.example ESMTP Postfix"`)
  })

  for (const deployment of ["", "+cluster", "+sentinel"]) {
    testLive(`The error of redis${deployment}:// says that a port may have TLS`, function* () {
      const port = yield* listening(overTls)
      const { message } = yield* refusal(IoRedis.layer({ url: `redis${deployment}://127.0.0.1:${port}/0` }))
      assert.include(message, "TLS is off (redis://): if this port has it, use rediss://")
    })
  }

  testLive("The error of a socket in the file system says nothing of TLS", function* () {
    const folder = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "socket-"))),
      (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
    )
    const path = join(folder, "redis.sock")
    const server = createServer((socket) => socket.end())
    yield* Effect.acquireRelease(
      Effect.promise(() => new Promise<void>((resolve) => server.listen(path, resolve))),
      () => Effect.sync(() => server.close())
    )
    const { message } = yield* refusal(IoRedis.layer({ url: `unix://${path}` }))
    assert.include(message, path)
    assert.notInclude(message, "TLS")
  })

  for (const deployment of ["", "+cluster", "+sentinel"]) {
    testLive(`The error of rediss${deployment}:// says that a port may have no TLS`, function* () {
      // Redis reads the beginning of TLS as the beginning of a command, of which it waits for the rest
      const { port } = yield* accepting(() => {})
      const url = `rediss${deployment}://127.0.0.1:${port}/0`
      const { message } = yield* refusal(IoRedis.layer({ url, connectTimeout: "300 millis" }))
      assert.include(message, "TLS is on (rediss://): if this port has none, use redis://")
      assert.notInclude((yield* refusal(IoRedis.layer({ url: "rediss://127.0.0.1:1" }))).message, "TLS is on")
    })
  }

  testLive("The error of a server with an untrusted certificate says how to trust it", function* () {
    const port = yield* listening(overTls)
    const { message } = yield* refusal(IoRedis.layer({ url: `rediss://127.0.0.1:${port}` }))
    assert.match(message, /self.signed certificate\. Name the certificate of its authority: \?ca=\/PATH/)
  })

  testLive("The error of a server that hangs up silently is transient", function* () {
    const { port } = yield* accepting((socket) => socket.end())
    const error = yield* refusal(IoRedis.layer({ url: `redis://127.0.0.1:${port}` }))
    assert.strictEqual(error.reason, "ConnectionLost")
  })
})

describe("a server that hangs up in the middle of the handshake", () => {
  // on the plain path ioredis does not send it
  it.live.skipIf(pathOfThisRun === "plain")(
    "The error of an old server that ends before it has accepted a connection is transient, although it does not know CLIENT SETINFO",
    () =>
      Effect.gen(function* () {
        for (const answer of [
          "unknown subcommand 'SETINFO'. Try CLIENT HELP.",
          "Unknown subcommand or wrong number of arguments for 'SETINFO'. Try CLIENT HELP"
        ]) {
          const { port } = yield* accepting((socket) => socket.once("data", () => socket.end(`-ERR ${answer}\r\n`)))
          const url = `redis://127.0.0.1:${port}`
          const error = yield* refusal(IoRedis.layer({ url, label: "", ioredis: { protocol: 2 } }))
          assert.strictEqual(error.reason, "ConnectionLost", error.message)
        }
      }).pipe(Effect.scoped)
  )
})

describe("a layer that is closed while a server hangs in the middle of the handshake", () => {
  const layers = {
    "one server": (url: string) => IoRedis.layer({ url, connectTimeout: "1 minute" }),
    Sentinel: (url: string) => IoRedis.layerSentinel({ sentinels: [url], connectTimeout: "1 minute" }),
    Cluster: (url: string) => IoRedis.layerCluster({ nodes: [url], connectTimeout: "1 minute" })
  }

  for (const [what, layerOf] of Object.entries(layers)) {
    testLive(`A layer that is closed while a server hangs in the handshake prints nothing: ${what}`, function* () {
      const printed = yield* silentConsole
      for (const end of [
        (socket: Socket) => socket.destroy(),
        (socket: Socket) => socket.resetAndDestroy(),
        (socket: Socket) => socket.end("-ERR too late\r\n"),
        (socket: Socket) => socket.end("nonsense\r\n")
      ]) {
        const { port, sockets } = yield* accepting(() => {})
        const building = yield* Effect.forkChild(Effect.scoped(Layer.build(layerOf(`redis://127.0.0.1:${port}`))), {
          startImmediately: true
        })
        const handshakes = () => [...sockets].filter((socket) => socket.bytesRead > 0)
        for (const socket of sockets) socket.resume()
        yield* eventually(
          "the handshake has begun",
          () => {
            for (const socket of sockets) socket.resume()
            return handshakes().length
          },
          (count) => count > 0
        )
        building.interruptUnsafe()
        for (const socket of sockets) end(socket)
        yield* eventually(
          "all connections are closed",
          () => [...sockets].filter((socket) => !socket.destroyed).length,
          (open) => open === 0
        )
      }
      // time to print, which it must not
      yield* Effect.sleep(100)
      assert.deepStrictEqual(printed.mock.calls, [])
    })
  }

  for (const protocol of [2, 3] as const) {
    testLive(`A layer that is closed before a new connection is refused prints nothing: RESP${protocol}`, function* () {
      const printed = yield* silentConsole
      const server = yield* RedisServer.start()
      const redis = yield* bare(server)
      const password = (text: string) => Effect.promise(() => redis.acl("SETUSER", "locks", "resetpass", `>${text}`))
      yield* Effect.promise(() => redis.acl("SETUSER", "locks", "on", ">old", "~*", "&*", "+@all"))
      const proxy = yield* TcpProxy.make({ target: server })
      yield* Effect.gen(function* () {
        const url = proxy.url.replace("://", "://locks:old@")
        yield* Layer.build(IoRedis.layer({ url, ioredis: { protocol, retryStrategy: () => 10 } }))
        yield* password("new")
        const sent = yield* proxy.stallRepliesAfter((sent) => /hello|auth/i.test(sent))
        yield* proxy.dropConnections
        yield* soon("the handshake is sent", sent)
      }).pipe(Effect.scoped)
      yield* proxy.resume
      yield* eventually(
        "the connection is closed",
        () => Effect.runPromise(proxy.connections),
        (count) => count === 0
      )
      // time to print, which it must not
      yield* Effect.sleep(50)
      assert.deepStrictEqual(printed.mock.calls, [])
    })
  }

  testLive(
    "A layer that is closed while its connection for subscriptions is in the handshake prints nothing",
    function* () {
      const printed = yield* silentConsole
      const server = yield* RedisServer.start()
      const redis = yield* bare(server)
      yield* Effect.promise(() => redis.hset("report", "other", "1"))
      yield* Effect.gen(function* () {
        const locks = yield* Layer.build(Layer.provide(RedisLock.layer(), IoRedis.layer({ url: server.url })))
        yield* Effect.forkScoped(Effect.provideContext(Lock.withLock(Effect.void, "report"), locks), {
          startImmediately: true
        })
        yield* eventually(
          "it has sent a command",
          () => redis.info("commandstats"),
          (stats) => stats.includes("cmdstat_evalsha")
        )
        yield* server.pause
        // time for the handshake to begin
        yield* Effect.sleep(50)
      }).pipe(Effect.scoped, Effect.timeoutOption("5 seconds"))
      yield* server.kill
      // time to print, which it must not
      yield* Effect.sleep(100)
      assert.deepStrictEqual(printed.mock.calls, [])
    }
  )
})

describe("sentinels that end", () => {
  // on the plain path nobody listens for failovers
  it.live.skipIf(pathOfThisRun === "plain")("Sentinels that end are no reason to print anything", () =>
    Effect.gen(function* () {
      const printed = yield* silentConsole
      const site = yield* RedisSentinel.start()
      const sentinels = site.sentinels.map(({ url }) => url)
      const mine = yield* clientOf(
        locksOver(
          IoRedis.layerSentinel({ sentinels, name: site.name, ioredis: { sentinelReconnectStrategy: () => 20 } })
        )
      )
      assert.strictEqual(yield* mine.run(done), "done")
      const redis = yield* bare(site.sentinels[0]!)
      yield* eventually(
        "the driver listens for failovers",
        async () => String(await redis.client("LIST")),
        (clients) => / sub=1 /.test(clients)
      )
      redis.disconnect()
      yield* site.sentinels[0]!.kill
      // time to print, which it must not
      yield* Effect.sleep(200)
      assert.strictEqual(yield* mine.run(done), "done")
      assert.deepStrictEqual(printed.mock.calls, [])
    }).pipe(Effect.scoped)
  )
})
