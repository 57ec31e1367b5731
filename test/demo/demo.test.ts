/**
 * The demo, run as a user runs it: what it says, how it exits, and what it leaves behind.
 */
import { NodeServices } from "@effect/platform-node"
import { assert, layer } from "@effect/vitest"
import { Effect, FileSystem, Stream } from "effect"
import { ChildProcess } from "effect/process"
import { existsSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { eventually } from "../kit/eventually.ts"
import { redisUrl } from "../kit/server/redisUrl.ts"
import { isLasting } from "../kit/server/lastingKeys.ts"
import { bare } from "../kit/server/bareRedis.ts"

const program = fileURLToPath(new URL("../../packages/demo/dist/main.js", import.meta.url))

/** Starts the demo in an environment that holds nothing but what is given, and a directory for its temporary files. */
const start = Effect.fnUntraced(function* (environment: Record<string, string>) {
  const fs = yield* FileSystem.FileSystem
  const directory = yield* fs.makeTempDirectoryScoped({ prefix: "demo-test-" })
  const demo = yield* ChildProcess.make(process.execPath, [program], {
    env: { ...environment, TMPDIR: directory, HOME: directory },
    forceKillAfter: "10 seconds"
  })
  return { demo, lines: demo.all.pipe(Stream.decodeText(), Stream.splitLines), directory }
})

const run = Effect.fnUntraced(function* (environment: Record<string, string>) {
  const fs = yield* FileSystem.FileSystem
  const { demo, directory, lines } = yield* start(environment)
  const output = yield* Stream.runCollect(lines)
  const balances = output.flatMap((line) => {
    const [, deposits, balance, lost] = /(\d+) deposits .* ledger says (\d+): (\d+) lost/.exec(line) ?? []
    return lost === undefined ? [] : [{ deposits: Number(deposits), balance: Number(balance), lost: Number(lost) }]
  })
  assert.strictEqual(yield* demo.exitCode, 0, output.join("\n"))
  assert.deepStrictEqual(yield* fs.readDirectory(directory), [], "temporary files")
  return { output, text: output.join("\n"), balances }
})

const redis = bare({ url: redisUrl })

/** What demos have left in Redis, apart from fencing tokens and labels that expire. */
const leftInRedis = Effect.gen(function* () {
  const client = yield* redis
  const keys = yield* Effect.promise(() => client.keys("*effect-redis-lock:demo:*"))
  return yield* Effect.filter(keys, (key) =>
    isLasting(key) ? Effect.promise(async () => (await client.pttl(key)) < 0) : Effect.succeed(true)
  )
}).pipe(Effect.scoped)

/** Under the lock nothing is lost, the tokens rise, and the dead worker's token is of no use any more. */
const assertSafe = ({ balances, output, text }: Effect.Success<ReturnType<typeof run>>) => {
  const [withoutLock, withLock, withKill] = balances
  assert.strictEqual(balances.length, 3, text)
  assert.strictEqual(withoutLock!.deposits, 400)
  assert.isAbove(withoutLock!.lost, 0)
  assert.isAtLeast(withLock!.deposits, 400)
  assert.strictEqual(withLock!.lost, 0)
  assert.isAtLeast(withKill!.deposits, 300)
  assert.isBelow(withKill!.deposits, 400)
  assert.strictEqual(withKill!.lost, 0)
  assert.strictEqual(text.match(/Waiting for the lock: p50 .*, p90 .*, p99 .*, max .*/g)?.length, 2)
  assert.strictEqual(text.match(/Fencing tokens: \d+ to \d+, strictly rising over \d+ grants/g)?.length, 2)
  assert.match(text, /the ledger refuses it: \d+ is an old token/)
  assert.match(text, /No deposit was lost under the lock\./)
  assert.isAtMost(Math.max(...output.map((line) => line.length)), 100, "columns")
}

layer(NodeServices.layer, { excludeTestServices: true })("demo", (it) => {
  it.effect(
    "The demo runs processes on the Redis of REDIS_URL, and leaves nothing there but tokens and labels that expire",
    Effect.fnUntraced(function* () {
      const result = yield* run({ REDIS_URL: redisUrl })
      assert.match(result.output[0]!, /^Redis: REDIS_URL, /)
      assert.match(result.text, /4 processes make 100 deposits each/)
      assert.match(result.text, /Worker 3 is killed with SIGKILL/)
      assertSafe(result)

      assert.deepStrictEqual(yield* leftInRedis, [])
    }),
    180_000
  )

  it.effect(
    "The demo ends on SIGINT with 130, its workers and its lock with it",
    Effect.fnUntraced(function* () {
      const fs = yield* FileSystem.FileSystem
      const { demo, directory, lines } = yield* start({ REDIS_URL: redisUrl })
      yield* lines.pipe(
        Stream.takeUntil((line) => line.includes("is killed with SIGKILL")),
        Stream.runDrain
      )
      yield* demo.kill({ killSignal: "SIGINT" })
      assert.strictEqual(yield* demo.exitCode, 130)
      assert.deepStrictEqual(yield* fs.readDirectory(directory), [], "temporary files")

      // what the killed worker held goes when its lease is over
      yield* eventually("nothing of it is left", leftInRedis, (keys) => keys.length === 0)
    }),
    180_000
  )

  // a Docker engine at its usual place would be found
  it.effect.skipIf(existsSync("/var/run/docker.sock"))(
    "The demo runs fibers on the memory store if there is no Redis, and says how to see it on one",
    Effect.fnUntraced(function* () {
      const result = yield* run({ PATH: "/nonexistent" })
      assert.match(result.output[0]!, /^Redis: none found, so the demo uses the memory store/)
      assert.match(result.text, /4 fibers make 100 deposits each/)
      assert.match(result.text, /set REDIS_URL/)
      assertSafe(result)
    }),
    180_000
  )
})
