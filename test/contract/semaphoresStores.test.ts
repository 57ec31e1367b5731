/**
 * Random sequences of the operations behind semaphores and latches give the same replies and the same messages on memory
 * and on Redis.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { assert, it } from "@effect/vitest"
import { Arbitrary, Context, Effect, Layer, Result, Schema, Stream } from "effect"
import { LockStore, type RedisDriver } from "effect-redis-lock"
import { TestClock } from "effect/testing"
import type { Redis } from "ioredis"
import { redisUrl } from "../kit/server/redisUrl.ts"
import { runOperation } from "../kit/storeOperations.ts"
import { bare } from "../kit/server/bareRedis.ts"

class MemoryStore extends Context.Service<MemoryStore, LockStore.LockStore["Service"]>()("test/MemoryStore") {}
class RedisStore extends Context.Service<RedisStore, LockStore.LockStore["Service"]>()("test/RedisStore") {}

const connect = bare({ url: redisUrl })
/** A subscription that overtakes the ready check of ioredis 5 makes it fail, and what is published until it has reconnected is lost. */
const connectUntilReady = Effect.tap(connect, (redis) =>
  Effect.callback<void>((resume) => {
    if (redis.status === "ready") resume(Effect.void)
    else redis.once("ready", () => resume(Effect.void))
  })
)
class Client extends Context.Service<Client, Redis>()("test/Client") {}
class Listener extends Context.Service<Listener, Redis>()("test/Listener") {}

const both = Layer.mergeAll(
  Layer.effect(MemoryStore, Effect.map(LockStore.LockStore, MemoryStore.of)).pipe(
    Layer.provide(Layer.fresh(LockStore.layerMemory))
  ),
  Layer.effect(RedisStore, Effect.map(LockStore.LockStore, RedisStore.of)).pipe(
    Layer.provide(Layer.fresh(LockStore.layerRedis)),
    Layer.provide(IoRedis.layer({ url: redisUrl }))
  ),
  Layer.effect(Client, connect),
  Layer.effect(Listener, connectUntilReady)
)

// All times are multiples of 5 seconds: what little real time passes on Redis never tips a comparison.
const step = 5000
const names = ["a", "b"]
const ids = Array.from({ length: 5 }, (_, i) => `${i}f`.repeat(16))

const Op = Schema.Struct({
  operation: Schema.Literals([
    "semaphore/acquire",
    "semaphore/acquire",
    "semaphore/return",
    "semaphore/add",
    "semaphore/set",
    "semaphore/drain",
    "semaphore/available",
    "permit_semaphore/acquire",
    "permit_semaphore/acquire",
    "permit_semaphore/acquire",
    "permit_semaphore/release",
    "permit_semaphore/try_release",
    "permit_semaphore/renew",
    "permit_semaphore/count",
    "permit_semaphore/set",
    "permit_semaphore/add",
    "permit_semaphore/lease",
    "permit_semaphore/update_lease",
    "latch/set",
    "latch/count_down",
    "latch/count",
    "latch/delete",
    "lock/look",
    "lock/look",
    "advance",
    "advance",
    "foreign",
    "remove"
  ]),
  name: Schema.Literals(names),
  first: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: ids.length - 1 })),
  many: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 3 })),
  times: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 4 })),
  count: Schema.Int.check(Schema.isBetween({ minimum: -2, maximum: 4 })),
  flag: Schema.Boolean
})
type Op = typeof Op.Type

const rounded = (millis: number): number => (millis < 0 ? millis : Math.ceil(millis / step) * step)

/** A reply, without what may differ. */
const normal = (op: Op, reply: RedisDriver.Reply): unknown => {
  if (op.operation === "permit_semaphore/lease") return rounded(reply as number)
  if (op.operation === "permit_semaphore/acquire") {
    const [granted, available, next] = reply as [number, number, number]
    return [granted, available, rounded(next)]
  }
  if (op.operation === "lock/look") {
    const [type, left, , , counter, , , , , permits, held] = reply as ReadonlyArray<RedisDriver.Reply>
    const leases = permits as ReadonlyArray<string | number>
    return [
      ...[type, rounded(left as number), counter, held],
      leases.flatMap((id, i) => (i % 2 === 0 ? [`${id} ${rounded(Number(leases[i + 1]))}`] : [])).toSorted()
    ]
  }
  return reply
}

type Command = readonly [
  operation: LockStore.Operation,
  keys: ReadonlyArray<string>,
  args: ReadonlyArray<string | number>
]

const commandOf = (op: Op, prefix: string): Command => {
  const at = (name: string) => `${prefix}${name}`
  const key = at(op.name)
  const zset = `{${key}}:timeout`
  const channel = `redisson_sc:{${key}}`
  const latchChannel = `redisson_countdownlatch__channel__{${key}}`
  const marker = `effect_redis_lock_grant:{${key}}:${op.first}`
  const some = Array.from({ length: op.many }, (_, i) => ids[(op.first + i) % ids.length]!)
  const lease = op.times * step
  const initial = op.flag ? op.times : ""
  switch (op.operation) {
    case "semaphore/acquire":
      return [op.operation, [key, zset, marker, channel], [initial, op.many, lease, "PUBLISH"]]
    case "semaphore/return":
      return [op.operation, [key, marker, channel], [op.many, op.flag ? lease : 0, "PUBLISH"]]
    case "semaphore/add":
      return [op.operation, [key, zset, channel], [initial, op.count, op.many === 1 ? 1 : 0, "PUBLISH"]]
    case "semaphore/set":
      return [op.operation, [key, zset, channel], [op.times, op.flag ? lease : 0, "PUBLISH"]]
    case "semaphore/drain":
      return [op.operation, [key, zset], [initial]]
    case "semaphore/available":
    case "latch/count":
      return [op.operation, [key], []]
    case "permit_semaphore/acquire":
      return [op.operation, [key, zset, channel], [initial, lease, "PUBLISH", ...some]]
    case "permit_semaphore/release":
    case "permit_semaphore/try_release":
      return [op.operation, [key, zset, channel], ["PUBLISH", ...some]]
    case "permit_semaphore/renew":
      return [op.operation, names.map((name) => `{${at(name)}}:timeout`), [lease, some.join(","), ids[op.first]!]]
    case "permit_semaphore/count":
      return [op.operation, [key, zset, channel], ["PUBLISH"]]
    case "permit_semaphore/set":
      return [op.operation, [key, zset, channel], [op.times, op.flag ? 1 : 0, "PUBLISH"]]
    case "permit_semaphore/add":
      return [op.operation, [key, zset, channel], [initial, op.count, "PUBLISH"]]
    case "permit_semaphore/lease":
      return [op.operation, [zset], [ids[op.first]!]]
    case "permit_semaphore/update_lease":
      return [op.operation, [zset], [ids[op.first]!, op.flag ? -1 : lease]]
    case "latch/set":
      return [op.operation, [key, latchChannel], [op.times, "PUBLISH"]]
    case "latch/count_down":
    case "latch/delete":
      return [op.operation, [key, latchChannel], ["PUBLISH"]]
    case "lock/look":
      return [
        op.operation,
        [
          key,
          `redisson_lock_token:{${key}}`,
          ...["queue", "readers", "writers"].map((what) => `${key}:no ${what}`),
          zset,
          `${key}:no places`
        ],
        [1000]
      ]
    case "foreign":
      // a lock under the name, by way of an operation that both have
      return ["lock/acquire", [key, `redisson_lock_token:{${key}}`], ["someone", lease, lease]]
    default:
      return ["lock/force_release", [key, `redisson_lock__channel:{${key}}`], ["PUBLISH"]]
  }
}

/** Lets time pass on the server by bringing every expiry nearer. */
const advanceRedis = (redis: Redis, prefix: string, millis: number) =>
  Effect.promise(async () => {
    for (const key of await redis.keys(`*${prefix}*`)) {
      if ((await redis.type(key)) === "zset") {
        for (const id of await redis.zrangeBuffer(key, "0", "-1")) {
          const score = Number(await redis.zscore(key, id))
          if (score < 922_337_203_685_477) await redis.call("ZINCRBY", key, String(-millis), id)
        }
      }
      const left = await redis.pttl(key)
      if (left === -1) continue
      await (left <= millis ? redis.del(key) : redis.pexpire(key, left - millis))
    }
  })

it.layer(both)("semaphores and latches on memory and on Redis", (it) => {
  it.effect.prop(
    "Semaphores and latches reply and notify alike on memory and on Redis, whatever happens in whatever order",
    [Arbitrary.array(Arbitrary.schema(Op), { minLength: 10, maxLength: 60 })],
    ([ops]) =>
      Effect.gen(function* () {
        const memory = yield* MemoryStore
        const redis = yield* RedisStore
        const client = yield* Client
        const listener = yield* Listener
        const prefix = `prop:${crypto.randomUUID()}:`
        const story = JSON.stringify(ops)

        const fromMemory: Array<string> = []
        const fromRedis: Array<string> = []
        for (const name of names) {
          for (const channel of [
            `redisson_sc:{${prefix}${name}}`,
            `redisson_countdownlatch__channel__{${prefix}${name}}`
          ]) {
            yield* memory.subscribe(channel).pipe(
              Stream.runForEach((signal) =>
                Effect.sync(() => signal._tag === "Message" && fromMemory.push(`${channel} ${signal.message}`))
              ),
              Effect.forkScoped({ startImmediately: true })
            )
          }
        }
        const hear = (_pattern: string, channel: string, message: string) => fromRedis.push(`${channel} ${message}`)
        listener.on("pmessage", hear)
        yield* Effect.promise(() => listener.psubscribe(`redisson_[sc]*${prefix}*`))

        for (const op of ops) {
          if (op.operation === "advance") {
            yield* TestClock.adjust(op.times * step)
            yield* advanceRedis(client, prefix, op.times * step)
            continue
          }
          const [operation, keys, args] = commandOf(op, prefix)
          const [here, there] = yield* Effect.all([
            Effect.result(runOperation(memory, operation, keys, args)),
            Effect.result(runOperation(redis, operation, keys, args))
          ])
          if (operation === "lock/acquire" && Result.isSuccess(here) && Result.isSuccess(there)) continue
          assert.deepStrictEqual(
            Result.isSuccess(here) ? normal(op, here.success) : here.failure.reason,
            Result.isSuccess(there) ? normal(op, there.success) : there.failure.reason,
            `${operation} in ${story}`
          )
        }

        yield* Effect.promise(() => client.publish(`redisson_sc:{${prefix}end}`, "end"))
        while (!fromRedis.at(-1)?.endsWith("end"))
          yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 1)))
        listener.off("pmessage", hear)
        yield* Effect.promise(() => listener.punsubscribe())
        yield* Effect.yieldNow
        // a channel has its order; among the channels there is none on memory
        assert.deepStrictEqual(fromMemory.toSorted(), fromRedis.slice(0, -1).toSorted(), story)
        yield* Effect.promise(async () => {
          for (const key of await client.keys(`*${prefix}*`)) await client.del(key)
        })
      }).pipe(Effect.scoped),
    { arbitrary: { runs: 300, size: 40 } }
  )
})
