/**
 * `redis-lock` and everything that its URLs may lead to.
 */
import { RedisServer } from "@effect-redis-lock/testing"
import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { type AddressInfo, createServer, type Server } from "node:net"
import { freshName } from "../kit/names.ts"
import { bare } from "../kit/server/bareRedis.ts"
import { deployments, password, user } from "../kit/server/deployments.ts"
import { bin, endings, redisLock, start } from "./redisLock.ts"
import { testLive } from "../kit/test.ts"

/** What a port with TLS does when it is spoken to without. */
const hangingUp = Effect.acquireRelease(
  Effect.callback<Server>((resume) => {
    const server = createServer((socket) => socket.on("error", () => {}).on("data", () => socket.destroy()))
    server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
  }),
  (server) => Effect.sync(() => server.close())
).pipe(Effect.map((server) => (server.address() as AddressInfo).port))

/** What the tests' own URLs have that must not be shown. */
const secrets = ["s3cr3t", "s3ntinel", "wr0ng"]

// every deployment: integration/urls
const some = deployments.filter(([title]) => /^(?:rediss\+cluster|redis\+sentinel|unix)/.test(title))
assert.lengthOf(some, 3)

describe("redis-lock", () => {
  for (const [what, deployment] of some) {
    testLive(`redis-lock runs a command under a lock at ${what}, lists it there, and shows no password`, function* () {
      const urlAs = yield* deployment
      const url = urlAs(user, password)
      const name = freshName("cli")
      const listed = yield* redisLock(
        ["run", "--redis", url, name, "--", process.execPath, bin, "ls", "--json", name],
        { env: { REDIS_URL: url } }
      )
      assert.deepStrictEqual([listed.code, listed.stderr], [0, ""], listed.stdout)
      const holds = JSON.parse(listed.stdout) as ReadonlyArray<{ readonly name: string }>
      assert.deepStrictEqual(
        holds.map(({ name }) => name),
        [name]
      )
      const refused = yield* redisLock(["run", name, "--", "true"], { env: { REDIS_URL: urlAs(user, "wr0ng") } })
      assert.strictEqual(refused.code, 69)
      assert.include(refused.stderr, "NotAuthenticated")
      for (const secret of secrets) assert.notInclude(refused.stderr, secret)
    })
  }
})

describe("redis-lock where TLS is expected", () => {
  testLive("redis-lock says at its start that a port which hangs up may have TLS, and so does doctor", function* () {
    const port = yield* hangingUp
    const url = `redis://:s3cr3t@127.0.0.1:${port}`
    for (const args of [["run", "x", "--", "true"], ["ls"], ["inspect", "x"], ["watch"], ["ui"], ["doctor"]]) {
      const ended = yield* redisLock(args, { env: { REDIS_URL: url } })
      assert.strictEqual(ended.code, 69, args[0])
      assert.include(ended.stdout + ended.stderr, "TLS is off (redis://): if this port has it, use rediss://")
      assert.notInclude(ended.stdout + ended.stderr, "s3cr3t")
    }
  })
})

describe("redis-lock with several URLs", () => {
  const quorum = Effect.gen(function* () {
    const servers = yield* Effect.all([1, 2, 3].map(() => RedisServer.start()))
    const urls = servers.map(({ url }) => url)
    const flags = urls.flatMap((url) => ["--redis", url])
    return { servers, flags, env: { REDIS_QUORUM: urls.join(" "), REDIS_URL: "redis://127.0.0.1:1" } }
  })

  testLive("redis-lock with several URLs holds the lock on all of their servers", function* () {
    const { env, flags, servers } = yield* quorum
    const name = freshName("cli")
    const running = yield* start(["run", ...flags, name, "--", "sh", "-c", "echo started; read line; echo $line"])
    yield* running.says("started")
    for (const server of servers) {
      const redis = yield* bare(server)
      assert.strictEqual(yield* Effect.promise(() => redis.hlen(name)), 1)
    }
    const busy = yield* redisLock(["run", "--wait", "0", name, "--", "true"], { env })
    assert.strictEqual(busy.code, 75, busy.stderr)
    const listed = yield* redisLock(["ls"], { env })
    assert.include(listed.stdout, name)
    yield* running.write("ended\n")
    assert.deepStrictEqual(yield* running.ended, { code: 0, stdout: "started\nended\n", stderr: "" })
  })

  testLive("redis-lock with several URLs works while a minority of their servers is down, and says so", function* () {
    const { env, flags, servers } = yield* quorum
    yield* servers[1]!.kill
    for (const ended of [
      yield* redisLock(["run", ...flags, freshName("cli"), "--", "echo", "ran"]),
      yield* redisLock(["run", freshName("cli"), "--", "echo", "ran"], { env })
    ]) {
      assert.deepStrictEqual([ended.code, ended.stdout], [0, "ran\n"], ended.stderr)
      assert.match(ended.stderr, /^redis-lock: One server of the quorum cannot be reached yet\. .*ECONNREFUSED/)
    }
    yield* servers[2]!.kill
    const few = yield* redisLock(["run", ...flags, freshName("cli"), "--", "echo", "ran"])
    assert.deepStrictEqual([few.code, few.stdout], [69, ""])
    assert.include(few.stderr, "ConnectionRefused")
  })

  testLive(
    "redis-lock with several URLs exits with 64 if one is wrong, empty or names a file that cannot be read, or two lead to one server",
    function* () {
      const mistakes = [
        [["redis://:s3cret@127.0.0.1:1", "redis://:s3cret@127.0.0.1:x"], "URL 2: the port must be"],
        [["redis://:s3cret@127.0.0.1:1", "redis://127.0.0.1:1/2"], "URL 2: it leads to the same server as URL 1"],
        [["rediss://:s3cret@127.0.0.1:1?ca=/nowhere"], "the file that ca names cannot be read"],
        [["redis://127.0.0.1:1", ""], "URL 2: it is empty"]
      ] as const
      const flags = mistakes.map(([urls]) => urls.flatMap((url) => ["--redis", url]))
      const all = [
        yield* endings(flags.map((flags) => ["run", ...flags, "x", "--", "true"])),
        yield* endings(flags.map((flags) => ["ls", ...flags])),
        yield* Effect.forEach(mistakes.slice(0, 3), ([urls]) =>
          redisLock(["ls"], { env: { REDIS_QUORUM: urls.join(" ") } })
        )
      ]
      for (const ended of all) {
        for (const [i, { code, stderr, stdout }] of ended.entries()) {
          assert.deepStrictEqual([code, stdout], [64, ""])
          assert.include(stderr, mistakes[i]![1])
          assert.notInclude(stderr, "s3cret")
        }
      }
    }
  )
})
