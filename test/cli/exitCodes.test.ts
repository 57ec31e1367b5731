import { RedisServer } from "@effect-redis-lock/testing"
import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { client, endings, holdElsewhere, redisLock, start } from "./redisLock.ts"
import { redisUrl } from "../kit/server/redisUrl.ts"
import { freshName } from "../kit/names.ts"
import { until } from "../kit/eventually.ts"
import { testLive } from "../kit/test.ts"

const nobodyListens = "redis://somebody:s3cret@127.0.0.1:1"

describe("the command's exit code", () => {
  for (const [script, code] of [
    ["true", 0],
    ["exit 1", 1],
    ["exit 75", 75],
    ["exit 255", 255],
    ["kill -TERM $$", 143],
    ["kill -KILL $$", 137],
    ["kill -INT $$", 130]
  ] as const) {
    testLive(`The exit code of sh -c '${script}' is passed through as ${code}`, function* () {
      const ended = yield* redisLock(["run", freshName("cli"), "--", "sh", "-c", script])
      assert.deepStrictEqual(ended, { code, stdout: "", stderr: "" })
    })
  }

  testLive("The exit code is 127 if the command is not found, and the lock is free again", function* () {
    const name = freshName("cli")
    const ended = yield* redisLock(["run", name, "--", "no-such-command-anywhere", "x"])
    assert.strictEqual(ended.code, 127)
    assert.strictEqual(ended.stderr, "redis-lock: no-such-command-anywhere: command not found\n")
    const redis = yield* client()
    assert.strictEqual(yield* Effect.promise(() => redis.exists(name)), 0)
  })

  testLive("The exit code of an empty command is 127", function* () {
    assert.strictEqual((yield* redisLock(["run", freshName("cli"), "--", ""])).code, 127)
  })

  for (const file of ["/etc/passwd", "/", "/etc/passwd/x"]) {
    testLive(`The exit code is 126 if the command cannot be executed: ${file}`, function* () {
      const ended = yield* redisLock(["run", freshName("cli"), "--", file])
      assert.strictEqual(ended.code, 126)
      assert.match(ended.stderr, /^redis-lock: \/.*: cannot be executed \(E\w+\)\n$/)
    })
  }
})

describe("75: the wait ran out", () => {
  for (const wait of ["0", "0.3", "300ms"]) {
    testLive(`redis-lock exits with 75 when the wait runs out: --wait ${wait}`, function* () {
      const name = freshName("cli")
      const redis = yield* client()
      const owner = yield* holdElsewhere(redis, name)
      const ended = yield* redisLock(["run", "--wait", wait, name, "--", "echo", "ran"])
      assert.strictEqual(ended.code, 75)
      assert.strictEqual(ended.stdout, "")
      assert.include(ended.stderr, `redis-lock: Lock "${name}" was not free${wait === "0" ? ";" : " within"}`)
      assert.include(ended.stderr, owner)
      assert.deepStrictEqual(yield* Effect.promise(() => redis.hgetall(name)), { [owner]: "1" })
    })
  }

  testLive("redis-lock does not exit with 75 when the lock becomes free in time", function* () {
    const name = freshName("cli")
    const redis = yield* client()
    yield* holdElsewhere(redis, name)
    yield* Effect.promise(() => redis.pexpire(name, 1500))
    const ended = yield* redisLock(["run", name, "--wait", "1m", "--", "echo", "ran"])
    assert.deepStrictEqual(ended, { code: 0, stdout: "ran\n", stderr: "" })
  })
})

describe("69: Redis cannot be reached, or refuses", () => {
  for (const [what, args] of [
    ["run", ["run", "--redis", nobodyListens, "x", "--", "echo", "ran"]],
    ["ls", ["ls", "--redis", nobodyListens]]
  ] as const) {
    testLive(`redis-lock exits with 69 when nobody listens: ${what}`, function* () {
      const ended = yield* redisLock(args)
      assert.strictEqual(ended.code, 69)
      assert.strictEqual(ended.stdout, "")
      assert.match(ended.stderr, /^redis-lock: cannot connect to Redis: ConnectionRefused/)
      assert.notInclude(ended.stderr, "s3cret")
    })
  }

  testLive("REDIS_URL is used if there is no --redis, and --redis wins over it", function* () {
    const env = { REDIS_URL: nobodyListens }
    assert.strictEqual((yield* redisLock(["run", freshName("cli"), "--", "true"], { env })).code, 69)
    const given = yield* redisLock(["run", freshName("cli"), "--redis", redisUrl, "--", "true"], { env })
    assert.deepStrictEqual(given, { code: 0, stdout: "", stderr: "" })
  })

  testLive("redis-lock exits with 69 when the password is wrong, and does not repeat it", function* () {
    const url = new URL(redisUrl)
    url.username = "nobody"
    url.password = "s3cret"
    const ended = yield* redisLock(["run", "--redis", url.href, freshName("cli"), "--", "echo", "ran"])
    assert.strictEqual(ended.code, 69)
    assert.strictEqual(ended.stdout, "")
    assert.include(ended.stderr, "NotAuthenticated")
    assert.notInclude(ended.stderr, "s3cret")
  })

  testLive("What ioredis says of a user that may not run INFO is a line like all others of redis-lock", function* () {
    const server = yield* RedisServer.start()
    const redis = yield* client(server.url)
    yield* Effect.promise(() => redis.call("ACL", "SETUSER", "worker", "on", ">s3cret", "~*", "&*", "+@all", "-info"))
    const env = { REDIS_URL: server.url.replace("redis://", "redis://worker:s3cret@") }
    const ended = yield* redisLock(["run", freshName("cli"), "--", "true"], { env })
    assert.strictEqual(ended.code, 0)
    assert.match(ended.stderr, /^redis-lock: .*INFO.*\n$/)
  })

  testLive(
    "redis-lock run is silent about a server that may not report changes: nobody has to do anything",
    function* () {
      const server = yield* RedisServer.start()
      const redis = yield* client(server.url)
      const rules = ["on", ">s3cret", "~*", "&*", "+@all", "-client|tracking"]
      yield* Effect.promise(() => redis.call("ACL", "SETUSER", "worker", ...rules))
      const env = { REDIS_URL: server.url.replace("redis://", "redis://worker:s3cret@") }
      const running = yield* start(["run", freshName("cli"), "--", "sh", "-c", "read line"], { env })
      yield* until("it was refused", async () => String(await redis.call("ACL", "LOG")).includes("client|tracking"))
      yield* running.write("\n")
      assert.deepStrictEqual(yield* running.ended, { code: 0, stdout: "", stderr: "" })
    }
  )

  testLive("redis-lock exits with 69 when the key is not a lock", function* () {
    const name = freshName("cli")
    const redis = yield* client()
    yield* Effect.promise(() => redis.set(name, "text"))
    const ended = yield* redisLock(["run", name, "--", "echo", "ran"])
    assert.strictEqual(ended.code, 69)
    assert.include(ended.stderr, "WRONGTYPE")
    yield* Effect.promise(() => redis.del(name))
  })
})

describe("64: bad usage", () => {
  const run = (...args: ReadonlyArray<string>) => ["run", ...args]

  testLive("redis-lock exits with 64 on bad usage", function* () {
    const mistakes: ReadonlyArray<readonly [what: string, args: ReadonlyArray<string>]> = [
      ["nothing at all", []],
      ["an unknown subcommand", ["lock", "x", "--", "echo", "ran"]],
      ["no name, no command", run()],
      ["no command", run("x")],
      ["no command behind --", run("x", "--")],
      ["no name", run("--", "echo")],
      ["the name behind --", run("--", "x", "echo", "ran")],
      ["no --", run("x", "echo", "ran")],
      ["a part of the command before --", run("x", "echo", "--", "ran")],
      ["two names", run("x", "y", "--", "echo", "ran")],
      ["an unknown flag", run("--ttl", "5s", "x", "--", "echo", "ran")],
      ["a flag without its value", run("x", "--wait", "--", "echo", "ran")],
      ["a flag given twice", run("--wait", "1s", "--wait", "2s", "x", "--", "echo", "ran")],
      ["no duration", run("--wait", "soon", "x", "--", "echo", "ran")],
      ["an unknown unit", run("--wait", "1d", "x", "--", "echo", "ran")],
      ["a unit before a number", run("--wait", "s5", "x", "--", "echo", "ran")],
      ["an empty duration", run("--wait=", "x", "--", "echo", "ran")],
      ["a negative duration", run("--wait=-5s", "x", "--", "echo", "ran")],
      ["an endless lease", run("--lease", "9".repeat(400), "x", "--", "echo", "ran")],
      ["a lease too short", run("--lease", "999ms", "x", "--", "echo", "ran")],
      ["an empty name", run("", "--", "echo", "ran")],
      ["a name too long", run("x".repeat(1025), "--", "echo", "ran")],
      ["no URL", run("--redis", "localhost:6379", "x", "--", "echo", "ran")],
      ["an empty URL", run("--redis", "", "x", "--", "echo", "ran")],
      ["a URL of something else", run("--redis", "http://u:s3cret@127.0.0.1", "x", "--", "echo", "ran")],
      ["a database that is none", run("--redis", "redis://:s3cret@127.0.0.1/abc", "x", "--", "echo", "ran")],
      [
        "an option of ioredis",
        run("--redis", "redis://:s3cret@127.0.0.1?connectTimeout=abc", "x", "--", "echo", "ran")
      ],
      ["ls of two patterns", ["ls", "a", "b"]],
      ["ls with an unknown flag", ["ls", "--xml"]]
    ]
    const all = yield* endings(mistakes.map(([, args]) => args))
    for (const [i, { code, stderr, stdout }] of all.entries()) {
      assert.deepStrictEqual([code, stdout], [64, ""], mistakes[i]![0])
      assert.notStrictEqual(stderr, "", mistakes[i]![0])
      assert.notInclude(stderr, "s3cret")
    }
    // and so does its process
    assert.strictEqual((yield* redisLock([])).code, 64)
  })

  testLive("A message about bad usage says what is wrong, and what is right", function* () {
    const { stderr } = yield* redisLock(["run", "x", "--wait", "soon", "--", "true"])
    assert.deepStrictEqual(stderr.split("\n"), [
      `redis-lock: Invalid value for flag --wait: "soon". Expected: 500ms, 10s, 2m, 1h30m, or a plain number of seconds`,
      "redis-lock: usage: redis-lock run [FLAGS] NAME -- COMMAND ARGS...",
      "redis-lock: more: redis-lock run --help",
      ""
    ])
  })

  testLive(
    "A message about bad usage is one, however much follows from the mistake, and echoes what was typed",
    function* () {
      const mistakes = [
        [run("--wait", "-5s", "x", "--", "true"), "Missing value for flag --wait. Expected: DURATION"],
        [
          run("--wait", "x", "--", "true"),
          'Invalid value for flag --wait: "x". Expected: 500ms, 10s, 2m, 1h30m, or a plain number of seconds'
        ],
        [
          run("--permits", "two", "x", "--", "true"),
          'Invalid value for flag --permits: "two". Expected: a whole number from 1 to 2147483647'
        ],
        [["ui", "--port", "http"], 'Invalid value for flag --port: "http". Expected: a whole number from 0 to 65535'],
        [run("--lease", "0", "x", "--", "true"), 'Invalid value for flag --lease: "0". Expected: at least 1s'],
        [run("--timeout", "0s", "x", "--", "true"), 'Invalid value for flag --timeout: "0s". Expected: at least 1ms'],
        [["watch", "--interval", "10ms"], 'Invalid value for flag --interval: "10ms". Expected: at least 100ms'],
        [["x".repeat(1100)], `Unknown subcommand "${"x".repeat(60)}..." for "redis-lock"`]
      ] as const
      const all = yield* endings(mistakes.map(([args]) => args))
      for (const [i, [, problem]] of mistakes.entries()) {
        const [first, second] = all[i]!.stderr.split("\n")
        assert.strictEqual(first, `redis-lock: ${problem}`)
        assert.match(second!, /^redis-lock: usage: /)
      }
    }
  )

  testLive("A message about a bad URL says which part is wrong, and does not show the URL", function* () {
    const urls = [
      ["redis://:s3cret@h/abc", "the database (what follows the host) must be an integer, 0 or greater"],
      ["redis://:s3cret@h:99999", "the port must be an integer from 1 to 65535"],
      ["redis://:s3cret@h?tls=", "it must not have query parameters"]
    ] as const
    const given = yield* endings(urls.map(([url]) => ["ls", "--redis", url]))
    const inherited = yield* redisLock(["ls"], { env: { REDIS_URL: urls[0][0] } })
    for (const [i, { code, stderr }] of [...given, inherited].entries()) {
      assert.strictEqual(code, 64)
      assert.include(stderr, urls[i % urls.length]![1])
      assert.notInclude(stderr, "s3cret")
    }
  })

  testLive("redis-lock exits with 64 when REDIS_URL is not a URL; an empty one counts as absent", function* () {
    const bad = yield* redisLock(["ls"], { env: { REDIS_URL: "s3cret" } })
    assert.strictEqual(bad.code, 64)
    assert.include(bad.stderr, "redis-lock: REDIS_URL: it must look like redis://")
    assert.notInclude(bad.stderr, "s3cret")
    const empty = yield* redisLock(["ls", "nothing:*"], { env: { REDIS_URL: "" } })
    // redis://localhost:6379, where there may or may not be a server
    assert.include([0, 69], empty.code)
  })
})

describe("help", () => {
  testLive("The help documents each exit code and variable, on stdout", function* () {
    const { code, stderr, stdout } = yield* redisLock(["run", "--help"])
    assert.deepStrictEqual([code, stderr], [0, ""])
    for (const exitCode of ["64", "69", "70", "75", "126", "127", "128+n"]) {
      assert.match(stdout, new RegExp(`^ +${exitCode.replace("+", "\\+")} +\\w`, "m"))
    }
    for (const variable of ["REDIS_LOCK_NAME", "REDIS_LOCK_TOKEN", "REDIS_LOCK_OWNER", "$REDIS_URL"]) {
      assert.include(stdout, variable)
    }
  })

  testLive("redis-lock --version prints the version", function* () {
    assert.match((yield* redisLock(["--version"])).stdout, /^redis-lock \d+\.\d+\.\d+\n$/)
  })
})
