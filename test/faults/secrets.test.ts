/**
 * Passwords are shown nowhere: in no error, in none of its causes, in no log line, in no span.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { RedisCluster, RedisSentinel, RedisServer } from "@effect-redis-lock/testing"
import { assert } from "@effect/vitest"
import {
  Cause,
  ConfigProvider,
  Effect,
  type Exit,
  Fiber,
  Layer,
  Logger,
  Redacted,
  References,
  type Scope,
  Tracer
} from "effect"
import { Lock, type RedisDriver, RedisLock } from "effect-redis-lock"
import { readFileSync } from "node:fs"
import { type AddressInfo, createServer } from "node:net"
import { inspect } from "node:util"
import { eventually } from "../kit/eventually.ts"
import { deployments, user } from "../kit/server/deployments.ts"
import { bare } from "../kit/server/bareRedis.ts"
import { testLive } from "../kit/test.ts"

/** Also what is percent-encoded in a URL. */
const SECRET = "s3cr3t/p@ss"
const WRONG = "wr0ng/p@ss"
/** What is percent-encoded in a URL is shown by neither half; the private key of the TLS client is a secret as well. */
const privateKey = readFileSync(new URL("../integration/tls/key.pem", import.meta.url), "utf8").split("\n")[1]!
const secrets = ["s3cr3t", "wr0ng", "s3ntinel", privateKey]

const encoded = (password: string) => encodeURIComponent(password)

const shown = (thing: unknown): string => {
  const options = { depth: Number.POSITIVE_INFINITY, showHidden: true, getters: true }
  const ways = [String, (it: unknown) => inspect(it, options), (it: unknown) => inspect(it), JSON.stringify]
  const error = thing as { readonly stack?: unknown; readonly cause?: unknown; readonly errors?: unknown }
  const parts = ways.map((way) => {
    try {
      return way(thing)
    } catch {
      return "" // what cannot be shown shows nothing
    }
  })
  if (typeof thing === "object" && thing !== null) {
    parts.push(String(error.stack))
    for (const inner of [error.cause, error.errors]) if (inner !== undefined) parts.push(shown(inner))
  }
  return parts.join("\n")
}

/** Everything that an application could see of what an effect does: its exit, what it logs, its spans. */
const everythingOf = <A, E>(self: Effect.Effect<A, E, Scope.Scope>) =>
  Effect.gen(function* () {
    const seen: Array<unknown> = []
    const logger = Logger.make(({ cause, fiber, message }) => {
      seen.push(message, cause, fiber.getRef(References.CurrentLogAnnotations))
    })
    const tracer = Tracer.make({
      span: (options) => {
        const span = new Tracer.NativeSpan(options)
        seen.push(span)
        return span
      }
    })
    const exit = yield* Effect.exit(Effect.scoped(self)).pipe(
      Effect.withSpan("test"),
      Effect.withTracer(tracer),
      Effect.provide(Logger.layer([logger]))
    )
    if (exit._tag === "Failure") {
      seen.push(exit.cause, Cause.pretty(exit.cause), Cause.squash(exit.cause))
      for (const reason of exit.cause.reasons) if (reason._tag === "Fail") seen.push(reason.error)
    }
    const text = seen.map((thing) => shown(thing)).join("\n")
    for (const secret of secrets) assert.notInclude(text, secret)
    return { exit, text }
  })

type Driver<E = unknown> = Layer.Layer<RedisDriver.RedisDriver, E>

const locksOver = (driver: Driver) => Layer.provide(RedisLock.layer(), driver)

const using = (locks: Layer.Layer<RedisLock.RedisLock, unknown>) =>
  Effect.flatMap(Layer.build(Layer.fresh(locks)), (context) =>
    Effect.provideContext(Lock.withLock(Effect.succeed("done"), "report"), context)
  )

const withPassword = (url: string, password: string) => url.replace("://", `://default:${encoded(password)}@`)

/** Its driver, with the right password or another, plain or redacted. */
interface Place {
  readonly driverFor: (password: string, redacted: boolean) => Driver
}

const protect = Effect.fnUntraced(function* (url: string) {
  const redis = yield* bare({ url })
  yield* Effect.promise(() => redis.call("ACL", "SETUSER", "default", "resetpass", `>${SECRET}`))
})

const hidden = (url: string, redacted: boolean) => (redacted ? Redacted.make(url) : url)

const places: ReadonlyArray<readonly [string, Effect.Effect<Place, unknown, Scope.Scope>]> = [
  [
    "one server",
    Effect.gen(function* () {
      const { url } = yield* RedisServer.start()
      yield* protect(url)
      return {
        driverFor: (password, redacted) => IoRedis.layer({ url: hidden(withPassword(url, password), redacted) })
      }
    })
  ],
  [
    "one server that speaks RESP2",
    Effect.gen(function* () {
      const { url } = yield* RedisServer.start()
      yield* protect(url)
      return {
        driverFor: (password, redacted) =>
          IoRedis.layer({ url: hidden(withPassword(url, password), redacted), ioredis: { protocol: 2 } })
      }
    })
  ],
  [
    "a master behind sentinels",
    Effect.gen(function* () {
      const site = yield* RedisSentinel.start()
      yield* protect(site.servers[0]!.url)
      return {
        driverFor: (password) =>
          IoRedis.layerSentinel({
            sentinels: site.sentinels.map(({ url }) => url),
            name: site.name,
            ioredis: { password }
          })
      }
    })
  ],
  [
    "sentinels",
    Effect.gen(function* () {
      const site = yield* RedisSentinel.start()
      yield* protect(site.sentinels[0]!.url)
      return {
        driverFor: (password, redacted) =>
          IoRedis.layerSentinel({
            sentinels: site.sentinels.map(({ url }) => hidden(withPassword(url, password), redacted)),
            name: site.name
          })
      }
    })
  ],
  [
    "a cluster",
    Effect.gen(function* () {
      const { urls } = yield* RedisCluster.start()
      for (const url of urls) yield* protect(url)
      return {
        driverFor: (password, redacted) =>
          IoRedis.layerCluster({ nodes: urls.map((url) => hidden(withPassword(url, password), redacted)) })
      }
    })
  ],
  ...deployments.map(
    ([name, deployment]) =>
      [
        `a URL with ${name}`,
        Effect.map(deployment, (urlAs) => ({
          driverFor: (password: string, redacted: boolean) =>
            IoRedis.layer({ url: hidden(urlAs(user, password), redacted) })
        }))
      ] as const
  )
]

const reasonOf = (exit: Exit.Exit<unknown, unknown>): unknown =>
  exit._tag === "Failure" ? (Cause.squash(exit.cause) as { readonly reason?: unknown }).reason : "Success"

for (const [what, place] of places) {
  testLive(`A password for ${what} is shown nowhere, whether it is right or wrong`, function* () {
    const { driverFor } = yield* place
    for (const redacted of [false, true]) {
      const right = yield* everythingOf(using(locksOver(driverFor(SECRET, redacted))))
      assert.strictEqual(reasonOf(right.exit), "Success", right.text)
      const wrong = yield* everythingOf(using(locksOver(driverFor(WRONG, redacted))))
      assert.strictEqual(reasonOf(wrong.exit), "NotAuthenticated", wrong.text)
      assert.include(wrong.text, "WRONGPASS")
    }
  })
}

testLive(
  "A password for members of a quorum is shown nowhere, not even in the warning about an absent member",
  function* () {
    const servers = yield* Effect.all([1, 2, 3].map(() => RedisServer.start()))
    for (const { url } of servers) yield* protect(url)
    const members = (...passwords: ReadonlyArray<string>) =>
      RedisLock.layerQuorum(
        servers.map(({ url }, i) => locksOver(IoRedis.layer({ url: Redacted.make(withPassword(url, passwords[i]!)) })))
      )
    const most = yield* everythingOf(using(members(SECRET, WRONG, SECRET)))
    assert.strictEqual(reasonOf(most.exit), "Success", most.text)
    assert.include(most.text, "One server of the quorum cannot be reached yet.")
    assert.include(most.text, "WRONGPASS")
    const few = yield* everythingOf(using(members(WRONG, WRONG, SECRET)))
    assert.strictEqual(reasonOf(few.exit), "NotAuthenticated", few.text)
    const url = Redacted.make(`http://u:${encoded(SECRET)}@h`)
    const mistaken = yield* everythingOf(
      using(
        RedisLock.layerQuorum(
          [url, ...servers.map((server) => server.url)].map((url) => locksOver(IoRedis.layer({ url })))
        )
      )
    )
    assert.include(mistaken.text, "InvalidLockOptions")
  }
)

testLive("A password for sentinels in the query of a URL is shown nowhere if it is wrong", function* () {
  const site = yield* RedisSentinel.start({ replicas: 0 })
  const [{ port, url }] = site.sentinels as [RedisServer.RedisServer]
  yield* protect(url)
  for (const redacted of [false, true]) {
    const sentinels = (password: string) =>
      hidden(`redis+sentinel://127.0.0.1:${port}/${site.name}?sentinelPassword=${encoded(password)}`, redacted)
    const right = yield* everythingOf(using(locksOver(IoRedis.layer({ url: sentinels(SECRET) }))))
    assert.strictEqual(reasonOf(right.exit), "Success", right.text)
    const wrong = yield* everythingOf(using(locksOver(IoRedis.layer({ url: sentinels(WRONG) }))))
    assert.notStrictEqual(reasonOf(wrong.exit), "Success", wrong.text)
  }
})

testLive("A password in one of several URLs is shown nowhere, whether it is wrong or the URL", function* () {
  const servers = yield* Effect.all([1, 2, 3].map(() => RedisServer.start()))
  for (const { url } of servers) yield* protect(url)
  const urls = (...passwords: ReadonlyArray<string>) => servers.map(({ url }, i) => withPassword(url, passwords[i]!))
  const most = yield* everythingOf(using(IoRedis.layerRedisLock({ urls: urls(SECRET, WRONG, SECRET) })))
  assert.strictEqual(reasonOf(most.exit), "Success", most.text)
  assert.include(most.text, "WRONGPASS")
  const few = yield* everythingOf(using(IoRedis.layerRedisLock({ urls: urls(WRONG, WRONG, SECRET) })))
  assert.strictEqual(reasonOf(few.exit), "NotAuthenticated", few.text)
  const [first] = urls(SECRET) as [string]
  for (const url of [
    first,
    `redis+cluster://${SECRET}@a,b`,
    `redis+cluster://u:${encoded(SECRET)}@a,u:${encoded(SECRET)}@b`,
    `redis+sentinel://u:${encoded(SECRET)}@a/${encoded(SECRET)}`,
    `redis+sentinel://a/mymaster?sentinelPassword=%zz${SECRET}`,
    `rediss+sentinel://a/mymaster?sentinelPasswort=${encoded(SECRET)}`,
    `rediss://u:${encoded(SECRET)}@a?ca=/${encoded(SECRET)}`,
    `rediss://u:12?${SECRET}@a`
  ]) {
    for (const layer of [
      IoRedis.layerRedisLock({ urls: [first, url] }),
      IoRedis.layerRedisLockConfig.pipe(
        Layer.provide(ConfigProvider.layer(ConfigProvider.fromEnv({ env: { REDIS_QUORUM: `${first} ${url}` } })))
      )
    ]) {
      assert.include((yield* everythingOf(using(layer))).text, "InvalidLockOptions")
    }
  }
})

testLive("A password from the environment is shown nowhere, not even if the URL is invalid", function* () {
  const before = process.env["REDIS_URL"]
  for (const url of [`http://u:${encoded(SECRET)}@h`, `redis://u:${SECRET}@h`, `u:${encoded(SECRET)}@h`]) {
    const { exit } = yield* everythingOf(
      Effect.suspend(() => {
        process.env["REDIS_URL"] = url
        return Layer.build(IoRedis.layerConfig())
      })
    ).pipe(Effect.ensuring(Effect.sync(() => void (process.env["REDIS_URL"] = before))))
    assert.strictEqual(
      Cause.squash((exit as Exit.Failure<unknown, unknown>).cause)!["_tag" as never],
      "InvalidLockOptions"
    )
  }
})

testLive(
  "A password that a server repeats in its error, as old ones do with a command that they do not know, is shown nowhere",
  function* () {
    for (const answer of [
      (sent: string) => `-ERR unknown command \`AUTH\`, with args beginning with: \`${sent.slice(-20)}\r\n`,
      (sent: string) => `-ERR you sent ${JSON.stringify(sent)}\r\n`,
      (sent: string) => `HTTP/1.1 400 ${JSON.stringify(sent)}\r\n\r\n`
    ]) {
      const port = yield* answering(answer)
      for (const protocol of [2, 3] as const) {
        const url = withPassword(`redis://127.0.0.1:${port}`, SECRET)
        const { exit, text } = yield* everythingOf(using(locksOver(IoRedis.layer({ url, ioredis: { protocol } }))))
        assert.strictEqual(reasonOf(exit), "Failed", text)
      }
    }
  }
)

testLive(
  "A password that is rotated while a client runs is shown nowhere, and the log says that it is refused",
  function* () {
    const { url } = yield* RedisServer.start()
    yield* protect(url)
    const { text } = yield* everythingOf(
      Effect.gen(function* () {
        const context = yield* Layer.build(locksOver(IoRedis.layer({ url: Redacted.make(withPassword(url, SECRET)) })))
        const use = Effect.provideContext(Lock.withLock(Effect.succeed("done"), "report"), context)
        yield* use
        const redis = yield* bare({ url: withPassword(url, SECRET) })
        yield* Effect.promise(() => redis.call("ACL", "SETUSER", "default", "resetpass", ">other"))
        yield* Effect.promise(() => redis.call("CLIENT", "KILL", "SKIPME", "yes", "USER", "default"))
        const fiber = yield* Effect.forkChild(
          eventually(
            "the password is refused",
            () => Effect.runPromise(Effect.result(use)),
            (result) =>
              result._tag === "Failure" && (result.failure as { reason?: unknown }).reason === "NotAuthenticated"
          )
        )
        const result = yield* Fiber.join(fiber)
        return yield* Effect.fail(result)
      })
    )
    assert.include(text, "WRONGPASS")
    assert.include(text, "Could not connect to Redis")
  }
)

/** Answers whatever comes, once on each connection. */
const answering = (answer: (sent: string) => string): Effect.Effect<number, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.callback<ReturnType<typeof createServer>>((resume) => {
      const server = createServer((socket) => {
        socket.on("error", () => {}).once("data", (data) => socket.end(answer(String(data))))
      })
      server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
    }),
    (server) => Effect.sync(() => server.close())
  ).pipe(Effect.map((server) => (server.address() as AddressInfo).port))

// by what is missing from a well-known sentence, the password would be known as well
testLive("The refusal of a wrong password is told whole, even if its words contain that password", function* () {
  const { url } = yield* RedisServer.start()
  yield* protect(url)
  for (const password of ["password", "pass", "user", "a"]) {
    const { text } = yield* everythingOf(using(locksOver(IoRedis.layer({ url: withPassword(url, password) }))))
    assert.include(text, "WRONGPASS invalid username-password pair or user is disabled")
    assert.notInclude(text, "<redacted>")
  }
})
