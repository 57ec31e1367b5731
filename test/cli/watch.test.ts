/**
 * `redis-lock watch`, on a terminal and as lines.
 */
import { RedisServer } from "@effect-redis-lock/testing"
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { execFileSync, spawn } from "node:child_process"
import { until } from "../kit/eventually.ts"
import { freshName } from "../kit/names.ts"
import { commandsRun, scriptsRun } from "../kit/server/commandsOf.ts"
import { redisUrl } from "../kit/server/redisUrl.ts"
import { bin, client, holdElsewhere, redisLock, start } from "./redisLock.ts"
import { testLive } from "../kit/test.ts"

testLive("redis-lock watch --json prints a line for each lock that is held, acquired and released", function* () {
  const name = freshName("watch")
  const redis = yield* client()
  const owner = yield* holdElsewhere(redis, `${name}:a`)
  const running = yield* start(["watch", "--json", "--interval", "100ms", `${name}:*`])
  yield* running.says(`"change":"found","name":"${name}:a"`)
  yield* running.says(`"owner":"${owner}"`)
  yield* holdElsewhere(redis, `${name}:b`)
  yield* running.says(`"change":"acquired","name":"${name}:b"`)
  yield* Effect.promise(() => redis.del(`${name}:a`))
  yield* running.says(`"change":"released","name":"${name}:a"`)
  yield* running.signal("SIGKILL")
})

testLive("redis-lock watch says of a lock that its minHold keeps who has released it", function* () {
  const name = freshName("watch")
  const redis = yield* client()
  yield* holdElsewhere(redis, `${name}:a`)
  const running = yield* start(["watch", "--interval", "100ms", `${name}:*`])
  yield* running.says(` found    ${name}:a: held by `)
  const job = yield* start(["run", `${name}:b`, "--at-least", "1h", "--", "true"])
  yield* job.ended
  yield* running.says(` kept     ${name}:b: released by `)
  yield* running.signal("SIGKILL")
})

testLive("redis-lock watch exits with 69 where Redis refuses to let it look", function* () {
  const server = yield* RedisServer.start()
  const redis = yield* client(server.url)
  yield* Effect.promise(() => redis.call("ACL", "SETUSER", "blind", "on", ">secret", "~*", "&*", "+@all", "-scan"))
  const { code, stderr } = yield* redisLock(["watch", "--redis", `redis://blind:secret@127.0.0.1:${server.port}`])
  assert.deepStrictEqual([code, stderr.split("NOPERM").length > 1], [69, true], stderr)
})

testLive("redis-lock watch goes on where Redis refuses a later look, and tells so", function* () {
  const server = yield* RedisServer.start()
  const redis = yield* client(server.url)
  const allow = (rule: string) => Effect.promise(() => redis.call("ACL", "SETUSER", "seer", rule))
  for (const rule of ["on", ">secret", "~*", "&*", "+@all"]) yield* allow(rule)
  const url = `redis://seer:secret@127.0.0.1:${server.port}`
  const running = yield* start(["watch", "--json", "--interval", "100ms", "--redis", url])
  // nothing is held: nothing is printed
  const looks = 10 * 3
  yield* until(
    "it has looked",
    Effect.map(commandsRun(redis, "scan"), (scans) => scans > looks)
  )
  yield* allow("-scan")
  yield* running.warns("NOPERM")
  yield* allow("+scan")
  const owner = yield* holdElsewhere(redis, "later")
  yield* running.says(owner)
  yield* running.signal("SIGKILL")
})

/** Starts redis-lock watch on a terminal with so many rows. */
const onTerminal = (rows: number, args: ReadonlyArray<string>, onOutput: (text: string) => void) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const command = [process.execPath, bin, "watch", "--interval", "100ms", ...args].join(" ")
      const onTty = `echo "pid $$ on $(tty)"; stty rows ${rows} cols 160; exec ${command}`
      const child = spawn("script", ["-qec", onTty, "/dev/null"], {
        env: { ...process.env, REDIS_URL: redisUrl, REDIS_QUORUM: undefined }
      })
      child.stdout.setEncoding("utf8").on("data", onOutput)
      return child
    }),
    (child) => Effect.sync(() => void child.kill("SIGKILL"))
  )

testLive("redis-lock watch never scrolls its terminal, however many locks there are", function* () {
  const name = freshName("watch")
  const redis = yield* client()
  for (let i = 0; i < 9; i++) yield* holdElsewhere(redis, `${name}:${i}`)
  let output = ""
  const child = yield* onTerminal(8, [`${name}:*`], (text) => (output += text))
  const ended = new Promise((resolve) => child.on("close", resolve))
  yield* until("it shows the locks", () => output.includes(`${name}:4`) && output.includes("9 held of"))
  child.stdin.write("q")
  yield* Effect.promise(() => ended)
  // each picture begins in the first line
  for (const picture of output.split("\u001b[H").slice(1)) {
    assert.isAtMost(picture.split("\u001b[?25h")[0]!.split("\n").length, 8)
  }
})

testLive("redis-lock watch draws and takes keys while its first look lasts", function* () {
  const server = yield* RedisServer.start()
  const redis = yield* client(server.url)
  const hashes = 50_000
  const fill = `for i = 1, ${hashes} do redis.call('HSET', 'hash:' .. i, 'field', '1') end`
  yield* Effect.promise(() => redis.eval(fill, 0))
  let output = ""
  const child = yield* onTerminal(8, ["--redis", server.url], (text) => (output += text))
  const ended = new Promise<number | null>((resolve) => child.on("close", resolve))
  yield* until("it draws", () => output.includes("0 held of"))
  child.stdin.write("q")
  assert.strictEqual(yield* Effect.promise(() => ended), 0)
  // a look runs one for each
  assert.isBelow(yield* scriptsRun(redis), hashes)
})

testLive(
  "redis-lock watch that was stopped takes its terminal again when it goes on, whatever the shell did to it",
  function* () {
    let output = ""
    const child = yield* onTerminal(8, [freshName("watch")], (text) => (output += text))
    const ended = new Promise<number | null>((resolve) => child.on("close", resolve))
    yield* until("it draws", () => output.includes("0 held of"))
    const [, pid, tty] = /pid (\d+) on (\S+)/.exec(output)!
    // as after a SIGSTOP; a stopped command would also stop script(1)
    execFileSync("stty", ["-F", tty!, "sane"])
    output = ""
    process.kill(Number(pid), "SIGCONT")
    yield* until("it draws on its own screen", () => output.split("\u001b[?1049h")[1]?.includes("0 held of") === true)
    // no Enter: the terminal hands each key over
    child.stdin.write("q")
    assert.strictEqual(yield* Effect.promise(() => ended), 0)
  }
)

testLive(
  "redis-lock watch on a terminal says that its picture is old while Redis is away, and no longer when it is back",
  function* () {
    const server = yield* RedisServer.start()
    let output = ""
    const child = yield* onTerminal(8, ["--redis", server.url], (text) => (output += text))
    const ended = new Promise<number | null>((resolve) => child.on("close", resolve))
    const lastLine = () => output.split("\u001b[H").at(-1)!.split("\n").at(-1)!
    yield* until("it draws", () => lastLine().includes("q quit"))
    yield* server.kill
    yield* until("it says so", () => /Redis cannot be asked \(\w+\): this was seen last\./.test(lastLine()))
    yield* server.restart
    yield* until("it is up to date again", () => lastLine().includes("q quit"))
    child.stdin.write("q")
    assert.strictEqual(yield* Effect.promise(() => ended), 0)
  }
)

testLive(
  "redis-lock watch draws the held locks on a terminal, frees the selected one, and gives the terminal back",
  function* () {
    const name = freshName("watch")
    const redis = yield* client()
    const owner = yield* holdElsewhere(redis, name)
    let output = ""
    const child = yield* onTerminal(24, ["--allow-release", name], (text) => (output += text))
    const ended = new Promise<number | null>((resolve) => child.on("close", resolve))
    yield* until("it shows the holder", () => output.includes(owner) && output.includes("1 held of"))
    assert.match(output, /#{10} {2}\d/)
    child.stdin.write("f")
    yield* until("it asks", () => output.includes(`Free "${name}"?`))
    const heir = owner.replace(/:.*/, ":heir")
    yield* Effect.promise(() => redis.multi().hdel(name, owner).hset(name, heir, 1).pexpire(name, 60_000).exec())
    yield* until("it shows the new holder", () => output.includes(heir))
    child.stdin.write("y")
    yield* until("it frees nobody else", () => output.includes("is held by others now: nothing was freed"))
    output = ""
    child.stdin.write("f")
    yield* until("it asks again", () => output.includes(`Free "${name}"?`))
    child.stdin.write("y")
    yield* until("the lock is free", async () => (await redis.exists(name)) === 0)
    yield* until("it shows no lock", () => output.includes("0 held of"))
    child.stdin.write("q")
    assert.strictEqual(yield* Effect.promise(() => ended), 0)
    // the cursor and the former screen
    assert.isTrue(output.trimEnd().endsWith("\u001b[?25h\u001b[?1049l"))
  }
)
