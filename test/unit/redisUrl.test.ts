import { IoRedis, RedisUrl } from "@effect-redis-lock/ioredis"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted, Result } from "effect"
import { InvalidLockOptions } from "effect-redis-lock"
import { inspect } from "node:util"
import { test } from "../kit/test.ts"

const read = (url: string) => {
  const { password, ...parts } = Result.getOrThrow(RedisUrl.parse(url))
  return { ...parts, password: password && Redacted.value(password) }
}

const nothing = { tls: false, username: undefined, password: undefined, database: undefined }
const host = (host: string, port?: number) => ({ _tag: "Host", host, port })
const socket = (path: string) => ({ _tag: "Socket", path })
const cluster = (...nodes: ReadonlyArray<RedisUrl.HostAndPort>) => ({ _tag: "Cluster", nodes })
const sentinel = (name: string, ...hosts: ReadonlyArray<string>) => ({
  _tag: "Sentinel",
  sentinels: hosts.map((host) => ({ host, port: undefined })),
  name,
  username: undefined,
  password: undefined
})

const SECRET = "s3cr3t"

describe("the URL of a Redis", () => {
  it.each([
    ["redis://h", { ...nothing, address: host("h") }],
    ["redis://h:6380/", { ...nothing, address: host("h", 6380) }],
    ["rediss://h/0", { ...nothing, address: host("h"), tls: true, database: 0 }],
    ["REDISS://H.example:1/15", { ...nothing, address: host("H.example", 1), tls: true, database: 15 }],
    ["redis://[::1]:65535/3", { ...nothing, address: host("::1", 65535), database: 3 }],
    ["redis://10.0.0.1", { ...nothing, address: host("10.0.0.1") }],
    ["redis://locks@h", { ...nothing, address: host("h"), username: "locks" }],
    ["redis://:pw@h", { ...nothing, address: host("h"), password: "pw" }],
    ["redis://a%40b:p%3A%2F%25w:x@h", { ...nothing, address: host("h"), username: "a@b", password: "p:/%w:x" }],
    ["redis://u:p@ss@h", { ...nothing, address: host("h"), username: "u", password: "p@ss" }],
    ["unix:///run/redis.sock", { ...nothing, address: socket("/run/redis.sock") }],
    [
      "UNIX://u:pw@/run/my%20redis?db=4",
      { ...nothing, address: socket("/run/my redis"), username: "u", password: "pw", database: 4 }
    ],
    ["/run/redis.sock", { ...nothing, address: socket("/run/redis.sock") }],
    ["/run/redis.sock?db=2", { ...nothing, address: socket("/run/redis.sock"), database: 2 }],
    [
      "rediss://h?ca=/etc/my%20ca.pem&key=/k&cert=/c",
      { ...nothing, address: host("h"), tls: true, tlsFiles: { ca: "/etc/my ca.pem", key: "/k", cert: "/c" } }
    ],
    ["rediss://h/2?ca=ca.pem", { ...nothing, address: host("h"), tls: true, database: 2, tlsFiles: { ca: "ca.pem" } }],
    ["redis+cluster://a", { ...nothing, address: cluster({ host: "a", port: undefined }) }],
    [
      "REDISS+Cluster://u%2Cx:p%40w@a,b:7000,[::1]:7001,[::2]/0",
      {
        ...nothing,
        tls: true,
        username: "u,x",
        password: "p@w",
        database: 0,
        address: cluster(
          { host: "a", port: undefined },
          { host: "b", port: 7000 },
          { host: "::1", port: 7001 },
          { host: "::2", port: undefined }
        )
      }
    ],
    ["redis+sentinel://a/my-master_1.x", { ...nothing, address: sentinel("my-master_1.x", "a") }],
    [
      "redis+sentinel://u:pw@a,b,c/mymaster/3",
      { ...nothing, username: "u", password: "pw", database: 3, address: sentinel("mymaster", "a", "b", "c") }
    ],
    [
      "rediss+sentinel://a/m?sentinelUsername=w%26x&ca=/ca",
      { ...nothing, tls: true, tlsFiles: { ca: "/ca" }, address: { ...sentinel("m", "a"), username: "w&x" } }
    ]
  ])("RedisUrl.parse understands %s", (url, parts) => {
    assert.deepStrictEqual(read(url), parts as never)
  })

  it.each([
    ["", "empty"],
    ["localhost", "redis://"],
    ["localhost:6379", "redis://"],
    [`//u:${SECRET}@h`, "redis://"],
    [`u:${SECRET}@h`, "redis://"],
    ["6379", "redis://"],
    [`http://u:${SECRET}@h`, "scheme"],
    [`redis-socket://u:${SECRET}@h`, "scheme"],
    [`redis://u:${SECRET}@`, "host"],
    ["redis:///3", "host"],
    [`redis://u:${SECRET}@[::g]`, "host"],
    [`redis://u:${SECRET}@h%20x`, "host"],
    [`redis://u:${SECRET}@h:0`, "port"],
    [`redis://u:${SECRET}@h:65536`, "port"],
    [`redis://u:${SECRET}@h:6379x`, "port"],
    [`redis://u:${SECRET}/x@h`, "port"],
    [`redis://u:${SECRET}@h/abc`, "database"],
    [`redis://u:${SECRET}@h/-1`, "database"],
    [`redis://u:${SECRET}@h/1.5`, "database"],
    [`redis://u:${SECRET}@h/1/2`, "database"],
    [`redis://u:${SECRET}@h/99999999999999999999`, "database"],
    [`redis://u:12/${SECRET}@h`, "database"],
    [`redis://u:${SECRET}%zz@h`, "percent-encoded"],
    [`redis://u:${SECRET}@h?stringNumbers=true`, "query"],
    [`redis://u:${SECRET}@h/1?connectTimeout=abc`, "query"],
    [`rediss://u:${SECRET}@h?tls=`, "query"],
    [`redis://u:12?${SECRET}@h`, "query"],
    [`redis://u:12#${SECRET}@h`, "fragment"],
    [`redis://u:${SECRET}@h\n`, "white space"],
    [`redis://u:${SECRET}@h/1\t2`, "white space"],
    [`unix://u:${SECRET}@h/run/redis.sock`, "host"],
    ["unix://", "path"],
    [`unix://u:${SECRET}@/run/redis.sock?db=x`, "database"],
    [`unix://u:${SECRET}@/run/redis.sock?password=${SECRET}`, "query"],
    [`unix://u:${SECRET}@/run/%zz`, "path"],
    [`unix://u:${SECRET}@/run/redis.sock?db=1&ca=${SECRET}`, "query"],
    [`redis://u:${SECRET}@a,b`, "redis+cluster://"],
    [`redis://u:${SECRET}@h?ca=${SECRET}`, "TLS"],
    [`rediss://u:${SECRET}@h?CA=${SECRET}`, "query"],
    [`rediss://u:${SECRET}@h?ca`, "query"],
    [`rediss://u:${SECRET}@h?ca=`, "empty"],
    [`rediss://u:${SECRET}@h?ca=${SECRET}&ca=${SECRET}`, "twice"],
    [`rediss://u:${SECRET}@h?ca=%zz${SECRET}`, "percent-encoded"],
    [`rediss://u:${SECRET}@h?ca=${SECRET}&sentinelPassword=${SECRET}`, "query"],
    [`rediss://u:${SECRET}@h?cert=${SECRET}`, "both cert and key"],
    [`rediss+cluster://u:${SECRET}@h?key=${SECRET}`, "both cert and key"],
    [`redis+cluster://u:${SECRET}@`, "host"],
    [`redis+cluster://u:${SECRET}@a,,b`, "host 2"],
    [`redis+cluster://u:${SECRET}@a,b:x,c`, "port of host 2"],
    [`redis+cluster://u:${SECRET}@a,u:${SECRET}@b`, "user and password stand once"],
    [`redis+cluster://a,u:${SECRET}@b,c`, "user and password stand once"],
    [`redis+cluster://u:${SECRET}@a,b/1`, "database 0"],
    [`redis+cluster://u:${SECRET}@a,b/${SECRET}`, "database"],
    [`redis+cluster://u:${SECRET}@a,b?readOnly=true`, "query"],
    [`redis+sentinel://u:${SECRET}@a,b`, "name of the master"],
    [`redis+sentinel://u:${SECRET}@a,b/`, "name of the master"],
    [`redis+sentinel://u:${SECRET}@a,b/my%20master`, "name of the master"],
    [`redis+sentinel://u:${SECRET}@a,b/mymaster/x`, "database"],
    [`redis+sentinel://u:${SECRET}@a,b/mymaster/0/1`, "database"],
    [`redis+sentinel://u:${SECRET}@a/mymaster?sentinelPassword=${SECRET}&sentinelPassword=${SECRET}`, "twice"],
    [`redis+sentinel://u:${SECRET}@a/mymaster?ca=${SECRET}`, "query"],
    [`redis+unix://u:${SECRET}@/run/redis.sock`, "scheme"],
    [`redis+cluster+sentinel://u:${SECRET}@a`, "scheme"],
    [`__proto__://u:${SECRET}@a`, "redis://"],
    [`constructor://u:${SECRET}@a`, "scheme"]
  ])("The URL %j is refused by every layer before it connects, without a word of it", (url, part) =>
    Effect.runPromise(
      Effect.gen(function* () {
        const layers = {
          layer: IoRedis.layer({ url }),
          redacted: IoRedis.layer({ url: Redacted.make(url) }),
          cluster: IoRedis.layerCluster({ nodes: ["redis://127.0.0.1", url] }),
          sentinel: IoRedis.layerSentinel({ sentinels: [Redacted.make(url)] })
        }
        for (const [name, layer] of Object.entries(layers)) {
          const error = yield* Effect.flip(Effect.scoped(Layer.build(layer)))
          assert.instanceOf(error, InvalidLockOptions, name)
          assert.match((error as InvalidLockOptions).option, /^(url|nodes\[1\]|sentinels\[0\])$/)
          for (const text of [String(error), inspect(error, { depth: 10 }), JSON.stringify(error)]) {
            assert.notInclude(text, SECRET)
          }
          assert.include(error.message, part)
        }
      })
    )
  )

  it("A URL that is not a string is refused, as an untyped caller may pass one", () => {
    const error = Result.getOrThrow(Result.flip(RedisUrl.parse(new URL("redis://h") as never)))
    assert.include(error.message, "must be a string")
  })

  it("A RedisUrl hides its password when it is printed", () => {
    for (const text of [
      `redis://u:${SECRET}@h`,
      `redis+sentinel://u:${SECRET}@a,b/m?sentinelPassword=${SECRET}`,
      `rediss+cluster://u:${SECRET}@a,b`
    ]) {
      const url = Result.getOrThrow(RedisUrl.parse(text))
      for (const shown of [String(url), inspect(url, { depth: 10 }), JSON.stringify(url)]) {
        assert.notInclude(shown, SECRET)
      }
    }
  })
})

/** The error with which building a layer fails. */
const refusal = <A, E>(layer: Layer.Layer<A, E>) => Effect.flip(Effect.scoped(Layer.build(layer)))

describe("several servers that are spoken to in one way", () => {
  it.effect.each([
    [[], "nodes", "empty"],
    [["redis://a", "rediss://b"], "nodes[1]", "TLS"],
    [["redis://u:pw@a", "redis://u:other@b"], "nodes[1]", "user and password"],
    [["redis://a", "redis://u:pw@b"], "nodes[1]", "user and password"],
    [["redis://a", "redis://b/1"], "nodes[1]", "database"],
    [["/run/redis.sock"], "nodes[0]", "redis://host:port"],
    [["redis://a", "redis+cluster://b,c"], "nodes[1]", "redis://host:port"],
    [["redis+sentinel://b/mymaster"], "nodes[0]", "redis://host:port"],
    [["rediss://a?ca=/a", "rediss://b?ca=/b"], "nodes[1]", "ca, cert and key"],
    [["rediss://a", "rediss://b?ca=/b"], "nodes[1]", "ca, cert and key"]
  ] as const)("URLs of several servers must not contradict each other: %j", ([nodes, option, part]) =>
    Effect.gen(function* () {
      const ofCluster = yield* refusal(IoRedis.layerCluster({ nodes }))
      assert.instanceOf(ofCluster, InvalidLockOptions)
      assert.deepInclude(ofCluster, { option })
      assert.include(ofCluster.message, part)
      const ofSentinel = yield* refusal(IoRedis.layerSentinel({ sentinels: nodes }))
      assert.deepInclude(ofSentinel, { option: option.replace("nodes", "sentinels") })
    })
  )
})

describe("options of ioredis", () => {
  it.effect.each([
    { db: "abc" },
    { db: -1 },
    { db: 1.5 },
    { db: Number.NaN },
    { port: "abc" },
    { port: 65536 },
    { family: 5 },
    { protocol: 4 },
    { keepAlive: "x" },
    { commandTimeout: Number.NaN },
    { connectTimeout: "1 second" },
    { disconnectTimeout: -1 },
    { maxLoadingRetryTime: "abc" },
    { socketTimeout: Number.POSITIVE_INFINITY },
    { password: 5 },
    { host: {} },
    { retryStrategy: 50 },
    { reconnectOnError: true },
    { reconnectOnError: () => true }
  ])("Options that ioredis would misread, or end the process with, are refused: %j", (ioredis) =>
    Effect.gen(function* () {
      const [name] = Object.keys(ioredis)
      const bad = ioredis as never
      assert.deepInclude(yield* refusal(IoRedis.layer({ ioredis: bad })), {
        _tag: "InvalidLockOptions",
        option: `ioredis.${name}`
      })
      assert.deepInclude(yield* refusal(IoRedis.layerSentinel({ sentinels: ["redis://h"], ioredis: bad })), {
        option: `ioredis.${name}`
      })
      assert.deepInclude(
        yield* refusal(IoRedis.layerCluster({ nodes: ["redis://h"], ioredis: { redisOptions: bad } })),
        {
          option: `ioredis.redisOptions.${name}`
        }
      )
    })
  )

  test("Options cannot choose a database of a cluster, which has one", function* () {
    const error = yield* refusal(IoRedis.layerCluster({ nodes: ["redis://h"], ioredis: { redisOptions: { db: 1 } } }))
    assert.deepInclude(error, { _tag: "InvalidLockOptions", option: "ioredis.redisOptions.db" })
    const byUrl = yield* refusal(IoRedis.layer({ url: "redis+cluster://h", ioredis: { db: 1 } }))
    assert.deepInclude(byUrl, { _tag: "InvalidLockOptions", option: "ioredis.db" })
  })
})
