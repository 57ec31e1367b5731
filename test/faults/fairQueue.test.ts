import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { FairLock, Lock } from "effect-redis-lock"
import type { Redis } from "ioredis"
import { client } from "../kit/clients.ts"
import { eventually, soon } from "../kit/eventually.ts"
import { growsBy } from "../kit/server/conditions.ts"
import { onServer } from "../kit/server/onServer.ts"
import { clientsOf, commandsRun, entries, hold, queued, queueOf, timeoutsOf, waitFor } from "./kinds.ts"
import { serverTime } from "../kit/server/serverTime.ts"
import { start } from "./processes.ts"

const lock = FairLock.make("turn")
const patient = { watchdogLeaseTime: "5 minutes", fallbackInterval: "1 second" } as const

/** Waits until a client has confirmed the places of its waiters so many times more, as it does every half second. */
const reports = (redis: Redis, owner: string, times: number) =>
  growsBy(
    `the client of ${owner} reports ${times} times`,
    async () => Number(await redis.zscore(clientsOf("turn"), owner.slice(0, 36))),
    times
  )

describe("waiters of a fair lock", () => {
  it.live(
    "Fair waiters whose process is stopped are passed over, and are at the end of the queue when it continues",
    onServer(({ redis, server }) =>
      Effect.gen(function* () {
        const mine = yield* client(server, patient)
        const first = yield* hold(mine, lock)
        const settings = {
          url: server.url,
          kind: "fair",
          lock: "turn",
          fibers: 2,
          sections: 1,
          work: 5,
          log: "log"
        } as const
        const stopped = yield* start("worker", settings)
        const { clientId } = yield* stopped.told("ready")
        yield* queued(redis, "turn", 2)
        yield* stopped.signal("SIGSTOP")
        const second = yield* waitFor(mine, lock)
        yield* queued(redis, "turn", 3)
        yield* first.release
        const secondHold = yield* second.entered
        assert.isFalse(stopped.hasTold("entered"))
        const third = yield* waitFor(mine, lock)
        const [thirdOwner] = yield* queued(redis, "turn", 1)
        yield* stopped.signal("SIGCONT")
        const order = yield* queued(redis, "turn", 3)
        assert.strictEqual(order[0], thirdOwner)
        assert.isTrue(order.slice(1).every((owner) => owner.startsWith(clientId)))
        yield* secondHold.release
        const thirdHold = yield* third.entered
        assert.isFalse(stopped.hasTold("entered"))
        yield* thirdHold.release
        const served = yield* entries(redis, "log", 2)
        assert.isTrue(served.every(({ owner, token }) => owner.startsWith(clientId) && BigInt(token) > thirdHold.token))
        yield* stopped.ended
        yield* Effect.promise(() => redis.del("log"))
      })
    )
  )

  const javaWaiter = `${crypto.randomUUID()}:77`

  it.live(
    "Fair waiters are not held up by one in Java whose clock is far behind",
    onServer(({ redis, server }) =>
      Effect.gen(function* () {
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
    )
  )

  it.live(
    "Fair waiters wait for one in Java whose clock is far ahead, and are served when it has gone silently",
    onServer(({ redis, server }) =>
      Effect.gen(function* () {
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
      })
    )
  )

  it.live(
    "500 fair waiters of one process are served in their order, with at most 8 commands each",
    onServer(({ redis, server }) =>
      Effect.gen(function* () {
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
        const commands = yield* commandsRun(redis, ["eval", "evalsha", "subscribe", "unsubscribe"])
        assert.isAtMost(commands / 500, 8)
      })
    )
  )

  it.live(
    "100 fair waiters of one process cost at most 3 commands a second",
    onServer(({ redis, server }) =>
      Effect.gen(function* () {
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
        yield* reports(redis, owner!, 6)
        const commands = yield* commandsRun(redis, ["eval", "evalsha", "subscribe", "unsubscribe"])
        const seconds = ((yield* serverTime(redis)) - since) / 1000
        assert.isAtLeast(commands, 6)
        assert.isAtMost(commands / seconds, 3)
        // beside when a script last looked
        const clients = yield* Effect.promise(() => redis.zrange(clientsOf("turn"), "0", "-1"))
        assert.strictEqual(clients.filter((client) => client.length === 36).length, 1)
      })
    )
  )
})
