import { assert } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { FairLock, Lock } from "effect-redis-lock"
import type { Redis } from "ioredis"
import { client } from "../kit/clients.ts"
import { eventually, soon } from "../kit/eventually.ts"
import { growsBy } from "../kit/server/conditions.ts"
import { commandsRun } from "../kit/server/commandsOf.ts"
import { onServer } from "../kit/server/onServer.ts"
import { clientsOf, hold, queued, queueOf, timeoutsOf, waitFor } from "./kinds.ts"
import { serverTime } from "../kit/server/serverTime.ts"
import { testLive } from "../kit/test.ts"
import { undisturbed } from "../kit/undisturbed.ts"

const lock = FairLock.make("turn")
const patient = { watchdogLeaseTime: "5 minutes", fallbackInterval: "1 second" } as const

/** Waits until a client has confirmed the places of its waiters so many times more, as it does every half second. */
const reports = (redis: Redis, owner: string, times: number) =>
  growsBy(
    `the client of ${owner} reports ${times} times`,
    async () => Number(await redis.zscore(clientsOf("turn"), owner.slice(0, 36))),
    times
  )

const javaWaiter = `${crypto.randomUUID()}:77`

testLive("Fair waiters are not held up by one in Java whose clock is far behind", function* () {
  const { redis, server } = yield* onServer()
  const holding = yield* hold(yield* client(server, patient), lock)
  const score = (yield* serverTime(redis)) - 3_600_000 + 300_000
  yield* Effect.promise(() =>
    redis.multi().rpush(queueOf("turn"), javaWaiter).zadd(timeoutsOf("turn"), score, javaWaiter).exec()
  )
  const next = yield* waitFor(yield* client(server, patient), lock)
  yield* queued(redis, "turn", 1)
  yield* holding.release
  yield* (yield* next.entered).release
})

testLive("Fair waiters keep their places though a MultiLock in Java has given its lease to their queue", function* () {
  const { redis, server } = yield* onServer()
  const mine = yield* client(server, patient)
  const holding = yield* hold(mine, lock)
  const waiters = [yield* waitFor(mine, lock), yield* waitFor(yield* client(server, patient), lock)]
  const order = yield* queued(redis, "turn", 2)
  // what Redisson sends once it has all locks, and does not take back when it releases them
  const leaseMillis = 30_000
  yield* Effect.promise(() =>
    redis.multi().pexpire(queueOf("turn"), leaseMillis).pexpire(timeoutsOf("turn"), leaseMillis).exec()
  )
  for (const owner of order) yield* reports(redis, owner, 1)
  const lives = yield* Effect.promise(() => Promise.all([redis.pttl(queueOf("turn")), redis.pttl(timeoutsOf("turn"))]))
  for (const life of lives) assert.isAbove(life, 10 * leaseMillis)
  yield* holding.release
  for (const { entered } of waiters) yield* (yield* entered).release
  assert.strictEqual(yield* Effect.promise(() => redis.exists(queueOf("turn"), timeoutsOf("turn"))), 0)
})

testLive(
  "Fair waiters wait for one in Java whose clock is far ahead, and are served when it has gone silently",
  function* () {
    const { redis, server } = yield* onServer()
    const mine = yield* client(server, patient)
    const holding = yield* hold(mine, lock)
    const score = (yield* serverTime(redis)) + 86_400_000
    yield* Effect.promise(() =>
      redis.multi().rpush(queueOf("turn"), javaWaiter).zadd(timeoutsOf("turn"), score, javaWaiter).exec()
    )
    const waiters = [yield* waitFor(mine, lock), yield* waitFor(yield* client(server, patient), lock)]
    const order = yield* queued(redis, "turn", 3)
    assert.strictEqual(order[0], javaWaiter)
    yield* holding.release
    for (const owner of order.slice(1)) yield* reports(redis, owner, 2)
    assert.strictEqual(yield* Effect.promise(() => redis.exists("turn")), 0)
    yield* Effect.promise(() =>
      redis.multi().lrem(queueOf("turn"), 0, javaWaiter).zrem(timeoutsOf("turn"), javaWaiter).exec()
    )
    for (const { entered } of waiters) yield* (yield* entered).release
  }
)

testLive("500 fair waiters of one process are served in their order, with at most 8 commands each", function* () {
  // a client that says nothing for a second and a half may be passed over
  yield* undisturbed("1 second", function* (watch) {
    const { redis, server } = yield* onServer()
    yield* watch(redis)
    const { run } = yield* client(server, patient)
    const gate = yield* hold(yield* client(server, patient), lock)
    const order: Array<number> = []
    yield* Effect.promise(() => redis.config("RESETSTAT"))
    const all = yield* Effect.forkScoped(
      run(
        Effect.forEach(
          Array.from({ length: 500 }, (_, i) => i),
          (i) =>
            Lock.withLock(
              Effect.sync(() => order.push(i)),
              lock
            ),
          { concurrency: "unbounded", discard: true }
        )
      )
    )
    yield* queued(redis, "turn", 500)
    yield* gate.release
    yield* soon("everybody is served", Fiber.join(all))
    assert.deepStrictEqual(
      order,
      Array.from({ length: 500 }, (_, i) => i)
    )
    const commands = yield* commandsRun(redis, "eval", "evalsha", "subscribe", "unsubscribe")
    assert.isAtMost(commands / 500, 8)
  })
})

testLive(
  "What is known of the clients of fair waiters lasts longer than the scores of the dead among them",
  function* () {
    const { redis, server } = yield* onServer()
    yield* hold(yield* client(server, patient), lock)
    const dead = Array.from({ length: 1000 }, (_, i) => `${crypto.randomUUID()}:${i}`)
    const scores = dead.flatMap((owner) => [8e15, owner])
    yield* Effect.promise(() =>
      redis
        .multi()
        .rpush(queueOf("turn"), ...dead)
        .zadd(timeoutsOf("turn"), ...scores)
        .exec()
    )
    yield* waitFor(yield* client(server, patient), lock)
    yield* queued(redis, "turn", 1001)
    // each counts for five minutes longer than the one before it
    assert.isAbove(yield* Effect.promise(() => redis.pttl(clientsOf("turn"))), 1000 * 300_000)
    yield* Effect.promise(() => redis.del(queueOf("turn"), timeoutsOf("turn")))
  }
)

testLive("100 fair waiters of one process cost at most 3 commands a second", function* () {
  const { redis, server } = yield* onServer()
  yield* hold(yield* client(server, patient), lock)
  const mine = yield* client(server, patient)
  for (let i = 0; i < 100; i++) yield* waitFor(mine, lock)
  const [owner] = yield* queued(redis, "turn", 100)
  // until the subscriptions stand, and what they caused is over
  const subscribed = () => redis.pubsub("CHANNELS", "*{turn}*") as Promise<ReadonlyArray<unknown>>
  yield* eventually("100 channels are heard", subscribed, (channels) => channels.length === 100)
  yield* reports(redis, owner!, 2)
  yield* Effect.promise(() => redis.config("RESETSTAT"))
  const since = yield* serverTime(redis)
  yield* reports(redis, owner!, 3)
  const commands = yield* commandsRun(redis, "eval", "evalsha", "subscribe", "unsubscribe")
  const seconds = ((yield* serverTime(redis)) - since) / 1000
  assert.isAtLeast(commands, 3)
  assert.isAtMost(commands / seconds, 3)
  // beside when a script last looked
  const clients = yield* Effect.promise(() => redis.zrange(clientsOf("turn"), "0", "-1"))
  assert.strictEqual(clients.filter((client) => client.length === 36).length, 1)
})
