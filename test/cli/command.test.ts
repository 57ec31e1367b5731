import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { client, redisLock, start } from "./redisLock.ts"
import { freshName } from "../kit/names.ts"
import { until } from "../kit/eventually.ts"
import { testLive } from "../kit/test.ts"

/** A command that prints the arguments it got. */
const showArguments = ["node", "-e", "console.log(JSON.stringify(process.argv.slice(1)))", "--"]

testLive("The command runs under the lock, and sees its name, token and owner", function* () {
  const name = freshName("cli")
  const redis = yield* client()
  const script = 'echo "$REDIS_LOCK_NAME $REDIS_LOCK_TOKEN $REDIS_LOCK_OWNER"; echo "$GREETING"; read line'
  const running = yield* start(["run", name, "--", "sh", "-c", script], { env: { GREETING: "hello" } })
  yield* running.says("hello\n")
  const held = yield* Effect.promise(() => redis.hgetall(name))
  const token = yield* Effect.promise(() => redis.get(`redisson_lock_token:{${name}}`))
  yield* running.write("go on\n")
  const { code, stderr, stdout } = yield* running.ended
  assert.deepStrictEqual([code, stderr], [0, ""])
  const [seenName, seenToken, seenOwner] = stdout.split("\n")[0]!.split(" ")
  assert.strictEqual(seenName, name)
  assert.strictEqual(seenToken, token)
  assert.deepStrictEqual(held, { [seenOwner!]: "1" })
  assert.strictEqual(yield* Effect.promise(() => redis.exists(name)), 0)
})

testLive("The command keeps others out while it runs, and wakes them when it ends", function* () {
  const name = freshName("cli")
  const redis = yield* client()
  const first = yield* start(["run", name, "--", "sh", "-c", "echo in; read line; echo out"])
  yield* first.says("in\n")
  const second = yield* start(["run", name, "--", "echo", "second"])
  const channel = `redisson_lock__channel:{${name}}`
  yield* until("the second waits", async () => Number((await redis.pubsub("NUMSUB", channel))[1]) > 0)
  assert.strictEqual((yield* redisLock(["run", "--wait", "0", name, "--", "true"])).code, 75)
  yield* first.write("\n")
  assert.strictEqual((yield* first.ended).stdout, "in\nout\n")
  assert.deepStrictEqual(yield* second.ended, { code: 0, stdout: "second\n", stderr: "" })
})

testLive("The command gets its arguments untouched", function* () {
  const args = ["-la", "--json", "--wait", "5s", "--help", "--", "-v", "", " ", "a b", "*", "'\"\\", "é\n"]
  const flags = ["--wait", "5s"]
  for (const before of [
    [...flags, freshName("cli")],
    [freshName("cli"), ...flags]
  ]) {
    const { code, stderr, stdout } = yield* redisLock(["run", ...before, "--", ...showArguments, ...args])
    assert.deepStrictEqual([code, stderr], [0, ""])
    assert.deepStrictEqual(JSON.parse(stdout), args)
  }
})

testLive("The command is not run by a shell unless one is named", function* () {
  const text = "$HOME `id` $(id) ; exit 3 | cat > /dev/null && * ~"
  const plain = yield* redisLock(["run", freshName("cli"), "--", "echo", text])
  assert.deepStrictEqual(plain, { code: 0, stdout: `${text}\n`, stderr: "" })
  const shell = yield* redisLock(["run", freshName("cli"), "--", "sh", "-c", 'echo "$HOME"; exit 3'], {
    env: { HOME: "/somewhere" }
  })
  assert.deepStrictEqual(shell, { code: 3, stdout: "/somewhere\n", stderr: "" })
})

testLive("The command has redis-lock's stdin, stdout and stderr to itself", function* () {
  const much = "0123456789abcdef".repeat(20_000)
  const copied = yield* redisLock(["run", freshName("cli"), "--", "cat"], { stdin: much })
  assert.deepStrictEqual([copied.code, copied.stderr], [0, ""])
  assert.isTrue(copied.stdout === much)
  const spoken = yield* redisLock(["run", freshName("cli"), "--", "sh", "-c", "echo out; echo err >&2"])
  assert.deepStrictEqual(spoken, { code: 0, stdout: "out\n", stderr: "err\n" })
})

testLive("The command leads a process group of its own", function* () {
  const running = yield* start(["run", freshName("cli"), "--", "sh", "-c", "echo pid $$; read line"])
  const pid = yield* running.number("pid")
  // signal 0 to a group whose leader it is
  assert.isTrue(process.kill(-pid, 0))
  yield* running.write("\n")
  assert.strictEqual((yield* running.ended).code, 0)
})
