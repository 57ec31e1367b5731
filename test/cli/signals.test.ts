import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { spawn } from "node:child_process"
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { bin, client, holdElsewhere, isAlive, isDead, start } from "./redisLock.ts"
import { freshName } from "../kit/names.ts"
import { redisUrl } from "../kit/server/redisUrl.ts"
import { until } from "../kit/eventually.ts"
import { testLive } from "../kit/test.ts"

const signals = [
  ["SIGINT", 130],
  ["SIGTERM", 143],
  ["SIGHUP", 129],
  ["SIGQUIT", 131],
  ["SIGUSR1", 138],
  ["SIGUSR2", 140],
  ["SIGALRM", 142],
  ["SIGSTKFLT", 144],
  ["SIGXCPU", 152],
  ["SIGVTALRM", 154],
  ["SIGPOLL", 157],
  ["SIGPWR", 158]
] as const

/** Signals that do not end a Node.js process. */
const harmless = ["SIGCHLD", "SIGCONT", "SIGPIPE", "SIGURG", "SIGWINCH", "SIGXFSZ"] as const

/** A node process that says what signals it gets, and ends only when told on stdin. */
const recorder = (role: string) => `
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => console.log("${role}", signal))
  console.log("${role}", process.pid)
  setInterval(() => {}, 1000)
`

describe("while the command runs", () => {
  for (const [signal, code] of signals) {
    testLive(`${signal} reaches the running command, and redis-lock ends with its code ${code}`, function* () {
      const name = freshName("cli")
      const redis = yield* client()
      const running = yield* start(["run", name, "--", "sh", "-c", "echo ready; exec sleep 60"])
      yield* running.says("ready\n")
      assert.strictEqual(yield* Effect.promise(() => redis.exists(name)), 1)
      yield* running.signal(signal)
      assert.deepStrictEqual(yield* running.ended, { code, stdout: "ready\n", stderr: "" })
      assert.strictEqual(yield* Effect.promise(() => redis.exists(name)), 0)
    })
  }

  testLive("Each signal reaches the whole group, each time, and the lock is held until the command ends", function* () {
    const name = freshName("cli")
    const redis = yield* client()
    const command = `
        ${recorder("parent")}
        require("child_process").spawn(process.execPath, ["-e", ${JSON.stringify(recorder("child"))}], { stdio: "inherit" })
        process.stdin.once("data", () => process.kill(0, "SIGKILL"))
      `
    const running = yield* start(["run", name, "--", "node", "-e", command])
    const parent = yield* running.number("parent")
    const child = yield* running.number("child")
    for (const [signal, times] of [
      ["SIGINT", 1],
      ["SIGTERM", 1],
      ["SIGHUP", 1],
      ["SIGTERM", 2]
    ] as const) {
      yield* running.signal(signal)
      yield* running.says(`parent ${signal}\n`, times)
      yield* running.says(`child ${signal}\n`, times)
    }
    assert.isTrue(yield* isAlive(parent))
    assert.isTrue(yield* isAlive(child))
    assert.strictEqual(yield* Effect.promise(() => redis.exists(name)), 1)
    yield* running.write("end\n")
    const { code, stderr, stdout } = yield* running.ended
    assert.deepStrictEqual([code, stderr], [137, ""])
    for (const role of ["parent", "child"]) assert.strictEqual(stdout.split(`${role} SIGTERM\n`).length - 1, 2)
    yield* until("the child process has ended", isDead(child))
  })

  testLive("A command that handles a signal decides the exit code", function* () {
    const script = 'trap "echo bye; exit 9" TERM; echo ready; while :; do sleep 0.05; done'
    const running = yield* start(["run", freshName("cli"), "--", "sh", "-c", script])
    yield* running.says("ready\n")
    yield* running.signal("SIGTERM")
    const ended = yield* running.ended
    assert.deepStrictEqual([ended.code, ended.stdout], [9, "ready\nbye\n"])
  })

  testLive("redis-lock exits with the code of its command also after its terminal has hung up", function* () {
    const folder = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "redis-lock-"))),
      (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
    )
    // `read` comes back when the terminal has hung up. The shells in between may be told so by SIGHUP, or not.
    const command = "trap '' HUP; echo ready; read line; exit 7"
    const redisLock = `"${process.execPath}" "${bin}" run ${freshName("cli")} -- sh -c "${command}"`
    const script = join(folder, "script")
    writeFileSync(
      script,
      `trap '' HUP\n${redisLock}\necho $? > ${folder}/code.new\nmv ${folder}/code.new ${folder}/code\n`
    )
    let output = ""
    const terminal = yield* Effect.acquireRelease(
      Effect.sync(() => {
        const env = { ...process.env, SHELL: "/bin/sh", REDIS_URL: redisUrl, REDIS_QUORUM: undefined }
        const child = spawn("script", ["-qec", `sh ${script}`, "/dev/null"], { env })
        child.stdout.setEncoding("utf8").on("data", (text: string) => (output += text))
        return child
      }),
      (child) => Effect.sync(() => void child.kill("SIGKILL"))
    )
    yield* until("the command runs", () => output.includes("ready"))
    terminal.kill("SIGKILL")
    yield* until("redis-lock has exited", () => existsSync(`${folder}/code`))
    assert.strictEqual(readFileSync(`${folder}/code`, "utf8"), "7\n")
  })

  for (const signal of harmless) {
    testLive(`${signal} ends neither redis-lock nor the command`, function* () {
      const name = freshName("cli")
      const redis = yield* client()
      const running = yield* start(["run", name, "--", "sh", "-c", "echo ready; read line; echo went on"])
      yield* running.says("ready\n")
      yield* running.signal(signal)
      yield* running.write("\n")
      assert.deepStrictEqual(yield* running.ended, { code: 0, stdout: "ready\nwent on\n", stderr: "" })
      assert.strictEqual(yield* Effect.promise(() => redis.exists(name)), 0)
    })
  }

  for (const [what, defect, code] of [
    ["throws what nobody catches", 'throw new Error("a bug")', 1],
    ["calls process.exit", "process.exit(3)", 3]
  ] as const) {
    testLive(`A redis-lock that ${what} does not leave its command running without the lock`, function* () {
      const module = encodeURIComponent(`process.on("SIGWINCH", () => { ${defect} })`)
      const env = { NODE_OPTIONS: `--import=data:text/javascript,${module}` }
      const command = 'sh -c "echo child \\$\\$; exec sleep 60" & echo parent $$; wait; sleep 60'
      const running = yield* start(["run", freshName("cli"), "--", "sh", "-c", command], { env })
      const parent = yield* running.number("parent")
      const child = yield* running.number("child")
      yield* running.signal("SIGWINCH")
      // ends only when the command and its child have closed stdout
      assert.strictEqual((yield* running.ended).code, code)
      yield* until("the command has ended", isDead(parent))
      yield* until("its child has ended", isDead(child))
    })
  }

  testLive("Ctrl-Z does not stop redis-lock, which has a lock to renew", function* () {
    const running = yield* start(["run", freshName("cli"), "--", "sh", "-c", "echo ready; read line; echo went on"])
    yield* running.says("ready\n")
    yield* running.signal("SIGTSTP")
    yield* running.write("\n")
    assert.deepStrictEqual(yield* running.ended, { code: 0, stdout: "ready\nwent on\n", stderr: "" })
  })
})

describe("while waiting for the lock", () => {
  for (const [signal, code] of signals) {
    testLive(`${signal} ends a wait for the lock with code ${code}, and nothing is left in Redis`, function* () {
      const name = freshName("cli")
      const redis = yield* client()
      const channel = `redisson_lock__channel:{${name}}`
      const subscribers = Effect.map(
        Effect.promise(() => redis.pubsub("NUMSUB", channel)),
        ([, count]) => Number(count)
      )
      const owner = yield* holdElsewhere(redis, name)
      const running = yield* start(["run", name, "--", "echo", "ran"])
      yield* until(
        "one waiter listens",
        Effect.map(subscribers, (count) => count === 1)
      )
      yield* running.signal(signal)
      const ended = yield* running.ended
      assert.deepStrictEqual([ended.code, ended.stdout], [code, ""])
      assert.strictEqual(ended.stderr, `redis-lock: ${signal}: gave up waiting for the lock\n`)
      yield* until(
        "nobody listens",
        Effect.map(subscribers, (count) => count === 0)
      )
      assert.deepStrictEqual(yield* Effect.promise(() => redis.hgetall(name)), { [owner]: "1" })
      assert.deepStrictEqual(yield* Effect.promise(() => redis.keys(`*${name}*`)), [name])
    })
  }
})
