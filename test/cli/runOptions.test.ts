/**
 * `redis-lock run`: its time limit, what it says with `--verbose`, an outage of Redis, and flags that do not go together.
 */
import { RedisServer, TcpProxy } from "@effect-redis-lock/testing"
import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { freshName } from "../kit/names.ts"
import { until } from "../kit/eventually.ts"
import { redisUrl } from "../kit/server/redisUrl.ts"
import { client, endings, holdElsewhere, redisLock, start } from "./redisLock.ts"
import { testLive } from "../kit/test.ts"

/**
 * Has a command that stops itself, or waits, run for as long as `flag` says, which is long enough for the shell to begin: it does not end
 * before it has set its trap.
 */
const limited = Effect.fnUntraced(function* (flag: string, flags: ReadonlyArray<string>, then: string) {
  const script = `trap "echo bye; exit 5" TERM; echo ready; ${then}`
  for (let millis = 300; ; millis *= 2) {
    const args = ["run", flag, `${millis}ms`, ...flags, "--", "sh", "-c", script]
    const ended = yield* redisLock(args)
    if (ended.stdout !== "" || millis > 60_000) return ended
  }
})

describe("run --timeout", () => {
  testLive(
    "A command that runs longer than --timeout gets SIGTERM, and redis-lock exits with 124 and frees the lock",
    function* () {
      const name = freshName("cli")
      const ended = yield* redisLock(["run", "--timeout", "300ms", name, "--", "sleep", "60"])
      assert.deepStrictEqual(ended, {
        code: 124,
        stdout: "",
        stderr: "redis-lock: The command has run for 0.3s, its --timeout. Stopping it.\n"
      })
      const redis = yield* client()
      assert.strictEqual(yield* Effect.promise(() => redis.exists(name)), 0)
    }
  )

  testLive("A stopped command also handles the SIGTERM of --timeout", function* () {
    const ended = yield* limited("--timeout", [freshName("cli")], "kill -STOP $$")
    assert.deepStrictEqual([ended.code, ended.stdout], [124, "ready\nbye\n"])
  })
})

describe("run --max-hold", () => {
  for (const flags of [[], ["--permits", "1"]]) {
    testLive(
      `A command that holds its ${flags.length === 0 ? "lock" : "permit"} for longer than --max-hold is stopped, and redis-lock exits with 70`,
      function* () {
        const name = freshName("cli")
        const ended = yield* limited("--max-hold", [...flags, name], "sleep 60 & wait")
        assert.deepStrictEqual([ended.code, ended.stdout], [70, "ready\nbye\n"])
        assert.include(ended.stderr, `"${name}" was held for its --max-hold. Stopping the command.`)
        assert.include(ended.stderr, "Stopping the command.")
        const next = yield* redisLock(["run", "--wait", "10s", ...flags, name, "--", "true"])
        assert.strictEqual(next.code, 0, next.stderr)
        yield* Effect.flatMap(client(), (redis) => Effect.promise(() => redis.del(name, `{${name}}:timeout`)))
      }
    )
  }

  testLive("A stopped command also handles the SIGTERM of --max-hold", function* () {
    const ended = yield* limited("--max-hold", [freshName("cli")], "kill -STOP $$")
    assert.deepStrictEqual([ended.code, ended.stdout], [70, "ready\nbye\n"])
  })
})

describe("run --at-least", () => {
  testLive(
    "With --at-least redis-lock ends with its command, and the lock stays taken for the rest of the time",
    function* () {
      const name = freshName("cli")
      const redis = yield* client()
      const first = yield* redisLock(["run", "--at-least", "1h", "--verbose", name, "--", "sh", "-c", "exit 3"])
      assert.strictEqual(first.code, 3)
      assert.include(first.stderr, `released "${name}", which stays held until 1h00m after it was acquired`)
      assert.isAbove(yield* Effect.promise(() => redis.pttl(name)), 3_000_000)
      const second = yield* redisLock(["run", "--wait", "0", "--conflict-exit-code", "0", name, "--", "echo", "ran"])
      assert.deepStrictEqual([second.code, second.stdout], [0, ""])
      // an operator frees it
      const freed = yield* redisLock(["release", "--force", "--yes", name])
      assert.strictEqual(freed.code, 0, freed.stderr)
      assert.match(
        freed.stdout,
        /^Freed ".*"\. It was released by .*:\d+, whose minHold keeps it for [45]\dm\d\ds more\.$/m
      )
      assert.strictEqual(yield* Effect.promise(() => redis.exists(name)), 0)
    }
  )
})

describe("the command's surroundings", () => {
  testLive("A command inherits the URLs of Redis, and with --hide-redis-url it does not", function* () {
    const script = ["sh", "-c", 'echo "[$REDIS_URL] [$REDIS_QUORUM] $REDIS_LOCK_NAME $GREETING"']
    const name = freshName("cli")
    const env = { GREETING: "hello", REDIS_URL: redisUrl, REDIS_QUORUM: "" }
    const open = yield* redisLock(["run", name, "--", ...script], { env })
    assert.deepStrictEqual(open, { code: 0, stdout: `[${redisUrl}] [] ${name} hello\n`, stderr: "" })
    const hidden = yield* redisLock(["run", "--hide-redis-url", name, "--", ...script], {
      env: { ...env, REDIS_QUORUM: redisUrl }
    })
    assert.deepStrictEqual(hidden, { code: 0, stdout: `[] [] ${name} hello\n`, stderr: "" })
  })

  testLive("As the first process of a container redis-lock run says once that it needs an init", function* () {
    // what a container would make of it, without one
    const asFirst = "--import data:text/javascript,Object.defineProperty(process,'pid',{value:1})"
    const args = ["run", "--verbose", freshName("cli"), "--", "true"]
    const first = yield* redisLock(args, { env: { NODE_OPTIONS: asFirst } })
    assert.strictEqual(first.code, 0, first.stderr)
    assert.strictEqual(first.stderr.split("docker run --init").length, 2, first.stderr)
    assert.notInclude((yield* redisLock(args)).stderr, "--init")
  })
})

describe("run --verbose", () => {
  testLive("With --verbose redis-lock says for whom it waits, what it acquired and that it released it", function* () {
    const name = freshName("cli")
    const redis = yield* client()
    const owner = yield* holdElsewhere(redis, name)
    const running = yield* start(["run", "--verbose", name, "--", "echo", "ran"])
    const channel = `redisson_lock__channel:{${name}}`
    yield* until("it waits", async () => Number((await redis.pubsub("NUMSUB", channel))[1]) > 0)
    yield* Effect.promise(() => redis.multi().del(name).publish(channel, "0").exec())
    const { code, stderr, stdout } = yield* running.ended
    assert.deepStrictEqual([code, stdout], [0, "ran\n"])
    const lines = stderr.split("\n")
    assert.match(
      lines[0]!,
      new RegExp(`^redis-lock: waiting for "${name}": held by ${owner}, for \\d.*s more unless it is renewed$`)
    )
    assert.match(lines[1]!, new RegExp(`^redis-lock: acquired "${name}" after \\d.*s, token \\d{16}$`))
    assert.strictEqual(lines[2], `redis-lock: released "${name}"`)
  })

  testLive("With --verbose redis-lock says of several locks only for which of them it waits", function* () {
    const name = freshName("cli")
    const redis = yield* client()
    yield* holdElsewhere(redis, name)
    const args = ["run", "--verbose", "--wait", "200ms", "--lock", name, `${name} free`, "--", "true"]
    const { code, stderr } = yield* redisLock(args)
    assert.strictEqual(code, 75)
    assert.include(stderr, `redis-lock: waiting for "${name}": held by`)
    assert.notInclude(stderr, `waiting for "${name} free"`)
    yield* Effect.promise(() => redis.del(name))
  })

  testLive("With --verbose redis-lock says that it waits for a name that something else has", function* () {
    const name = freshName("cli")
    const redis = yield* client()
    yield* Effect.promise(() => redis.hset(name, "colour", "red"))
    const { code, stderr } = yield* redisLock(["run", "--verbose", "--wait", "200ms", name, "--", "true"])
    assert.strictEqual(code, 75)
    assert.include(stderr, `redis-lock: waiting for "${name}": something that is no lock has this name\n`)
    yield* Effect.promise(() => redis.del(name))
  })
})

describe("run --verbose --wait", () => {
  testLive("With --verbose the first request, which comes before the message, is part of --wait", function* () {
    const name = freshName("cli")
    const redis = yield* client()
    yield* holdElsewhere(redis, name)
    const proxy = yield* TcpProxy.make({ target: redisUrl })
    yield* proxy.delay("150 millis")
    // less than a round trip takes: it does not wait after that
    const args = ["run", "--redis", proxy.url, "--verbose", "--wait", "200ms", name, "--", "true"]
    const { code, stderr } = yield* redisLock(args)
    assert.strictEqual(code, 75, stderr)
    assert.include(stderr, `Lock "${name}" was not free; held by`)
    yield* Effect.promise(() => redis.del(name))
  })
})

describe("run while Redis restarts", () => {
  testLive("A redis-lock that waits for a lock outlives a Redis that is killed and started again", function* () {
    const server = yield* RedisServer.start()
    const name = freshName("cli")
    const channel = `redisson_lock__channel:{${name}}`
    const running = yield* Effect.scoped(
      Effect.gen(function* () {
        const redis = yield* client(server.url)
        yield* holdElsewhere(redis, name)
        return redis
      })
    ).pipe(Effect.andThen(start(["run", "--redis", server.url, name, "--", "echo", "ran"])))
    const redis = yield* client(server.url)
    yield* until("it waits", async () => Number((await redis.pubsub("NUMSUB", channel))[1]) > 0)
    yield* server.kill
    yield* server.restart
    const { code, stdout } = yield* running.ended
    assert.deepStrictEqual([code, stdout], [0, "ran\n"])
  })
})

describe("flags that do not go together", () => {
  testLive("Flags that do not go together exit with 64 and say what to do, before anything connects", function* () {
    const quorum = ["--redis", "redis://127.0.0.1:1", "--redis", "redis://127.0.0.1:2"]
    const mistakes = [
      [["--fair", "--permits", "3"], "--fair and --permits exclude each other"],
      [["--read", "--write"], "--read and --write exclude each other"],
      [["--at-least", "5m", "--write"], "--at-least needs one lock on a single Redis"],
      [["--at-least", "5m", ...quorum], "--at-least needs one lock on a single Redis"],
      [["--permits", "3", "--lock", "b"], "leave out --lock"],
      [["--lock", "x"], '"x" is given twice'],
      [["--conflict-exit-code", "3"], "--conflict-exit-code needs --wait"],
      [["--fair", ...quorum], "--fair needs a single Redis"],
      [["--permits", "0"], "a whole number from 1 to 2147483647"],
      [["--permits", "2147483648"], "a whole number from 1 to 2147483647"],
      [["--timeout", "0"], "at least 1ms"]
    ] as const
    const lines = mistakes.map(([flags]) => ["run", ...flags, "x", "--", "echo", "ran"])
    const all = yield* endings(lines, { env: { REDIS_URL: "redis://127.0.0.1:1" } })
    for (const [i, [, problem]] of mistakes.entries()) {
      const { code, stderr, stdout } = all[i]!
      assert.deepStrictEqual([code, stdout], [64, ""], stderr)
      assert.include(stderr, problem)
    }
  })
})
