/**
 * One URL for every deployment.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { RedisServer } from "@effect-redis-lock/testing"
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Layer, Option, Redacted, Result, type Scope } from "effect"
import { type InvalidLockOptions, Lock, type RedisDriver, RedisLock } from "effect-redis-lock"
import { clientOf } from "../kit/clients.ts"
import { enter } from "../kit/sections.ts"
import { bare } from "../kit/server/bareRedis.ts"
import { lockKey } from "../kit/server/conditions.ts"
import { deployments, password, user } from "../kit/server/deployments.ts"
import { expectWarning } from "../run/logs.ts"
import { testLive, test } from "../kit/test.ts"

const environment = (variables: Record<string, string>) =>
  Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromEnv({ env: variables }))

describe("a URL", () => {
  for (const [what, deployment] of deployments) {
    testLive(
      `A URL with ${what} leads every way of giving it to the same locks, and a wrong password is refused`,
      function* () {
        const urlAs = yield* deployment
        const url = urlAs(user, password)
        const ways = {
          layer: Layer.provide(RedisLock.layer(), IoRedis.layer({ url: Redacted.make(url) })),
          layerConfig: Layer.provide(RedisLock.layer(), IoRedis.layerConfig()),
          layerRedisLock: IoRedis.layerRedisLock({ urls: [url] }),
          layerRedisLockConfig: IoRedis.layerRedisLockConfig
        }
        const clients = yield* Effect.forEach(Object.values(ways), (way) =>
          environment({ REDIS_URL: url })(clientOf(way))
        )
        for (const mine of clients) {
          yield* Effect.scoped(
            Effect.gen(function* () {
              const section = yield* enter(mine, "report")
              for (const other of clients) {
                if (other === mine) continue
                assert.isTrue(Option.isNone(yield* other.run(Effect.scoped(Lock.tryScoped("report")))))
              }
              yield* section.finish
            })
          )
        }
        const error = yield* Effect.flip(Effect.scoped(Layer.build(IoRedis.layer({ url: urlAs(user, "wr0ng") }))))
        assert.deepInclude(error, { _tag: "RedisDriverError", reason: "NotAuthenticated" })
        assert.match((error as Error).message, /(:\d+|sock).*Check user and password$/s)
      }
    )
  }

  testLive("Several URLs are a quorum, which works while a minority of its servers is down", function* () {
    const servers = yield* Effect.all([1, 2, 3].map(() => RedisServer.start()))
    const urls = servers.map(({ url }) => url)
    const mine = yield* clientOf(IoRedis.layerRedisLock({ urls }))
    const theirs = yield* environment({ REDIS_QUORUM: `  ${urls.join(" \n")} `, REDIS_URL: "redis://127.0.0.1:1" })(
      clientOf(IoRedis.layerRedisLockConfig)
    )
    const section = yield* enter(mine, "report")
    for (const server of servers) {
      const redis = yield* bare(server)
      yield* lockKey(redis, "report", "there")
    }
    assert.isTrue(Option.isNone(yield* theirs.run(Effect.scoped(Lock.tryScoped("report")))))
    yield* section.finish
    expectWarning(/^Lost the connection/)
    expectWarning(/^One server of the quorum cannot be reached yet/)
    yield* servers[1]!.kill
    assert.strictEqual(yield* mine.run(Lock.withLock(Effect.succeed("done"), "report")), "done")
    const late = yield* clientOf(IoRedis.layerRedisLock({ urls }))
    assert.strictEqual(yield* late.run(Lock.withLock(Effect.succeed("done"), "report")), "done")
  })
})

/** The error with which building a layer fails. */
const refusal = <A, E>(layer: Layer.Layer<A, E>) => Effect.flip(Effect.scoped(Layer.build(layer)))

describe("URLs of a quorum", () => {
  it.effect.each([
    [[], "urls", "empty"],
    [undefined as unknown as ReadonlyArray<string>, "urls", "not an array"],
    [["redis://h:x"], "url", "port"],
    [["redis://a", "redis+cluster://b,c:0"], "urls[1]", "the port of host 2"],
    [["redis://a", "redis://b", "redis://A:6379/1"], "urls[2]", "the same server as urls[0]"],
    [["redis+cluster://a,b", "redis+cluster://c,b"], "urls[1]", "the same server as urls[0]"],
    [["redis+sentinel://s,t/a", "redis+sentinel://t/a"], "urls[1]", "the same server as urls[0]"],
    [["/run/a.sock", "unix:///run/a.sock"], "urls[1]", "the same server as urls[0]"],
    [
      ["redis://127.0.0.1:1", "rediss://b?ca=/nowhere/ca.pem"],
      "urls[1]",
      "the file that ca names cannot be read (ENOENT)"
    ]
  ] as const)("URLs of a quorum are checked before it connects to any: %j", ([urls, option, problem]) =>
    Effect.gen(function* () {
      const error = (yield* refusal(IoRedis.layerRedisLock({ urls }))) as InvalidLockOptions
      assert.deepInclude(error, { _tag: "InvalidLockOptions", option })
      assert.include(error.message, problem)
    })
  )

  test("URLs of two masters that the same sentinels watch are two servers", function* () {
    const urls = ["redis+sentinel://127.0.0.1:1/a", "redis+sentinel://127.0.0.1:1/b"]
    assert.deepInclude(yield* refusal(IoRedis.layerRedisLock({ urls })), { reason: "ConnectionRefused" })
  })

  test("A driver alone refuses REDIS_QUORUM, unless REDIS_URL says where it leads", function* () {
    const quorum = { REDIS_QUORUM: "redis://127.0.0.1:1 redis://127.0.0.1:2" }
    const error = yield* environment(quorum)(refusal(IoRedis.layerConfig()))
    assert.deepInclude(error, { _tag: "InvalidLockOptions", option: "REDIS_QUORUM" })
    const other = yield* environment({ ...quorum, REDIS_URL: "redis://127.0.0.1:1" })(refusal(IoRedis.layerConfig()))
    assert.deepInclude(other, { _tag: "RedisDriverError", reason: "ConnectionRefused" })
  })
})

describe("no URL", () => {
  testLive(
    "Where REDIS_URL is not set and no Redis is on localhost, the error says why it was looked for there",
    function* () {
      const ways = [Layer.build(IoRedis.layerConfig()), Layer.build(IoRedis.layerRedisLockConfig)] as const
      for (const way of ways) {
        const built = yield* environment({})(Effect.result(Effect.scoped<unknown, unknown, Scope.Scope>(way)))
        if (Result.isSuccess(built)) return console.log("Not tried, as there is a Redis on localhost:6379")
        const error = built.failure as RedisDriver.RedisDriverError
        assert.strictEqual(error.reason, "ConnectionRefused")
        assert.match(
          error.message,
          /^ConnectionRefused: localhost:6379: .*ECONNREFUSED.*; REDIS_URL is not set, or empty\. Check/
        )
      }
    }
  )
})

describe("files that a URL names", () => {
  const tls = new URL("tls/", import.meta.url).pathname

  const cases: ReadonlyArray<readonly [string, string]> = [
    ["rediss://127.0.0.1:1?ca=/nowhere", "the file that ca names cannot be read (ENOENT)"],
    [`rediss://127.0.0.1:1?ca=${tls}`, "the file that ca names cannot be read (EISDIR)"],
    [`rediss+cluster://127.0.0.1:1?ca=${tls}key.pem`, "the file that ca names has no certificate"],
    [`rediss+sentinel://127.0.0.1:1/m?cert=${tls}key.pem&key=${tls}key.pem`, "cert and key name"],
    [`rediss://127.0.0.1:1?cert=${tls}certificate.pem&key=${tls}certificate.pem`, "cert and key name"]
  ]
  it.effect.each(cases)("Files that a URL names are checked before it connects: %s", ([url, problem]) =>
    Effect.gen(function* () {
      const error = (yield* refusal(IoRedis.layer({ url }))) as InvalidLockOptions
      assert.deepInclude(error, { _tag: "InvalidLockOptions", option: "url" })
      assert.include(error.message, problem)
    })
  )
})
