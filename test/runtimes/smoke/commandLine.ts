/**
 * What a user of the command `redis-lock` would try first: `commandLine.js '<servers>'`.
 */
import { Effect } from "effect"
import assert from "node:assert/strict"
import { fileURLToPath } from "node:url"
import { startPeer } from "./peer.ts"
import { runChecks, type Servers } from "./results.ts"

const { prefix, url } = JSON.parse(process.argv[2]!) as Servers

/** Where npm has put the program that a package's user runs as `redis-lock`. */
const redisLock = fileURLToPath(new URL("node_modules/@effect-redis-lock/cli/bundle/redis-lock.js", import.meta.url))

const run = (...args: ReadonlyArray<string>) =>
  startPeer(redisLock, ["run", "--redis", url, "--prefix", prefix, ...args])
const exitCode = (...args: ReadonlyArray<string>) =>
  Effect.scoped(Effect.flatMap(run(...args), (process) => process.exitCode))

await Effect.runPromise(
  runChecks({
    "redis-lock run exits with the exit code of its command": Effect.gen(function* () {
      assert.equal(yield* exitCode("code", "--", "sh", "-c", "exit 7"), 7)
    }),

    "redis-lock run waits for another one, or gives up with 75": Effect.gen(function* () {
      const first = yield* run("waited for", "--", "sh", "-c", "echo in; read line; echo out")
      yield* first.says("in")
      assert.equal(yield* exitCode("--wait", "0", "waited for", "--", "true"), 75)
      const second = yield* run("waited for", "--", "echo", "in")
      yield* first.tell("leave")
      yield* first.says("out")
      assert.equal(yield* first.exitCode, 0)
      yield* second.says("in")
      assert.equal(yield* second.exitCode, 0)
    }).pipe(Effect.scoped),

    "redis-lock ls lists a lock that is held": Effect.gen(function* () {
      const holder = yield* run("listed", "--", "sh", "-c", "echo in; read line")
      yield* holder.says("in")
      const list = yield* startPeer(redisLock, ["ls", "--redis", url, "--prefix", prefix, "listed"])
      const lines = yield* list.output
      assert.match(lines, /^listed\b/m)
      yield* holder.tell("leave")
      assert.equal(yield* holder.exitCode, 0)
    }).pipe(Effect.scoped)
  })
)
