/**
 * Random sequences of operations give the same replies on memory and on Redis.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { assert, it } from "@effect/vitest"
import { Arbitrary, Context, Effect, Layer, Result, Schema } from "effect"
import { LockStore, type RedisDriver } from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { Redis } from "ioredis"
import { redisUrl } from "../redis.ts"

class MemoryStore extends Context.Service<MemoryStore, LockStore.LockStore["Service"]>()("test/MemoryStore") {}
class RedisStore extends Context.Service<RedisStore, LockStore.LockStore["Service"]>()("test/RedisStore") {}
class Client extends Context.Service<Client, Redis>()("test/Client") {}

const client = Layer.effect(
  Client,
  Effect.acquireRelease(
    Effect.sync(() => new Redis(redisUrl)),
    (redis) => Effect.sync(() => redis.disconnect())
  )
)

const both = Layer.mergeAll(
  Layer.effect(MemoryStore, Effect.map(LockStore.LockStore, MemoryStore.of)).pipe(
    Layer.provide(Layer.fresh(LockStore.layerMemory))
  ),
  Layer.effect(RedisStore, Effect.map(LockStore.LockStore, RedisStore.of)).pipe(
    Layer.provide(Layer.fresh(LockStore.layerRedis)),
    Layer.provide(IoRedis.layer({ url: redisUrl }))
  ),
  client
)

// All times are multiples of 5 seconds: what little real time passes on Redis never tips a comparison.
const step = 5000
const names = ["a", "b"]
const owners = ["one", "two", "three"]

const Op = Schema.Struct({
  operation: Schema.Literals([
    "lock/acquire",
    "lock/acquire",
    "lock/acquire",
    "lock/hold",
    "lock/release",
    "lock/release",
    "lock/renew",
    "lock/force_release",
    "lock/inspect",
    "advance",
    "foreign"
  ]),
  name: Schema.Literals(names),
  owner: Schema.Literals(owners),
  times: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 4 })),
  count: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 3 }))
})
type Op = typeof Op.Type

/** Tokens differ between the stores; their order must not. */
const makeRanks = () => {
  const seen: Array<number> = []
  return (token: number): string => {
    let rank = seen.indexOf(token)
    if (rank === -1) {
      assert.isTrue(
        seen.every((earlier) => earlier < token),
        "tokens rise"
      )
      rank = seen.push(token) - 1
    }
    return `token ${rank}`
  }
}

type Ranks = Map<string, ReturnType<typeof makeRanks>>

const rounded = (millis: number): number => (millis < 0 ? millis : Math.ceil(millis / step) * step)

/** A reply, without what may differ. */
const normal = (op: Op, reply: RedisDriver.Reply, ranks: Ranks): unknown => {
  const rank = ranks.get(op.name)!
  if (op.operation === "lock/acquire") {
    return typeof reply === "number" ? rank(reply) : [rounded((reply as [number])[0]), (reply as [number, string])[1]]
  }
  if (op.operation === "lock/inspect") {
    const [left, token, fields] = reply as [number, string | null, Array<string>]
    return [rounded(left), token === null ? null : rank(Number(token)), fields]
  }
  return reply
}

const requestOf = (op: Op, prefix: string): readonly [ReadonlyArray<string>, ReadonlyArray<string | number>] => {
  const lock = `${prefix}${op.name}`
  const token = `redisson_lock_token:{${lock}}`
  const channel = `redisson_lock__channel:{${lock}}`
  const lease = op.times * step
  switch (op.operation) {
    case "lock/acquire":
      return [
        [lock, token],
        [op.owner, lease, 86_400_000]
      ]
    case "lock/hold":
      return [[lock], [op.owner, op.count, op.times === 4 ? 0 : lease]]
    case "lock/release":
      return [
        [lock, channel],
        [op.owner, "PUBLISH"]
      ]
    case "lock/renew":
      return [names.map((name) => prefix + name), [lease, op.owner, op.owner]]
    case "lock/force_release":
      return [[lock, channel], ["PUBLISH"]]
    default:
      return [[lock, token], []]
  }
}

/** Lets time pass on the server by bringing every expiry nearer. */
const advanceRedis = (redis: Redis, prefix: string, millis: number) =>
  Effect.promise(async () => {
    for (const key of await redis.keys(`*${prefix}*`)) {
      const left = await redis.pttl(key)
      if (left === -1) continue
      await (left <= millis ? redis.del(key) : redis.pexpire(key, left - millis))
    }
  })

it.layer(both)("memory and Redis", (it) => {
  it.effect.prop(
    "answer alike, whatever happens in whatever order",
    [Arbitrary.array(Arbitrary.schema(Op), { minLength: 10, maxLength: 60 })],
    ([ops]) =>
      Effect.gen(function* () {
        const memory = yield* MemoryStore
        const redis = yield* RedisStore
        const client = yield* Client
        const prefix = `prop:${crypto.randomUUID()}:`
        const [memoryRanks, redisRanks] = [0, 1].map((): Ranks => new Map(names.map((name) => [name, makeRanks()])))
        for (const op of ops) {
          if (op.operation === "advance") {
            yield* TestClock.adjust(op.times * step)
            yield* advanceRedis(client, prefix, op.times * step)
            continue
          }
          // a foreign type under the lock's key: the token's key of another name is a string on both
          const foreign = op.operation === "foreign"
          const actual: Op = foreign ? { ...op, operation: "lock/acquire" } : op
          const [keys, args] = requestOf(actual, prefix)
          const at = foreign ? [keys[1]!, `redisson_lock_token:{${keys[1]!}}`] : keys
          const [fromMemory, fromRedis] = yield* Effect.all([
            Effect.result(memory.run(actual.operation as LockStore.Operation, at, args)),
            Effect.result(redis.run(actual.operation as LockStore.Operation, at, args))
          ])
          if (Result.isSuccess(fromMemory) && Result.isSuccess(fromRedis)) {
            if (foreign) continue
            assert.deepStrictEqual(
              normal(actual, fromMemory.success, memoryRanks!),
              normal(actual, fromRedis.success, redisRanks!),
              `${op.operation} in ${JSON.stringify(ops)}`
            )
          } else {
            assert.strictEqual(
              Result.isFailure(fromMemory) && fromMemory.failure.reason,
              Result.isFailure(fromRedis) && fromRedis.failure.reason
            )
          }
        }
      }),
    { arbitrary: { runs: 200, size: 40 } }
  )
})
