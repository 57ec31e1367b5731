import { RedisServer } from "@effect-redis-lock/testing"
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { hostname } from "node:os"
import { client, holdElsewhere, redisLock, start } from "./redisLock.ts"
import { eventually } from "../kit/eventually.ts"
import { freshName } from "../kit/names.ts"
import { testLive } from "../kit/test.ts"

interface Hold {
  readonly name: string
  readonly kind: string
  readonly owner: string
  readonly label: string | null
  readonly holds: number
  readonly mode: string
  readonly remainingMillis: number | null
  readonly token: string | null
}

const listed = (stdout: string) => JSON.parse(stdout) as ReadonlyArray<Hold>

testLive("redis-lock ls shows the lock of redis-lock run, as a table and as JSON", function* () {
  const name = freshName("cli")
  const script = 'echo "$REDIS_LOCK_OWNER $REDIS_LOCK_TOKEN"; read line'
  const running = yield* start(["run", "--lease", "1h", name, "--", "/bin/sh", "-c", script])
  yield* running.says("\n")
  const json = yield* eventually(
    "its label is known",
    redisLock(["ls", "--json", `${name}*`]),
    ({ stdout }) => listed(stdout)[0]!.label !== null
  )
  const table = yield* redisLock(["ls", `${name}*`])
  yield* running.write("\n")
  const [owner, token] = (yield* running.ended).stdout.trim().split(" ")

  assert.deepStrictEqual([table.code, table.stderr], [0, ""])
  const [header, row, end] = table.stdout.split("\n")
  assert.deepStrictEqual(header!.split(/ +/), ["NAME", "LABEL", "MODE", "HOLDS", "REMAINING", "TOKEN", "OWNER"])
  const label = `${hostname()}/${running.pid}/sh`
  assert.match(row!, new RegExp(`^${name}  ${label}  exclusive  1      [45]\\dm\\d\\ds     ${token}  ${owner}$`))
  assert.strictEqual(end, "")

  assert.deepStrictEqual([json.code, json.stderr], [0, ""])
  const [hold] = listed(json.stdout)
  assert.deepStrictEqual(
    { ...hold, remainingMillis: 0 },
    {
      name,
      kind: "lock",
      owner,
      label,
      mode: "exclusive",
      holds: 1,
      remainingMillis: 0,
      token
    }
  )
  assert.isAtMost(hold!.remainingMillis!, 3_600_000)
  assert.isAbove(hold!.remainingMillis!, 3_000_000)
})

testLive("redis-lock ls shows only locks, by name, those of Java with hold counts and without token", function* () {
  const server = yield* RedisServer.start()
  const redis = yield* client(server.url)
  const java = "11111111-2222-3333-4444-555555555555:42"
  yield* Effect.promise(() => redis.hset("b", java, 3))
  yield* holdElsewhere(redis, "a long name")
  yield* Effect.promise(() => redis.hset("no lock", "field", "value"))
  yield* Effect.promise(() => redis.set("text", "value"))
  const { stdout } = yield* redisLock(["ls", "--json", "--redis", server.url])
  assert.deepStrictEqual(
    listed(stdout).map(({ name }) => name),
    ["a long name", "b"]
  )
  assert.deepStrictEqual(listed(stdout)[1], {
    name: "b",
    kind: "lock",
    owner: java,
    label: null,
    mode: "exclusive",
    holds: 3,
    remainingMillis: null,
    token: null
  })
  const table = yield* redisLock(["ls", "--redis", server.url])
  assert.match(table.stdout, new RegExp(`^b {12}exclusive +3 {6}- {10}- +${java}$`, "m"))
})

testLive("redis-lock ls tells readers from writers", function* () {
  const redis = yield* client()
  const name = freshName("cli")
  const [reader, writer] = ["1", "2"].map((id) => `11111111-2222-3333-4444-555555555555:${id}`)
  yield* Effect.promise(() => redis.hset(`${name}:r`, { mode: "read", [reader!]: 1 }))
  // a writer that also reads
  yield* Effect.promise(() => redis.hset(`${name}:w`, { mode: "write", [`${writer}:write`]: 2, [writer!]: 1 }))
  const { stdout } = yield* redisLock(["ls", "--json", `${name}:*`])
  assert.deepStrictEqual(
    listed(stdout).map(({ holds, mode, owner }) => [owner, mode, holds]),
    [
      [reader, "read", 1],
      [writer, "read", 1],
      [writer, "write", 2]
    ]
  )
})

testLive("redis-lock ls shows leased permits beside locks, and the labels of those that hold locks", function* () {
  const name = freshName("cli")
  const ofPermit = yield* start(["run", "--permits", "2", `${name}:permits`, "--", "sh", "-c", "echo in; read line"])
  const ofLock = yield* start(["run", `${name}:lock`, "--", "sh", "-c", "echo in; read line"])
  yield* ofPermit.says("in\n")
  yield* ofLock.says("in\n")
  const list = Effect.map(redisLock(["ls", "--json", `${name}:*`]), ({ stdout }) => listed(stdout))
  const holds = yield* eventually("the label is known", list, ([hold]) => hold!.label !== null)
  assert.deepStrictEqual(
    holds.map(({ holds, kind, mode, name }) => [name, kind, mode, holds]),
    [
      [`${name}:lock`, "lock", "exclusive", 1],
      [`${name}:permits`, "permit semaphore", "permit", 1]
    ]
  )
  const [lock, permit] = holds
  assert.strictEqual(lock!.label, `${hostname()}/${ofLock.pid}/sh`)
  assert.match(permit!.owner, /^[0-9a-f]{32}$/)
  assert.deepInclude(permit, { label: null, token: null })
  assert.isAbove(permit!.remainingMillis!, 0)
  const table = (yield* redisLock(["ls", `${name}:*`])).stdout.split("\n")
  assert.deepStrictEqual(table[0]!.split(/ +/), ["NAME", "LABEL", "MODE", "HOLDS", "REMAINING", "TOKEN", "OWNER"])
  assert.match(table[1]!, new RegExp(`  ${lock!.label}  exclusive  1 .* ${lock!.owner}$`))
  assert.match(table[2]!, new RegExp(`  - +permit +1 .* - +${permit!.owner}$`))
  yield* ofPermit.write("\n")
  yield* ofLock.write("\n")
  yield* ofPermit.ended
  yield* ofLock.ended
  assert.deepStrictEqual(yield* list, [])
})

testLive("redis-lock ls uses SCAN and never KEYS, even with many keys", function* () {
  const server = yield* RedisServer.start()
  const redis = yield* client(server.url)
  yield* Effect.promise(async () => {
    const batch = redis.pipeline()
    for (let i = 0; i < 3000; i++) batch.set(`other:${i}`, "")
    await batch.exec()
  })
  yield* holdElsewhere(redis, "one")
  const { stdout } = yield* redisLock(["ls", "--json", "--redis", server.url])
  assert.deepStrictEqual(
    listed(stdout).map(({ name }) => name),
    ["one"]
  )
  const statistics = yield* Effect.promise(() => redis.info("commandstats"))
  assert.notMatch(statistics, /^cmdstat_keys:/m)
  assert.isAbove(Number(/^cmdstat_scan:calls=(\d+)/m.exec(statistics)?.[1]), 1)
})

testLive("redis-lock ls takes a glob pattern", function* () {
  const redis = yield* client()
  const prefix = freshName("cli")
  for (const suffix of ["b1", "a1", "c2"]) yield* holdElsewhere(redis, `${prefix}:${suffix}`)
  const { stdout } = yield* redisLock(["ls", "--json", `${prefix}:?1`])
  assert.deepStrictEqual(
    listed(stdout).map(({ name }) => name),
    [`${prefix}:a1`, `${prefix}:b1`]
  )
})

testLive("redis-lock ls prints nothing, or [], if there are no locks", function* () {
  const name = freshName("cli")
  assert.deepStrictEqual(yield* redisLock(["ls", name]), {
    code: 0,
    stdout: "",
    stderr: `redis-lock: nothing is held under a name that matches "${name}"\n`
  })
  assert.deepStrictEqual(yield* redisLock(["ls", "--json", freshName("cli")]), {
    code: 0,
    stdout: "[]\n",
    stderr: ""
  })
})

testLive("A name cannot break the table or control the terminal, and JSON shows it as it is", function* () {
  const redis = yield* client()
  const prefix = freshName("cli")
  const odd = ["two\nlines", "\u001b[31mred", "back\\slash", "left\u202eright", "é 漢字 🔒", "{tag} '\"$HOME"]
  for (const suffix of odd) yield* holdElsewhere(redis, `${prefix}:${suffix}`)
  const table = yield* redisLock(["ls", `${prefix}:*`])
  const lines = table.stdout.trimEnd().split("\n")
  assert.strictEqual(lines.length, odd.length + 1)
  assert.notMatch(table.stdout.replaceAll("\n", ""), /[\p{Cc}\p{Cf}]/u)
  for (const shown of ["two\\u{a}lines", "\\u{1b}[31mred", "back\\\\slash", "left\\u{202e}right", "é 漢字 🔒"]) {
    assert.include(table.stdout, `${prefix}:${shown} `)
  }
  const json = yield* redisLock(["ls", "--json", `${prefix}:*`])
  assert.sameMembers(
    listed(json.stdout).map(({ name }) => name),
    odd.map((suffix) => `${prefix}:${suffix}`)
  )
})

testLive("An owner cannot control the terminal of redis-lock ls, and JSON shows it as it is", function* () {
  const redis = yield* client()
  const name = freshName("cli")
  const owner = "11111111-2222-3333-4444-555555555555:\u001b]0;title\u0007\u001b[2J"
  yield* Effect.promise(() => redis.multi().hset(name, owner, 1).pexpire(name, 60_000).exec())
  const table = yield* redisLock(["ls", name])
  assert.match(table.stdout, /:\\u\{1b\}\]0;title\\u\{7\}\\u\{1b\}\[2J\n$/)
  assert.notMatch(table.stdout.replaceAll("\n", ""), /\p{Cc}/u)
  const json = yield* redisLock(["ls", "--json", name])
  assert.strictEqual(listed(json.stdout)[0]!.owner, owner)
})

testLive(
  "No message of redis-lock has control characters of a name, of a command or of what others wrote",
  function* () {
    const redis = yield* client()
    const name = `${freshName("cli")}\u001b[31m\nred`
    yield* Effect.promise(() => redis.hset(name, "\u001b]0;title\u0007:1", 1))
    yield* Effect.promise(() => redis.pexpire(name, 60_000))
    const free = freshName("cli")
    for (const { stderr } of [
      yield* redisLock(["run", "--wait", "0", name, "--", "true"]),
      yield* redisLock(["run", free, "--", name])
    ]) {
      assert.include(stderr, "\\u{1b}[31m\\u{a}red")
      assert.match(stderr, /^redis-lock: [^\p{Cc}\p{Cf}]*\n$/u)
    }
  }
)

testLive("redis-lock run takes names with control characters as well", function* () {
  const name = `${freshName("cli")} two\nlines {tag} $HOME é 🔒`
  const ended = yield* redisLock(["run", name, "--", "sh", "-c", 'printf %s "$REDIS_LOCK_NAME"'])
  assert.deepStrictEqual(ended, { code: 0, stdout: name, stderr: "" })
})
