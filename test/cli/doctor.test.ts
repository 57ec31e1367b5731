/**
 * `redis-lock doctor`.
 */
import { RedisCluster, RedisSentinel, RedisServer } from "@effect-redis-lock/testing"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { readdirSync, readFileSync } from "node:fs"
import { type AddressInfo, createServer } from "node:net"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { client, redisLock } from "./redisLock.ts"
import { testLive } from "../kit/test.ts"

interface Report {
  readonly servers: ReadonlyArray<{
    readonly server: string
    readonly checks: ReadonlyArray<{ readonly check: string; readonly level: string; readonly message: string }>
  }>
}

const levels = (stdout: string): Record<string, string> =>
  Object.fromEntries((JSON.parse(stdout) as Report).servers[0]!.checks.map(({ check, level }) => [check, level]))

const root = fileURLToPath(new URL("../..", import.meta.url))

testLive("redis-lock doctor finds a server fit, one that evicts not, and leaves no key for long", function* () {
  const server = yield* RedisServer.start({ args: ["--appendonly", "no"] })
  const fit = yield* redisLock(["doctor", "--json", "--redis", server.url])
  assert.deepStrictEqual([fit.code, fit.stderr], [0, ""], fit.stdout)
  const { persistence, ...others } = levels(fit.stdout)
  // the server saves nothing
  assert.strictEqual(persistence, "warning")
  assert.deepStrictEqual(Object.keys(others).sort(), [
    ...[
      "clock",
      "commands",
      "election",
      "eviction",
      "fair lock",
      "latch",
      "latency",
      "list",
      "lock",
      "mode",
      "permit semaphore"
    ],
    ...["read lock", "replicas", "run once", "semaphore", "several locks", "subscribe", "tracking", "version"],
    "write lock"
  ])
  const redis = yield* client(server.url)
  for (const key of yield* Effect.promise(() => redis.keys("*"))) {
    const left = yield* Effect.promise(() => redis.pttl(key))
    assert.isTrue(left === -2 || (left >= 0 && left <= 10_000), `${key} stays for ${left} ms`)
  }
  yield* Effect.promise(() => redis.config("SET", "maxmemory", "100mb", "maxmemory-policy", "allkeys-lru"))
  const unfit = yield* redisLock(["doctor", "--redis", server.url])
  assert.strictEqual(unfit.code, 2)
  assert.match(unfit.stdout, /^eviction +problem +.*Set the policy to noeviction/m)
})

testLive(
  "redis-lock doctor says what an ACL forbids, INFO as well, and is content where plain locks work",
  function* () {
    const server = yield* RedisServer.start()
    const redis = yield* client(server.url)
    const rules = "on >secret ~* &* +@all -info -zadd -hrandfield -client|tracking"
    yield* Effect.promise(() => redis.call("ACL", "SETUSER", "few", ...rules.split(" ")))
    const url = `redis://few:secret@127.0.0.1:${server.port}`
    const ended = yield* redisLock(["doctor", "--redis", url])
    assert.strictEqual(ended.code, 0, ended.stdout)
    assert.match(ended.stdout, /^info +warning +INFO is not permitted/m)
    assert.match(ended.stdout, /^commands +warning +refused: HRANDFIELD, ZADD\..*\+hrandfield \+zadd/m)
    assert.match(ended.stdout, /^lock +ok/m)
    assert.match(ended.stdout, /^fair lock +warning/m)
    assert.match(ended.stdout, /^tracking +warning +NOPERM.*allow CLIENT ID, TRACKING and CACHING/m)
    assert.notInclude(ended.stdout, "secret")
    // all that a fair lock needs, and no records
    const keys = "~redis-lock:doctor:* ~redisson_lock* ~effect_redis_lock_client* ~effect_redis_lock_places:*"
    yield* Effect.promise(() => redis.call("ACL", "SETUSER", "few", "+zadd", "resetkeys", ...keys.split(" ")))
    const withoutRecords = yield* redisLock(["doctor", "--redis", url])
    assert.match(withoutRecords.stdout, /^fair lock +ok/m)
    // each remedy once
    for (const line of withoutRecords.stdout.split("\n")) assert.isAtMost(line.split("README").length, 2, line)
    assert.match(withoutRecords.stdout, /^election +warning/m)
    assert.match(withoutRecords.stdout, /^run once +warning/m)
    yield* Effect.promise(() => redis.call("ACL", "SETUSER", "few", "-hset"))
    assert.strictEqual((yield* redisLock(["doctor", "--redis", url])).code, 2)
    yield* Effect.promise(() => redis.call("ACL", "SETUSER", "few", "+@all", "resetkeys", "~app:*"))
    const onlyTheirKeys = yield* redisLock(["doctor", "--redis", url])
    assert.match(onlyTheirKeys.stdout, /^info +warning +INFO failed: NOPERM .* key/m)
    yield* Effect.promise(() => redis.call("ACL", "SETUSER", "few", "allkeys", "-eval"))
    yield* Effect.promise(() => redis.script("FLUSH"))
    const withoutEval = yield* redisLock(["doctor", "--redis", url])
    assert.match(withoutEval.stdout, /^info +warning +INFO failed: NOPERM .*'eval'/m)
  }
)

testLive(
  "redis-lock doctor says of a replica, a sentinel and a single node of a cluster that no locks can be kept there",
  function* () {
    const { sentinels, servers } = yield* RedisSentinel.start()
    const { nodes } = yield* RedisCluster.start()
    const wrong = [
      ["replica", servers[1]!],
      ["sentinel", sentinels[0]!],
      // one of them serves the name under which doctor asks
      ...nodes.map((node) => ["node of a cluster", node] as const)
    ] as const
    for (const [what, { url }] of wrong) {
      const { code, stdout } = yield* redisLock(["doctor", "--redis", url])
      assert.strictEqual(code, 2, stdout)
      assert.match(stdout, new RegExp(`^mode +problem +.*${what}.*Lead to`, "m"))
    }
  }
)

testLive("redis-lock doctor ends where Redis refuses writes for lack of replicas", function* () {
  const server = yield* RedisServer.start({ args: ["--min-replicas-to-write", "1"] })
  const { code, stdout } = yield* redisLock(["doctor", "--redis", server.url])
  assert.strictEqual(code, 2)
  // no permission would help
  assert.match(stdout, /^commands +ok/m)
  for (const kind of ["lock", "fair lock", "read lock", "write lock", "several locks"]) {
    assert.match(stdout, new RegExp(`^${kind} +problem +.*replicas`, "m"))
  }
})

testLive("What a server says cannot control the terminal of redis-lock doctor", function* () {
  const hostile = createServer((socket) => {
    socket.on("error", () => {})
    socket.on("data", (sent) => socket.write("-ERR \u001b[31mred\r\n".repeat(String(sent).match(/^\*/gm)?.length ?? 0)))
  })
  yield* Effect.acquireRelease(
    Effect.promise(() => new Promise<void>((resolve) => hostile.listen(0, "127.0.0.1", resolve))),
    () => Effect.sync(() => hostile.close())
  )
  const { port } = hostile.address() as AddressInfo
  const { stdout } = yield* redisLock(["doctor", "--redis", `redis://127.0.0.1:${port}`])
  assert.match(stdout, /^connection +problem +.*ERR \\u\{1b\}\[31mred/m)
})

testLive("redis-lock doctor exits with 69 if Redis cannot be reached", function* () {
  const ended = yield* redisLock(["doctor", "--redis", "redis://x:s3cret@127.0.0.1:1"])
  assert.strictEqual(ended.code, 69)
  assert.match(ended.stdout, /^connection +problem +ConnectionRefused/m)
  assert.notInclude(ended.stdout + ended.stderr, "s3cret")
})

it("redis-lock doctor tries every command that the scripts of locks, permits and latches use", () => {
  const lua = join(root, "lua")
  // what the option `acknowledge` needs besides, doctor does not ask for
  const scripts = readdirSync(lua, { recursive: true, encoding: "utf8" }).filter(
    (file) => file.endsWith(".lua") && !file.startsWith("grant/")
  )
  const used = new Set(
    scripts.flatMap((file) =>
      [...readFileSync(join(lua, file), "utf8").matchAll(/redis\.p?call\('([A-Z]+)'/g)].map(([, command]) => command!)
    )
  )
  const probe = readFileSync(join(root, "packages/cli/src/doctor/commandProbe.ts"), "utf8")
  for (const command of used) assert.include(probe, `try('${command}'`)
})

testLive("doctor titles a server that it cannot reach by its address, without user and password", function* () {
  const { code, stdout } = yield* redisLock(["doctor", "--redis", "redis://watcher:s3cret@127.0.0.1:1"])
  assert.strictEqual(code, 69)
  assert.match(stdout, /^127\.0\.0\.1:1\n.*\nconnection  problem  ConnectionRefused: [^\n]*:1\. Check[^\n]* right\n/)
  assert.notMatch(stdout, /watcher|s3cret/)
})
