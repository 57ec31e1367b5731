import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { FairLock, Lock } from "effect-redis-lock"
import type { Redis } from "ioredis"
import { client, clientOver } from "../kit/clients.ts"
import { eventually, soon } from "../kit/eventually.ts"
import { bare } from "../kit/server/bareRedis.ts"
import { growsBy } from "../kit/server/conditions.ts"
import { behindProxy, onServer } from "../kit/server/onServer.ts"
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
    "When 30 of 50 fair waiters are killed, the head among them, the others are served in their order",
    onServer(({ redis, server }) =>
      Effect.gen(function* () {
        const mine = yield* client(server, patient)
        const holding = yield* hold(mine, lock)
        const settings = {
          url: server.url,
          kind: "fair",
          lock: "turn",
          fibers: 10,
          sections: 1,
          work: 5,
          log: "log"
        } as const
        const processes = yield* Effect.forEach(Array.from({ length: 5 }), () => start("worker", settings), {
          concurrency: "unbounded"
        })
        const order = yield* queued(redis, "turn", 50)
        const clientIds = yield* Effect.forEach(processes, (process) =>
          Effect.map(process.told("ready"), ({ clientId }) => clientId)
        )
        const head = clientIds.indexOf(order[0]!.slice(0, 36))
        const doomed = [head, (head + 1) % 5, (head + 3) % 5]
        yield* Effect.forEach(doomed, (i) => processes[i]!.signal("SIGKILL"))
        yield* holding.release

        const served = yield* entries(redis, "log", 20)
        const dead = new Set(doomed.map((i) => clientIds[i]!))
        assert.deepStrictEqual(
          served.map(({ owner }) => owner),
          order.filter((owner) => !dead.has(owner.slice(0, 36)))
        )
        // how soon: see unit/deadFairWaiters, in virtual time
        yield* Effect.forEach(
          [0, 1, 2, 3, 4].filter((i) => !doomed.includes(i)),
          (i) => processes[i]!.ended
        )
        // the dead at the end of the queue, behind whom nobody waits, go with whoever comes next
        yield* soon("what they left is gone", mine.run(Lock.withLock(Effect.void, lock)))
        yield* Effect.promise(() => redis.del("log"))
      })
    )
  )

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

  it.live(
    "Fair waiters are not held up by a head that is killed before it takes what was handed over to it",
    onServer(({ redis, server }) =>
      Effect.gen(function* () {
        const mine = yield* client(server, patient)
        const first = yield* hold(mine, lock)
        const doomed = yield* start("worker", { url: server.url, kind: "fair", lock: "turn", fibers: 1 })
        const [head] = yield* queued(redis, "turn", 1)
        const next = yield* waitFor(yield* client(server, patient), lock)
        yield* queued(redis, "turn", 2)
        yield* eventually(
          "the head is subscribed to its channel",
          Effect.promise(() => redis.pubsub("NUMSUB", `redisson_lock__channel:{turn}:${head}`)),
          (reply) => Number(reply[1]) === 1
        )
        yield* doomed.signal("SIGSTOP")
        yield* first.release
        assert.deepStrictEqual(yield* Effect.promise(() => redis.hkeys("turn")), [head])
        yield* doomed.signal("SIGKILL")
        const holding = yield* next.entered
        assert.isFalse(doomed.hasTold("entered"))
        yield* holding.release
      })
    )
  )

  it.live(
    "Fair waiters keep their places when the server stands still for a moment, though others reach it again before them",
    behindProxy(({ proxy, redis, server }) =>
      Effect.gen(function* () {
        const holding = yield* hold(yield* client(server, patient), lock)
        const first = yield* waitFor(yield* client(proxy, patient), lock)
        yield* queued(redis, "turn", 1)
        const second = yield* waitFor(yield* client(server, patient), lock)
        const order = yield* queued(redis, "turn", 2)
        const passBy = (yield* client(server, patient)).run(Lock.withLockIfAvailable(Effect.void, lock))
        /** The queue at one moment of the server's clock, and until when the first one's place lives. */
        const look = Effect.promise(async () => {
          const [[, [seconds, micros]], [, queue], [, until]] = (await redis
            .multi()
            .time()
            .lrange(queueOf("turn"), 0, -1)
            .zscore(clientsOf("turn"), order[0]!.slice(0, 36))
            .exec()) as [[null, [string, string]], [null, ReadonlyArray<string>], [null, string | null]]
          return { at: Number(seconds) * 1000 + Number(micros) / 1000, queue, until: Number(until) }
        })
        const { until: reported } = yield* look
        yield* server.pause
        yield* proxy.cut
        // the time for which the server stands still
        yield* Effect.sleep(850)
        yield* server.resume
        const before = yield* look
        const after = yield* eventually(
          "what it last reported is over",
          Effect.andThen(passBy, look),
          ({ at }) => at > reported
        )
        // what the server grants for a gap of 850 ms; later than that only a machine that stands still looks
        const extra = 3 * 850
        if (after.at < before.at + extra) assert.deepStrictEqual(after.queue, order)
        yield* proxy.restore
        const back = yield* eventually(
          "the first one has reported",
          Effect.andThen(passBy, look),
          // a deadline that was put off is no whole number
          ({ until }) => until > 0 && Number.isInteger(until)
        )
        yield* queued(redis, "turn", 2)
        if (back.at < before.at + extra) assert.deepStrictEqual(yield* queued(redis, "turn", 2), order)
        yield* holding.release
        const served = [first, second].map(({ entered }) => Effect.flatMap(entered, ({ release }) => release))
        yield* Effect.all(served, { concurrency: "unbounded" })
      })
    )
  )

  it.live(
    "Fair waiters that receive no message on a connection that looks alive find their turn by themselves, in order",
    behindProxy(({ proxy, redis, server }) =>
      Effect.gen(function* () {
        const holding = yield* hold(yield* client(server, patient), lock)
        const deaf = yield* clientOver(yield* bare(server), { ...patient, subscriptions: proxy })
        const waiters = [yield* waitFor(deaf, lock), yield* waitFor(deaf, lock), yield* waitFor(deaf, lock)]
        yield* queued(redis, "turn", 3)
        yield* proxy.stallReplies
        yield* holding.release
        for (const [i, { entered }] of waiters.entries()) {
          const { release } = yield* entered
          assert.isFalse(waiters.slice(i + 1).some(({ hasEntered }) => hasEntered()))
          yield* release
        }
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
