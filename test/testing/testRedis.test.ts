import { IoRedis } from "@effect-redis-lock/ioredis"
import { RedisServer, TestRedis } from "@effect-redis-lock/testing"
import { assert, it } from "@effect/vitest"
import { Context, Effect, Layer, Option, Result } from "effect"
import { Lock, RedisLock } from "effect-redis-lock"
import { execFileSync } from "node:child_process"
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { testLive } from "../kit/test.ts"

/** Changes the environment for as long as the scope is open. */
const withEnvironment = (changes: Record<string, string | undefined>) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const before = Object.fromEntries(Object.keys(changes).map((name) => [name, process.env[name]]))
      setEnvironment(changes)
      return before
    }),
    (before) => Effect.sync(() => setEnvironment(before))
  )

const setEnvironment = (values: Record<string, string | undefined>): void => {
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined) delete process.env[name]
    else process.env[name] = value
  }
}

const directoryFor = (prefix: string) =>
  Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), prefix))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
  )

const pathOf = (program: string): string =>
  execFileSync("/bin/sh", ["-c", `command -v ${program}`], { encoding: "utf8" }).trim()

/** An apt-get that puts a package among its archives, as long as that directory is there. */
const aptGet = (packages: string) => `#!/bin/sh
[ -d "${packages}" ] || { echo "no such packages" >&2; exit 100; }
for argument; do
  case "$argument" in Dir::Cache=*) : >"\${argument#Dir::Cache=}/archives/redis-server.deb" ;; esac
done
`

/** A dpkg-deb whose packages contain this server. */
const dpkgDeb = (server: string) => `#!/bin/sh
mkdir -p "$3/usr/bin" "$3/usr/lib/x86_64-linux-gnu"
for name in redis-server redis-cli; do
  printf '#!/bin/sh\\nexec ${server} "$@"\\n' >"$3/usr/bin/$name"
  chmod +x "$3/usr/bin/$name"
done
`

const locks = (url: string) => Layer.provide(RedisLock.layer(), IoRedis.layer({ url }))

// whether an engine answers is only known by asking
const engine = await Effect.runPromise(Effect.result(Effect.scoped(TestRedis.container({ quiet: true }))))
if (Result.isFailure(engine)) console.log(`The container tests are skipped: ${engine.failure.message}`)

testLive("The search for a Redis takes REDIS_URL first", function* () {
  const server = yield* RedisServer.start()
  yield* withEnvironment({ REDIS_URL: server.url })
  const redis = Option.getOrThrow(yield* TestRedis.findWith({ quiet: true }))
  assert.deepInclude(redis, { source: "REDIS_URL", url: server.url })
})

testLive("The search for a Redis does not skip a REDIS_URL that does not answer", function* () {
  yield* withEnvironment({ REDIS_URL: "redis://127.0.0.1:1" })
  const error = yield* Effect.flip(TestRedis.findWith({ quiet: true }))
  assert.include(error.message, "REDIS_URL")
})

testLive("The search for a Redis runs a server from the PATH, which ends with the scope", function* () {
  yield* withEnvironment({ REDIS_URL: undefined })
  const url = yield* Effect.gen(function* () {
    const redis = Option.getOrThrow(yield* TestRedis.findWith({ quiet: true }))
    assert.strictEqual(redis.source, "local server")
    yield* Effect.provide(Lock.withLock(Effect.void, "a"), locks(redis.url))
    return redis.url
  }).pipe(Effect.scoped)
  const error = yield* Effect.flip(Effect.provide(Lock.isLocked("a"), locks(url)))
  assert.strictEqual((error as { reason: string }).reason, "ConnectionRefused")
})

testLive("The search for a Redis names the three ways if it finds none", function* () {
  yield* withEnvironment({
    REDIS_URL: undefined,
    PATH: "/nonexistent",
    DOCKER_HOST: "tcp://127.0.0.1:1",
    HOME: "/nonexistent"
  })
  const found = yield* Effect.result(TestRedis.findWith({ quiet: true }))
  // an engine on its usual socket is found whatever DOCKER_HOST says
  if (Result.isSuccess(engine)) return
  assert.deepStrictEqual(found, Result.succeed(Option.none()))
  const error = yield* Effect.flip(Effect.provide(TestRedis.TestRedis, Layer.fresh(TestRedis.layer)))
  for (const way of ["REDIS_URL", "redis-server", "valkey-server", "Docker"]) assert.include(error.message, way)
})

testLive(
  "Where none is found, Debian's redis-server is unpacked into the cache without root, and is found there the next time",
  function* () {
    const directory = yield* directoryFor("fetched-")
    // a machine without redis-server, whose packages come from a server that can be away
    const tools = join(directory, "tools")
    const packages = join(directory, "packages")
    yield* Effect.sync(() => {
      mkdirSync(tools)
      for (const name of ["cat", "chmod", "mkdir", "mktemp", "mv", "rm"]) symlinkSync(pathOf(name), join(tools, name))
      writeFileSync(join(tools, "apt-get"), aptGet(packages), { mode: 0o755 })
      writeFileSync(join(tools, "dpkg-deb"), dpkgDeb(pathOf("redis-server || command -v valkey-server")), {
        mode: 0o755
      })
    })
    yield* withEnvironment({
      REDIS_URL: undefined,
      DOCKER_HOST: "tcp://127.0.0.1:1",
      HOME: directory,
      XDG_CACHE_HOME: undefined,
      PATH: tools
    })
    const install = Layer.build(Layer.fresh(TestRedis.layerWith({ install: true, quiet: true })))
    // an engine on its usual socket is found whatever DOCKER_HOST says
    if (Result.isSuccess(engine)) return
    const error = yield* Effect.flip(Effect.scoped(install))
    assert.include(error.message, "Downloading redis-server was tried and failed: no such packages")
    assert.deepStrictEqual(readdirSync(join(directory, ".cache/effect-redis-lock")), [])

    yield* Effect.sync(() => mkdirSync(packages))
    const fetched = Context.get(yield* install, TestRedis.TestRedis)
    assert.strictEqual(fetched.source, "local server")
    // also for the programs that a test starts
    assert.isTrue(process.env["PATH"]!.startsWith(join(directory, ".cache/effect-redis-lock/redis-server/bin")))

    yield* Effect.sync(() => rmSync(packages, { recursive: true }))
    yield* withEnvironment({ PATH: tools })
    assert.strictEqual(Context.get(yield* install, TestRedis.TestRedis).source, "local server")
  }
)

it.live.skipIf(Result.isFailure(engine))("The search for a Redis runs a container, in which locks work", () =>
  Effect.gen(function* () {
    yield* withEnvironment({ REDIS_URL: undefined, PATH: "/nonexistent" })
    const redis = Option.getOrThrow(yield* TestRedis.findWith({ quiet: true }))
    assert.strictEqual(redis.source, "container")
    yield* Effect.gen(function* () {
      assert.isTrue(yield* Lock.withLock(Lock.isLocked("a"), "a"))
      assert.isFalse(yield* Lock.isLocked("a"))
    }).pipe(Effect.provide(locks(redis.url)))
  }).pipe(Effect.scoped)
)
