import { RedisServer, TcpProxy } from "@effect-redis-lock/testing"
import { assert, describe } from "@effect/vitest"
import { Clock, Duration, Effect, Fiber, Logger, Option } from "effect"
import { LockStoreError } from "effect-redis-lock"
import { TestClock } from "effect/testing"
import type { Redis } from "ioredis"
import { redisUrl } from "../kit/server/redisUrl.ts"
import { client, fullPipe, isAlive, isDead, start } from "./redisLock.ts"
import { freshName } from "../kit/names.ts"
import { until } from "../kit/eventually.ts"
import { test, testLive } from "../kit/test.ts"
import { background } from "../kit/background.ts"
import type { Hold } from "../../packages/cli/dist/run/hold.js"
import * as logger from "../../packages/cli/dist/logger.js"
import { awaitLossWarning } from "../../packages/cli/dist/run/lossWarning.js"

const exists = (redis: Redis, name: string) =>
  Effect.map(
    Effect.promise(() => redis.exists(name)),
    (count) => count === 1
  )

/** Short, as some tests wait for its end, and longer than a busy machine stops a process that has just started. */
const lease = "4s"

/** Ends politely when it gets SIGTERM. What the shell says of its `sleep` is not of interest. */
const obedient = [
  "sh",
  "-c",
  'exec 2>/dev/null; trap "echo stopped; exit 0" TERM; echo pid $$; while :; do sleep 0.05; done'
]

/** Ignores SIGTERM, and so does its child. */
const stubborn = [
  "sh",
  "-c",
  'trap "" TERM; sh -c "echo child \\$\\$; exec sleep 60" & echo parent $$; sleep 60; sleep 60'
]

/** Obeys, and leaves a child behind that ignores SIGTERM. */
const survivedByChild = [
  "sh",
  "-c",
  'sh -c "trap \\"\\" TERM; echo child \\$\\$; exec sleep 60" & echo parent $$; wait'
]

describe("when Redis says that the lock is not ours", { concurrent: true }, () => {
  testLive(
    "A command whose lock is lost gets SIGTERM, and redis-lock exits with 70, whatever the command's code",
    function* () {
      const name = freshName("cli")
      const redis = yield* client()
      // long enough that on a slow machine it is Redis that says so, not the clock
      const running = yield* start(["run", "--lease", "9s", name, "--", ...obedient])
      const pid = yield* running.number("pid")
      yield* Effect.promise(() => redis.del(name))
      const ended = yield* running.ended
      assert.deepStrictEqual([ended.code, ended.stdout], [70, `pid ${pid}\nstopped\n`])
      assert.match(ended.stderr, /^redis-lock: Lock ".*" was lost: .*force-released.* Stopping the command\.\n$/)
    }
  )

  testLive(
    "A command whose permit is lost is stopped, and redis-lock says of which semaphore and what to look for",
    function* () {
      const name = freshName("cli")
      const redis = yield* client()
      const running = yield* start(["run", "--permits", "2", "--lease", "9s", name, "--", ...obedient])
      yield* running.number("pid")
      yield* Effect.promise(() => redis.del(`{${name}}:timeout`))
      const ended = yield* running.ended
      assert.strictEqual(ended.code, 70)
      assert.strictEqual(
        ended.stderr,
        `redis-lock: The hold of 1 permit of semaphore "${name}" was lost: Redis no longer has it: it was released by its id, or its semaphore was force-released, deleted or evicted, or Redis lost its data. Find out who did that; INFO tells evicted_keys and uptime_in_seconds. Stopping the command.\n`
      )
      yield* Effect.promise(() => redis.del(name))
    }
  )

  for (const [what, command] of [
    ["a command that ignores SIGTERM", stubborn],
    ["a child that ignores SIGTERM and outlives the command", survivedByChild]
  ] as const) {
    testLive(`After the loss of the lock SIGKILL ends ${what}`, function* () {
      const name = freshName("cli")
      const redis = yield* client()
      const running = yield* start(["run", "--lease", lease, name, "--", ...command])
      const parent = yield* running.number("parent")
      const child = yield* running.number("child")
      yield* Effect.promise(() => redis.del(name))
      assert.strictEqual((yield* running.ended).code, 70)
      yield* until("the parent process has ended", isDead(parent))
      yield* until("the child process has ended", isDead(child))
    })
  }

  testLive("After the loss of the lock, the lock of another owner is left alone", function* () {
    const name = freshName("cli")
    const redis = yield* client()
    const running = yield* start(["run", "--lease", lease, name, "--", ...obedient])
    yield* running.number("pid")
    const other = "00000000-0000-0000-0000-000000000000:1"
    yield* Effect.promise(() => redis.multi().del(name).hset(name, other, 1).exec())
    assert.strictEqual((yield* running.ended).code, 70)
    assert.deepStrictEqual(yield* Effect.promise(() => redis.hgetall(name)), { [other]: "1" })
    yield* Effect.promise(() => redis.del(name))
  })

  testLive(
    "redis-lock exits with 70 although the command has succeeded, if the release finds the lock lost",
    function* () {
      const name = freshName("cli")
      const redis = yield* client()
      const running = yield* start(["run", "--lease", "1h", name, "--", "sh", "-c", "echo ready; read line; exit 0"])
      yield* running.says("ready\n")
      yield* Effect.promise(() => redis.del(name))
      yield* running.write("\n")
      const ended = yield* running.ended
      assert.strictEqual(ended.code, 70)
      assert.match(ended.stderr, /^redis-lock: Lock ".*" was lost: /)
    }
  )
})

describe("when Redis cannot be reached any more", { concurrent: true }, () => {
  testLive("Without Redis the whole group is dead before the lease ends, even if it ignores SIGTERM", function* () {
    const name = freshName("cli")
    const redis = yield* client()
    const proxy = yield* TcpProxy.make({ target: redisUrl })
    const args = ["run", "--lease", "6s", "--redis", proxy.url, name, "--", ...stubborn]
    const running = yield* start(args)
    const parent = yield* running.number("parent")
    const child = yield* running.number("child")
    yield* proxy.stall
    while (true) {
      // in this order: alive after the lease was seen to be over is too long
      const held = yield* exists(redis, name)
      const alive = (yield* isAlive(parent)) || (yield* isAlive(child))
      if (!alive) break
      assert.isTrue(held, "the command outlived the lease")
      // at each moment
      yield* Effect.sleep("20 millis")
    }
    const ended = yield* running.ended
    assert.strictEqual(ended.code, 70)
    assert.match(
      ended.stderr,
      /^redis-lock: Lock ".*" could not be renewed, as Redis does not answer or refuses; its lease ends in [\d.]+ s\. Stopping the/
    )
  })

  for (const [what, permits, title] of [
    ["", [], "Lock"],
    [" and has a permit", ["--permits", "2"], "The permit of semaphore"]
  ] as const) {
    testLive(
      `When Redis cannot be reached any more, the command${what} gets SIGTERM first, and time to end in good order`,
      function* () {
        const name = freshName("cli")
        const redis = yield* client()
        const proxy = yield* TcpProxy.make({ target: redisUrl })
        const args = ["run", ...permits, "--lease", "6s", "--redis", proxy.url, name, "--", ...obedient]
        const running = yield* start(args)
        yield* running.number("pid")
        yield* proxy.cut
        // in this order: not told by the time at which the lease was seen to be over is too late
        while (true) {
          const held = yield* exists(redis, name)
          if (running.hasSaid("stopped\n")) break
          assert.isTrue(held, "the command was not told before the lease was over")
          // at each moment
          yield* Effect.sleep("20 millis")
        }
        const ended = yield* running.ended
        assert.strictEqual(ended.code, 70)
        assert.include(ended.stderr, `redis-lock: ${title} "${name}" could not be renewed, as Redis does not answer or`)
        yield* Effect.promise(() => redis.del(name))
      }
    )
  }

  testLive("When Redis cannot be reached for a moment only, nothing happens to the command", function* () {
    const name = freshName("cli")
    const redis = yield* client()
    const proxy = yield* TcpProxy.make({ target: redisUrl })
    const script = "echo ready; read line; exit 4"
    const running = yield* start(["run", "--lease", "9s", "--redis", proxy.url, name, "--", "sh", "-c", script])
    yield* running.says("ready\n")
    yield* proxy.dropConnections
    // renewed on a new connection
    yield* until("its lease has run for a second", async () => (await redis.pttl(name)) < 8000)
    yield* until("it is renewed", async () => (await redis.pttl(name)) > 8000)
    yield* running.write("\n")
    const { code, stderr, stdout } = yield* running.ended
    assert.deepStrictEqual([code, stdout], [4, "ready\n"])
    // at most what says why it took long to connect
    assert.notMatch(stderr, /lost|renewed|Stopping/)
    assert.isFalse(yield* exists(redis, name))
  })

  for (const [what, kind, expect] of [
    ["lock", [], "the lock frees itself when its lease ends"],
    ["permit", ["--permits", "2"], "the permits come back when their lease ends"]
  ] as const) {
    testLive(
      `If the command has ended by itself without Redis, its code stands, with a warning: ${what}`,
      function* () {
        const server = yield* RedisServer.start()
        const script = "echo ready; read line; exit 3"
        const running = yield* start([
          "run",
          ...kind,
          "--redis",
          server.url,
          freshName("cli"),
          "--",
          "sh",
          "-c",
          script
        ])
        yield* running.says("ready\n")
        yield* server.kill
        yield* running.write("\n")
        const ended = yield* running.ended
        assert.deepStrictEqual([ended.code, ended.stdout], [3, "ready\n"])
        // before it perhaps one about the connections, and where that took long one about renewals
        assert.isAtMost(ended.stderr.split("Could not connect").length, 2, ended.stderr)
        assert.strictEqual(ended.stderr.split(expect).length, 2, ended.stderr)
      }
    )
  }
})

test("A Redis that cannot be reached is reported once in each outage, not for each connection", function* () {
  const lines: Array<string> = []
  const log = (event: string, server: string, line: string) =>
    Effect.annotateLogs(event === "restored" ? Effect.logInfo(line) : Effect.logWarning(line), { event, server })
  yield* Effect.gen(function* () {
    for (const server of ["a:1", "a:1", "b:1"]) yield* log("refused", server, `${server}: connect ECONNREFUSED`)
    yield* log("refused", "a:1", "a:1: WRONGPASS")
    yield* log("restored", "a:1", "Connected to Redis again.")
    yield* log("lost", "a:1", "Lost the connection to Redis.")
    yield* log("refused", "a:1", "a:1: WRONGPASS")
    yield* log("refused", "b:1", "b:1: connect ECONNREFUSED")
    // what is no event of a connection is never the same again
    for (let i = 0; i < 2; i++) yield* Effect.logWarning("a renewal failed")
  }).pipe(Effect.provide(Logger.layer([logger.make((line) => void lines.push(line))])))
  assert.deepStrictEqual(lines, [
    "a:1: connect ECONNREFUSED",
    "b:1: connect ECONNREFUSED",
    "a:1: WRONGPASS",
    "a:1: WRONGPASS",
    "a renewal failed",
    "a renewal failed"
  ])
})

testLive(
  "A redis-lock that was stopped for longer than the lease kills the command as soon as it continues",
  function* () {
    const name = freshName("cli")
    const redis = yield* client()
    const running = yield* start(["run", "--lease", lease, name, "--", ...stubborn])
    const parent = yield* running.number("parent")
    const child = yield* running.number("child")
    yield* running.signal("SIGSTOP")
    yield* until(
      "the lock is free",
      Effect.map(exists(redis, name), (held) => !held)
    )
    yield* running.signal("SIGCONT")
    assert.strictEqual((yield* running.ended).code, 70)
    yield* until("the parent process has ended", isDead(parent))
    yield* until("the child process has ended", isDead(child))
  }
)

describe("while nobody reads stderr", { concurrent: true }, () => {
  testLive("A command whose lock is lost is stopped although stderr takes nothing", function* () {
    const name = freshName("cli")
    const redis = yield* client()
    const stderr = yield* fullPipe
    const running = yield* start(["run", "--lease", "9s", name, "--", ...obedient], { stderr: stderr.end })
    const pid = yield* running.number("pid")
    yield* Effect.promise(() => redis.del(name))
    yield* until("the command has ended", isDead(pid))
    assert.match(yield* stderr.readUntil("Stopping"), /^redis-lock: Lock ".*" was lost: /)
    assert.strictEqual((yield* running.ended).code, 70)
  })

  testLive(
    "A lock is renewed although stderr takes nothing of what redis-lock says of a lost connection",
    function* () {
      const name = freshName("cli")
      const redis = yield* client()
      const proxy = yield* TcpProxy.make({ target: redisUrl })
      const stderr = yield* fullPipe
      const args = [
        "run",
        "--lease",
        "15s",
        "--redis",
        proxy.url,
        name,
        "--",
        "sh",
        "-c",
        "echo ready; read line; exit 3"
      ]
      const running = yield* start(args, { stderr: stderr.end })
      yield* running.says("ready\n")
      yield* proxy.cut
      yield* until("its lease has run for two seconds", async () => (await redis.pttl(name)) < 13_000)
      yield* proxy.restore
      yield* until("it is renewed", async () => (await redis.pttl(name)) > 13_000)
      yield* running.write("\n")
      assert.include(yield* stderr.readUntil("\n"), "redis-lock: Could not connect to Redis")
      assert.strictEqual((yield* running.ended).code, 3)
    }
  )
})

testLive("A command is not started if redis-lock is stopped for longer than the lease before that", function* () {
  const name = freshName("cli")
  const redis = yield* client()
  const module = `
    import fs from "node:fs"
    import { syncBuiltinESMExports } from "node:module"
    const { write } = fs
    fs.write = (fd, text, ...rest) => {
      if (text.includes("acquired")) process.kill(process.pid, "SIGSTOP")
      return write(fd, text, ...rest)
    }
    syncBuiltinESMExports()
  `
  const env = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(module)}` }
  const running = yield* start(["run", "--verbose", "--lease", lease, name, "--", "echo", "ran"], { env })
  yield* until("it is held", exists(redis, name))
  yield* until(
    "the lock is free",
    Effect.map(exists(redis, name), (held) => !held)
  )
  yield* running.signal("SIGCONT")
  const { code, stderr, stdout } = yield* running.ended
  assert.deepStrictEqual([code, stdout], [70, ""])
  assert.match(stderr, /^redis-lock: acquired .*\nredis-lock: Lock ".*" was lost: .*\n$/)
})

test("A redis-lock that was stopped beyond the time to renew does not say that Redis did not answer", function* () {
  const failure = new LockStoreError({ operation: "renew", lock: "a", reason: "TimedOut" })
  for (const { renewalFailure, says } of [
    {
      renewalFailure: Option.some(failure),
      says: "could not be renewed, as Redis does not answer or refuses; its lease ends in 2.0 s."
    },
    {
      renewalFailure: Option.none(),
      says: "was not renewed in time, as this process was stopped or the machine was busy; its lease ends in 2.0 s."
    }
  ]) {
    let remaining = 6000
    const hold = {
      title: 'Lock "a"',
      holding: {
        ensureHeld: Effect.void,
        remaining: Effect.sync(() => Duration.millis(remaining)),
        renewalFailure: Effect.succeed(renewalFailure),
        awaitLost: Effect.never
      }
    } as unknown as Hold
    const warned = yield* background(awaitLossWarning(hold, 2000))
    yield* TestClock.adjust("1 second")
    remaining = 2000
    yield* TestClock.adjust("6 seconds")
    assert.strictEqual((yield* Fiber.join(warned)).message, `Lock "a" ${says}`)
  }
})

/** A hold of which so much is left of its lease as `left` says after so many milliseconds. */
const heldFor = Effect.fnUntraced(function* (left: (millis: number) => number) {
  const { currentTimeMillis } = yield* Clock.Clock
  const began = yield* currentTimeMillis
  return {
    title: 'Lock "a"',
    holding: {
      ensureHeld: Effect.void,
      remaining: Effect.map(currentTimeMillis, (now) => Duration.millis(left(now - began))),
      renewalFailure: Effect.succeedNone,
      awaitLost: Effect.never
    }
  } as unknown as Hold
})

test("A command goes on that began with a lock that was handed over, if its lease is extended in time", function* () {
  // two seconds until the reply to the extension is there
  const hold = yield* heldFor((millis) => (millis < 1200 ? 2000 - millis : 30_000 - (millis - 1200)))
  const warned = yield* background(awaitLossWarning(hold, 5000))
  yield* TestClock.adjust("26 seconds")
  assert.isUndefined(warned.pollUnsafe())
  yield* TestClock.adjust("300 millis")
  assert.include((yield* Fiber.join(warned)).message, "its lease ends in 5.0 s")
})

test("A command whose lock was handed over, and is not extended, is stopped when a third of that lease remains", function* () {
  const hold = yield* heldFor((millis) => 2100 - millis)
  const warned = yield* background(awaitLossWarning(hold, 5000))
  yield* TestClock.adjust("1399 millis")
  assert.isUndefined(warned.pollUnsafe())
  yield* TestClock.adjust("2 millis")
  const { graceMillis, message } = yield* Fiber.join(warned)
  assert.include(message, "its lease ends in 0.7 s")
  // SIGKILL comes before its end, too
  assert.approximately(graceMillis, 630, 2)
})
