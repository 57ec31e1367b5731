/**
 * `redis-lock inspect` and `redis-lock release`.
 */
import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { spawn } from "node:child_process"
import { randomUUID } from "node:crypto"
import { soon } from "../kit/eventually.ts"
import { freshName } from "../kit/names.ts"
import { isTracked } from "../kit/server/conditions.ts"
import { onServer } from "../kit/server/onServer.ts"
import { redisUrl } from "../kit/server/redisUrl.ts"
import { bin, client, holdElsewhere, redisLock, start } from "./redisLock.ts"
import { testLive } from "../kit/test.ts"

/** Runs redis-lock on a terminal of its own, and types an answer as soon as it asks, or once something else has happened. */
const onTerminal = (args: ReadonlyArray<string>, answer: string, meanwhile: () => Promise<unknown> = async () => {}) =>
  Effect.callback<{ readonly code: number | null; readonly output: string }>((resume) => {
    const child = spawn("script", ["-qec", [process.execPath, bin, ...args].join(" "), "/dev/null"], {
      env: { ...process.env, REDIS_URL: redisUrl, REDIS_QUORUM: undefined }
    })
    let output = ""
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      output += text
      if (text.includes("[y/N]")) void meanwhile().then(() => child.stdin.write(`${answer}\n`))
    })
    child.on("close", (code) => resume(Effect.succeed({ code, output })))
    return Effect.sync(() => child.kill("SIGKILL"))
  })

describe("inspect", () => {
  testLive("redis-lock inspect shows the holder of a lock, and says when nobody holds it", function* () {
    const name = freshName("cli")
    const redis = yield* client()
    const owner = yield* holdElsewhere(redis, name)
    const held = yield* redisLock(["inspect", name])
    assert.deepStrictEqual([held.code, held.stderr], [0, ""])
    assert.match(
      held.stdout,
      new RegExp(
        `^name     ${name}\nkind     lock\n\nMODE +HOLDS  REMAINING  OWNER\nexclusive  1      \\d.*s +${owner}\n$`
      )
    )
    yield* Effect.promise(() => redis.del(name))
    const free = yield* redisLock(["inspect", "--json", name])
    assert.deepStrictEqual(JSON.parse(free.stdout), {
      name,
      kind: "none",
      token: null,
      holders: [],
      waiting: 0,
      waiters: [],
      count: null,
      held: 0,
      permits: []
    })
  })
})

describe("release", () => {
  testLive(
    "redis-lock release stops a command that redis-lock runs under the lock, long before that would renew it",
    function* () {
      const { redis, server } = yield* onServer()
      const env = { REDIS_URL: server.url }
      const running = yield* start(["run", "--lease", "1h", "report", "--", "sh", "-c", "echo in; read line"], {
        env
      })
      yield* running.says("in\n")
      yield* isTracked(redis)
      assert.strictEqual((yield* redisLock(["release", "--force", "--yes", "report"], { env })).code, 0)
      const { code, stderr } = yield* soon("the end of the command", running.ended)
      assert.strictEqual(code, 70)
      assert.include(stderr, "Stopping the command")
    }
  )

  testLive("redis-lock release wants --force, and --yes where it cannot ask", function* () {
    const name = freshName("cli")
    const redis = yield* client()
    yield* holdElsewhere(redis, name)
    const gently = yield* redisLock(["release", "--yes", name])
    assert.strictEqual(gently.code, 64)
    assert.include(gently.stderr, "it needs --force")
    const unasked = yield* redisLock(["release", "--force", name])
    assert.strictEqual(unasked.code, 64)
    assert.include(unasked.stderr, "it needs --yes")
    assert.strictEqual(yield* Effect.promise(() => redis.exists(name)), 1)
  })

  testLive(
    "redis-lock release shows the holder on a terminal, and frees the lock only if the answer is yes",
    function* () {
      const name = freshName("cli")
      const redis = yield* client()
      const owner = yield* holdElsewhere(redis, name)
      const no = yield* onTerminal(["release", "--force", name], "n")
      assert.strictEqual(no.code, 77, no.output)
      assert.include(no.output, owner)
      assert.strictEqual(yield* Effect.promise(() => redis.exists(name)), 1)
      const yes = yield* onTerminal(["release", "--force", name], "y")
      assert.strictEqual(yes.code, 0, yes.output)
      assert.strictEqual(yield* Effect.promise(() => redis.exists(name)), 0)
    }
  )

  testLive("redis-lock release frees nothing if others hold the lock by the time of the answer", function* () {
    const name = freshName("cli")
    const redis = yield* client()
    yield* holdElsewhere(redis, name)
    const changesHands = async () => {
      await redis.del(name)
      await Effect.runPromise(holdElsewhere(redis, name))
    }
    const late = yield* onTerminal(["release", "--force", name], "y", changesHands)
    assert.strictEqual(late.code, 66, late.output)
    assert.include(late.output, `"${name}" is held by others now: nothing was freed`)
    assert.strictEqual(yield* Effect.promise(() => redis.exists(name)), 1)
  })

  testLive("redis-lock release exits with 66 if nobody holds the name, and with 65 if nobody can", function* () {
    const name = freshName("cli")
    const redis = yield* client()
    const free = yield* redisLock(["release", "--force", "--yes", name])
    assert.deepStrictEqual(free, { code: 66, stdout: "", stderr: `redis-lock: nobody holds "${name}"\n` })
    yield* Effect.promise(() => redis.set(name, "3", "PX", 60_000))
    const counter = yield* redisLock(["release", "--force", "--yes", name])
    assert.strictEqual(counter.code, 65)
    assert.strictEqual(yield* Effect.promise(() => redis.get(name)), "3")
  })

  testLive("redis-lock release quotes of a long name only the beginning", function* () {
    const { stderr } = yield* redisLock(["release", "--force", "--yes", "x".repeat(900)])
    assert.strictEqual(stderr, `redis-lock: nobody holds "${"x".repeat(60)}..."\n`)
  })

  testLive("redis-lock release gives back, of a semaphore, no permit that was acquired while it asked", function* () {
    const name = freshName("cli")
    const redis = yield* client()
    const later = Date.now() + 60_000
    const [seen, since] = [Buffer.alloc(16, 1), Buffer.alloc(16, 2)]
    yield* Effect.promise(() => redis.multi().set(name, "1").zadd(`{${name}}:timeout`, later, seen).exec())
    const isAcquired = () =>
      redis.multi().zrem(`{${name}}:timeout`, seen).zadd(`{${name}}:timeout`, later, since).exec()
    const late = yield* onTerminal(["release", "--force", name], "y", isAcquired)
    assert.strictEqual(late.code, 66, late.output)
    assert.include(late.output, "is held by others now: nothing was freed")
    assert.strictEqual(yield* Effect.promise(() => redis.zcard(`{${name}}:timeout`)), 1)
  })

  testLive("redis-lock release gives back all permits of a semaphore, and frees readers", function* () {
    const name = freshName("cli")
    const redis = yield* client()
    const later = Date.now() + 60_000
    yield* Effect.promise(() =>
      redis
        .multi()
        .set(name, "1")
        .zadd(`{${name}}:timeout`, later, Buffer.alloc(16, 1), later, Buffer.alloc(16, 10))
        .exec()
    )
    const freed = yield* redisLock(["release", "--force", "--yes", name])
    assert.strictEqual(freed.code, 0, freed.stderr)
    assert.include(freed.stdout, `Freed 2 permits of "${name}".`)
    assert.strictEqual(yield* Effect.promise(() => redis.get(name)), "3")
    yield* Effect.promise(() => redis.del(name))

    yield* Effect.promise(() => redis.hset(name, { mode: "read", "11111111-2222-3333-4444-555555555555:1": 1 }))
    const readers = yield* redisLock(["release", "--force", "--yes", name])
    assert.strictEqual(readers.code, 0, readers.stderr)
    assert.strictEqual(yield* Effect.promise(() => redis.exists(name)), 0)
  })

  testLive(
    "redis-lock release says that more permits were held than it has freed, and frees the others next",
    function* () {
      const name = freshName("cli")
      const redis = yield* client()
      const later = Date.now() + 600_000
      const held = Array.from({ length: 1003 }, (_, i) => [
        later + i,
        Buffer.from(randomUUID().replaceAll("-", ""), "hex")
      ])
      yield* Effect.promise(() =>
        redis
          .multi()
          .set(name, "0")
          .zadd(`{${name}}:timeout`, ...held.flat())
          .exec()
      )
      const most = yield* redisLock(["release", "--force", "--yes", name])
      assert.deepStrictEqual([most.code, most.stderr], [75, "redis-lock: not all permits were freed: run this again\n"])
      assert.include(most.stdout, `Freed 1000 permits of "${name}"; 3 more were held.`)
      assert.strictEqual(yield* Effect.promise(() => redis.get(name)), "1000")
      const others = yield* redisLock(["release", "--force", "--yes", name])
      assert.strictEqual(others.code, 0, others.stderr)
      assert.include(others.stdout, `Freed 3 permits of "${name}".`)
      assert.strictEqual(yield* Effect.promise(() => redis.get(name)), "1003")
    }
  )
})
