/**
 * What a fair lock costs the server, however many wait: each command of a holder or a waiter runs as many commands inside the server
 * beside 5000 waiters as beside 20, and none of them walks the queue.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { LockStore } from "effect-redis-lock"
import { IoRedis } from "@effect-redis-lock/ioredis"
import type { Redis } from "ioredis"
import { runOperation } from "../kit/storeOperations.ts"
import { onServer } from "../kit/server/onServer.ts"

const lock = "page"
const [token, queue, timeouts, clients, channel] = [
  "redisson_lock_token:{page}",
  "redisson_lock_queue:{page}",
  "redisson_lock_timeout:{page}",
  "effect_redis_lock_clients:{page}",
  "redisson_lock__channel:{page}"
]
const clientOf = (number: number) => `00000000-0000-4000-8000-${String(number).padStart(12, "0")}`
const ownerOf = (waiter: number) => `${clientOf(waiter % 10)}:${waiter}`
/** A thread in Java: nobody notes that its client is alive. */
const java = "2a5b1f3e-0000-4000-8000-000000000001:7"

const ask = <A>(answer: () => Promise<A>) => Effect.promise(answer)

/** Which commands the server runs for something, those within scripts included, and how many of each. */
const commandsOf = Effect.fnUntraced(function* <A, E, R>(redis: Redis, self: Effect.Effect<A, E, R>) {
  yield* ask(() => redis.config("RESETSTAT"))
  const result = yield* self
  const stats = yield* ask(() => redis.info("commandstats"))
  const commands = [...stats.matchAll(/cmdstat_([a-z]+):calls=(\d+)/g)]
    .map(([, name, calls]) => `${calls} ${name}`)
    .filter((command) => !/ (?:config|info|ping)$/.test(command))
    .sort()
  return { result, commands }
})

/** The commands of everything that happens at a fair lock for which so many wait. */
const besides = (waiters: number) =>
  Effect.gen(function* () {
    const seen: Record<string, ReadonlyArray<string>> = {}
    yield* onServer(({ redis, server }) =>
      Effect.gen(function* () {
        const context = yield* Layer.build(LockStore.layerRedis.pipe(Layer.provide(IoRedis.layer({ url: server.url }))))
        const store = LockStore.LockStore.pipe(Effect.provideContext(context))
        const run = (
          operation: LockStore.Operation,
          keys: ReadonlyArray<string>,
          args: ReadonlyArray<string | number>
        ) => Effect.flatMap(store, (store) => runOperation(store, operation, [lock, ...keys], args))
        const acquire = (owner: string) =>
          run(
            "fair_lock/acquire",
            [token, queue, timeouts, clients, channel],
            [owner, 600_000, 86_400_000, 300_000, owner.slice(0, 36), 600_000, "PUBLISH"]
          )
        const release = (owner: string) =>
          run("fair_lock/release", [channel, queue, timeouts, clients], [owner, "PUBLISH"])
        const refresh = (client: string, waiting: ReadonlyArray<string>, gone: ReadonlyArray<string> = []) =>
          run(
            "fair_lock/refresh",
            [channel, queue, timeouts, clients],
            ["PUBLISH", 300_000, client, 600_000, 1, waiting.length, ...waiting, ...gone]
          )
        const measure = Effect.fnUntraced(function* <A, E, R>(what: string, self: Effect.Effect<A, E, R>) {
          // however long this machine stands still, the server did not
          yield* ask(() => redis.zadd(clients, "XX", Date.now() + 3_600_000, "seen"))
          const { commands, result } = yield* commandsOf(redis, self)
          seen[what] = commands
          return result
        })

        yield* acquire(ownerOf(0))
        yield* Effect.forEach(Array.from({ length: waiters }), (_, i) => acquire(ownerOf(i + 1)), { concurrency: 50 })
        assert.strictEqual(yield* ask(() => redis.llen(queue)), waiters)
        // scripts are loaded, and the head's score is as it will be
        yield* refresh(clientOf(1), [ownerOf(1)])
        yield* acquire(ownerOf(waiters + 1))
        yield* release(ownerOf(waiters + 1))

        yield* measure("a waiter that comes", acquire(ownerOf(waiters + 1)))
        yield* measure("a waiter in the middle that leaves", release(ownerOf(5)))
        yield* measure("the last waiter leaves", release(ownerOf(waiters + 1)))
        yield* measure("a report", refresh(clientOf(2), [ownerOf(2)]))
        yield* measure("a report of a place that is gone", refresh(clientOf(2), [ownerOf(2)], [ownerOf(6)]))
        const head = (yield* ask(() => redis.lindex(queue, 0)))!
        const second = (yield* ask(() => redis.lindex(queue, 1)))!
        yield* measure("a release", release(ownerOf(0)))
        yield* measure("the next is served", acquire(head))
        // Java's scripts see a head whose time is that of one that has just asked
        const [seconds] = yield* ask(() => redis.time())
        const left = Number(yield* ask(() => redis.zscore(timeouts, second))) - Number(seconds) * 1000
        assert.isTrue(left > 100_000 && left <= 901_000, `${left} ms`)
        yield* measure("a waiter that is served already asks again", acquire(head))
        // the dead: of a client that does not report, and a thread in Java
        yield* ask(() => redis.zadd(clients, 1, second.slice(0, 36)))
        yield* ask(() => redis.zadd(timeouts, "XX", 1, second))
        yield* ask(async () => {
          await redis.linsert(queue, "AFTER", second, java)
          await redis.zadd(timeouts, 1, java)
        })
        yield* measure("a release that passes over two dead waiters", release(head))
        assert.notInclude(yield* ask(() => redis.lrange(queue, 0, 1)), java)
        yield* measure(
          "a forced release",
          run("fair_lock/force_release", [channel, queue, timeouts, clients], ["PUBLISH"])
        )
        yield* ask(() => redis.del(queue, timeouts, clients))
      }).pipe(Effect.scoped)
    )()
    return seen
  })

describe("a fair lock with many waiters", () => {
  it.live("A fair lock costs the server the same commands with 5000 waiters as with 20", () =>
    Effect.gen(function* () {
      const few = yield* besides(20)
      const many = yield* besides(5000)
      assert.deepStrictEqual(many, few)
      for (const command of Object.values(few).flat()) assert.notMatch(command, /zrange|zincrby|hgetall/)
    })
  )
})
