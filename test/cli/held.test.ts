/**
 * What `redis-lock run` can hold: a lock of each kind, several locks, a permit.
 */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { freshName } from "../kit/names.ts"
import { until } from "../kit/eventually.ts"
import { client, redisLock, start } from "./redisLock.ts"
import { testLive } from "../kit/test.ts"

const untilTold = ["sh", "-c", 'echo in; read line; env | grep "^REDIS_LOCK_[NTOP]" | sort']

/** Runs a command that only one at a time may run, and tells whether it was let in. */
const enters = (flags: ReadonlyArray<string>) =>
  Effect.map(redisLock(["run", "--wait", "0", ...flags, "--", "true"]), ({ code }) => code)

testLive(
  "With --permits 2 two commands run at once and a third one is refused, with the exit code that it wants",
  function* () {
    const name = freshName("cli")
    const flags = ["run", "--permits", "2", name, "--", ...untilTold]
    const both = yield* Effect.all([start(flags), start(flags)])
    yield* Effect.forEach(both, ({ says }) => says("in\n"))
    assert.strictEqual(yield* enters(["--permits", "2", "--conflict-exit-code", "9", name]), 9)
    for (const running of both) {
      yield* running.write("\n")
      const { code, stderr, stdout } = yield* running.ended
      assert.deepStrictEqual([code, stderr], [0, ""])
      assert.match(stdout, new RegExp(`^in\nREDIS_LOCK_NAME=${name}\nREDIS_LOCK_PERMIT=[0-9a-f]{32}\n$`))
    }
    const redis = yield* client()
    assert.strictEqual(yield* Effect.promise(() => redis.get(name)), "2")
    yield* Effect.promise(() => redis.del(name))
  }
)

testLive("With --read readers share the lock, and a writer is refused until they are done", function* () {
  const name = freshName("cli")
  const reader = yield* start(["run", "--read", name, "--", ...untilTold])
  yield* reader.says("in\n")
  assert.strictEqual(yield* enters(["--read", name]), 0)
  assert.strictEqual(yield* enters(["--write", name]), 75)
  yield* reader.write("\n")
  assert.strictEqual((yield* reader.ended).code, 0)
  assert.strictEqual(yield* enters(["--write", name]), 0)
})

testLive("With --lock the command holds all of the locks, under --prefix, and learns each token", function* () {
  const name = freshName("cli")
  const other = `${name} other`
  const running = yield* start(["run", "--prefix", "app:", "--lock", other, name, "--", ...untilTold])
  yield* running.says("in\n")
  const redis = yield* client()
  assert.strictEqual(yield* Effect.promise(() => redis.exists(`app:${name}`, `app:${other}`)), 2)
  assert.strictEqual(yield* enters(["--prefix", "app:", other]), 75)
  yield* running.write("\n")
  const { code, stderr, stdout } = yield* running.ended
  assert.deepStrictEqual([code, stderr], [0, ""])
  const variables = Object.fromEntries(
    stdout
      .trim()
      .split("\n")
      .slice(1)
      .map((line) => line.split(/=(.*)/s))
  )
  assert.strictEqual(variables.REDIS_LOCK_NAME, name)
  const tokens = JSON.parse(variables.REDIS_LOCK_TOKENS)
  assert.deepStrictEqual(Object.keys(tokens), [name, other])
  assert.strictEqual(tokens[name], variables.REDIS_LOCK_TOKEN)
  assert.strictEqual(yield* Effect.promise(() => redis.exists(`app:${name}`, `app:${other}`)), 0)
})

testLive("With --lock REDIS_LOCK_OWNER is the owner of NAME, also where each lock has one of its own", function* () {
  const name = freshName("cli")
  const running = yield* start(["run", "--fair", "--lock", `${name} other`, name, "--", ...untilTold])
  yield* running.says("in\n")
  const redis = yield* client()
  const [owner] = yield* Effect.promise(() => redis.hkeys(name))
  assert.notDeepEqual(yield* Effect.promise(() => redis.hkeys(`${name} other`)), [owner])
  yield* running.write("\n")
  assert.include((yield* running.ended).stdout, `\nREDIS_LOCK_OWNER=${owner}\n`)
})

testLive("Waiters with --fair are shown in their order, and release --force wakes the first of them", function* () {
  const name = freshName("cli")
  const redis = yield* client()
  const queue = `redisson_lock_queue:{${name}}`
  const waiting = (count: number) => until(`${count} wait`, async () => (await redis.llen(queue)) === count)
  const holder = yield* start(["run", "--fair", "--lease", "9s", name, "--", ...untilTold])
  yield* holder.says("in\n")
  const first = yield* start(["run", "--fair", name, "--", ...untilTold])
  yield* waiting(1)
  const second = yield* start(["run", "--fair", name, "--", ...untilTold])
  yield* waiting(2)
  const order = yield* Effect.promise(() => redis.lrange(queue, 0, -1))

  const shown = yield* redisLock(["inspect", "--json", name])
  assert.deepStrictEqual([shown.code, shown.stderr], [0, ""])
  const { holders, kind, waiters, waiting: count } = JSON.parse(shown.stdout)
  const owners = waiters.map(({ owner }: { readonly owner: string }) => owner)
  assert.deepStrictEqual([kind, count, owners, holders.length], ["fair lock", 2, order, 1])

  const freed = yield* redisLock(["release", "--force", "--yes", name])
  assert.deepStrictEqual([freed.code, freed.stderr], [0, ""])
  // its owner, behind its label once that is known
  assert.include(freed.stdout, `Freed "${name}". It was held by `)
  assert.include(freed.stdout, holders[0].owner)
  yield* first.says("in\n")
  const lost = yield* holder.ended
  assert.strictEqual(lost.code, 70)
  for (const running of [first, second]) {
    yield* running.says("in\n")
    yield* running.write("\n")
    assert.strictEqual((yield* running.ended).code, 0)
  }
})
