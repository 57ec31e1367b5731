import { IoRedis } from "@effect-redis-lock/ioredis"
import { assert } from "@effect/vitest"
import { Context, Effect, Layer, Option, Result, Stream } from "effect"
import { Lock, PermitSemaphore, RedisDriver, Semaphore } from "effect-redis-lock"
import { client } from "../kit/clients.ts"
import { eventually } from "../kit/eventually.ts"
import { storeError } from "../kit/exits.ts"
import { enter, queueUp } from "../kit/sections.ts"
import { lockKey, subscribers } from "../kit/server/conditions.ts"
import { onServer, type Site } from "../kit/server/onServer.ts"
import { testLive } from "../kit/test.ts"

/** A client of a user with these ACL rules. What is enough: faults/documentedPermissions. */
const clientWith = ({ redis, server }: Site, rules: ReadonlyArray<string>) =>
  Effect.andThen(
    Effect.promise(() => redis.acl("SETUSER", "locks", "reset", "on", ">secret", ...rules)),
    client({ url: `redis://locks:secret@${server.host}:${server.port}` }, { watchdogLeaseTime: "6 seconds" })
  )

const inScript = /ACL failure in script|The user executing the script can't/

const refused: ReadonlyArray<readonly [string, RegExp, ReadonlyArray<string>]> = [
  ["the lock's key", /\(NOPERM .*key/, ["~other", "~redisson_lock_token:*", "&*", "+@all"]],
  ["the token's key", /\(NOPERM .*key/, ["~report", "&*", "+@all"]],
  ["EVALSHA", /\(NOPERM .*'evalsha'/, ["~*", "&*", "+@all", "-evalsha"]],
  ["EVAL", /\(NOPERM .*'eval'/, ["~*", "&*", "+@all", "-eval"]],
  ["HSET, inside of the script", inScript, ["~*", "&*", "+@all", "-hset"]],
  // the key is there by then, and would stay for ever
  ["PEXPIRE, inside of the script", inScript, ["~*", "&*", "+@all", "-pexpire"]]
]
for (const [what, says, rules] of refused) {
  testLive(`A Redis user that may not use ${what} acquires nothing, and the error says so`, function* () {
    const site = yield* onServer()
    const { run } = yield* clientWith(site, rules)
    const error = storeError(yield* Effect.exit(run(Lock.withLock(Effect.void, "report"))))
    assert.strictEqual(error.reason, "NoPermission")
    assert.strictEqual(error.operation, "lock/acquire")
    assert.isFalse(error.isTransient)
    assert.include(error.message, `Lock "report", lock/acquire: the Redis user may not do this (NOPERM). It needs `)
    assert.match(error.message, says)
    yield* lockKey(site.redis, "report", "gone")
  })
}

testLive("A Redis user that may not use SUBSCRIBE waits by asking", function* () {
  const site = yield* onServer()
  const holder = yield* enter(yield* client(site.server), "report")
  const mine = yield* clientWith(site, ["~*", "&*", "+@all", "-subscribe"])
  const waiter = yield* queueUp(mine, "report")
  yield* eventually(
    "SUBSCRIBE is refused",
    () => site.redis.call("ACL", "LOG") as Promise<ReadonlyArray<unknown>>,
    (log) => JSON.stringify(log).includes('"subscribe"')
  )
  yield* subscribers(site.redis, "report", 0)
  assert.isUndefined(waiter.fiber.pollUnsafe())
  yield* holder.end
  const next = yield* waiter.entered
  yield* next.finish
})

testLive(
  "A Redis user that may not use the channel waits by asking, and releases though it cannot notify",
  function* () {
    const site = yield* onServer()
    const holder = yield* enter(yield* client(site.server), "report")
    const mine = yield* clientWith(site, ["~*", "resetchannels", "&other", "+@all"])
    const waiter = yield* queueUp(mine, "report")
    yield* holder.end
    const next = yield* waiter.entered
    yield* next.finish
    yield* lockKey(site.redis, "report", "gone")
  }
)

testLive("A channel that Redis refuses fails alone, and not those that were requested with it", function* () {
  const { redis, server } = yield* onServer()
  yield* Effect.promise(() => redis.acl("SETUSER", "locks", "reset", "on", ">secret", "~*", "&allowed", "+@all"))
  const context = yield* Layer.build(IoRedis.layer({ url: `redis://locks:secret@${server.host}:${server.port}` }))
  const { subscribe } = Context.get(context, RedisDriver.RedisDriver)
  const [allowed, refused] = yield* Effect.forEach(
    ["allowed", "refused"],
    (channel) => Effect.result(Stream.runHead(subscribe(channel))),
    { concurrency: "unbounded" }
  )
  assert.deepStrictEqual(allowed, Result.succeed(Option.some({ _tag: "Subscribed" as const })))
  assert.strictEqual(Result.isFailure(refused!) ? refused.failure.reason : "subscribed", "NoPermission")
})

const counted = Semaphore.make("counted", { permits: 5 })
const leased = PermitSemaphore.make("leased", { permits: 5 })
for (const command of ["set", "incrby", "zadd"]) {
  testLive(
    `A Redis user that may not use ${command} inside a script acquires no permits, and takes none away`,
    function* () {
      const site = yield* onServer()
      yield* Effect.promise(() => site.redis.mset("counted", "5", "leased", "5"))
      const { run } = yield* clientWith(site, ["~*", "&*", "+@all", `-${command}`])
      for (const section of [
        ...(command === "zadd" ? [] : [Semaphore.withPermits(Effect.void, counted, 2)]),
        ...(command === "set" ? [] : [PermitSemaphore.withPermits(Effect.void, leased, 2)])
      ]) {
        assert.strictEqual(storeError(yield* Effect.exit(run(section))).reason, "NoPermission")
      }
      assert.deepStrictEqual(yield* Effect.promise(() => site.redis.mget("counted", "leased")), ["5", "5"])
      assert.strictEqual(yield* Effect.promise(() => site.redis.dbsize()), 2)
      yield* Effect.promise(() => site.redis.flushall())
    }
  )
}
