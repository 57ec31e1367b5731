/**
 * Random sequences of the operations behind semaphores and latches, with and without places, give the same replies and the same
 * messages on memory and on Redis.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { assert, it } from "@effect/vitest"
import { Arbitrary, Context, Effect, Layer, Result, Schema, Stream } from "effect"
import { LockStore, type RedisDriver } from "effect-redis-lock"
import { TestClock } from "effect/testing"
import type { Redis } from "ioredis"
import { redisUrl } from "../kit/server/redisUrl.ts"
import { clientId, runOperation } from "../kit/storeOperations.ts"
import { times } from "../kit/times.ts"
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

// All times are multiples of 6 seconds, and so is the age of a place, which is never zero: what little real time passes on Redis never tips a
// comparison.
const step = 6000
const names = ["a", "b"]
/** Of clients that take places: the last one does not listen. */
const clientIds = ["a", "b", "c"].map(clientId)
const ids = Array.from({ length: 5 }, (_, i) => `${i}f`.repeat(16))

const Op = Schema.Struct({
  operation: Schema.Literals([
    "semaphore/acquire",
    "semaphore/acquire",
    "semaphore/return",
    "semaphore/leave",
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
  /** Of a client that waits: the permits that it wants if it is denied, and if it is granted these; undefined if it takes no places. */
  asks: Schema.UndefinedOr(
    Schema.Struct({
      client: Schema.Literals(clientIds),
      ifDenied: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 5 })),
      ifGranted: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 5 })),
      /** In steps that are longer than the rest of a run; undefined for a fiber that does not wait yet. */
      waited: Schema.UndefinedOr(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 3 })))
    })
  ),
  flag: Schema.Boolean
})
type Op = typeof Op.Type

const rounded = (millis: number): number => (millis < 0 ? millis : Math.ceil(millis / step) * step)

/** A reply, without what may differ. */
const normal = (op: Op, reply: RedisDriver.Reply): unknown => {
  if (op.operation === "permit_semaphore/lease") return rounded(reply as number)
  if (op.operation === "semaphore/acquire") {
    const [granted, available, exists, left] = reply as readonly [number, number, number, number]
    return [granted, available, exists, rounded(left)]
  }
  if (op.operation === "permit_semaphore/acquire") {
    const [granted, available, next] = reply as [number, number, number]
    return [granted, available, rounded(next)]
  }
  if (op.operation === "lock/look") {
    const [type, left, , , counter, , , , permits, held] = reply as ReadonlyArray<RedisDriver.Reply>
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

const askingOf = ({ client, ifDenied, ifGranted, waited }: NonNullable<Op["asks"]>) => {
  const millis = (waited ?? 0) * 700_000
  return [client, ifDenied, millis, ifGranted, millis, waited === undefined ? 1 : 0]
}

const commandOf = (op: Op, prefix: string): Command => {
  const at = (name: string) => `${prefix}${name}`
  const key = at(op.name)
  const zset = `{${key}}:timeout`
  const channel = `redisson_sc:{${key}}`
  const { asks } = op
  const places = ["places", "wants"].map((what) => `effect_redis_lock_permit_${what}:{${key}}`)
  const tells = asks === undefined ? [channel] : [channel, ...places]
  const asking = asks === undefined ? [] : askingOf(asks)
  const latchChannel = `redisson_countdownlatch__channel__{${key}}`
  const marker = `effect_redis_lock_grant:{${key}}:${op.first}`
  const some = Array.from({ length: op.many }, (_, i) => ids[(op.first + i) % ids.length]!)
  const lease = op.times * step
  const initial = op.flag ? op.times : ""
  switch (op.operation) {
    case "semaphore/acquire":
      return [op.operation, [key, zset, marker, ...tells], [initial, op.many, lease, "PUBLISH", ...asking]]
    case "semaphore/return":
      return [op.operation, [key, marker, ...tells], [op.many, op.flag ? lease : 0, "PUBLISH"]]
    case "semaphore/leave":
      return [op.operation, [key, channel, ...places], [asks?.client ?? "nobody", "PUBLISH"]]
    case "semaphore/add":
      return [op.operation, [key, zset, ...tells], [initial, op.count, op.many === 1 ? 1 : 0, "PUBLISH"]]
    case "semaphore/set":
      return [op.operation, [key, zset, ...tells], [op.times, op.flag ? lease : 0, "PUBLISH"]]
    case "semaphore/drain":
      return [op.operation, [key, zset], [initial]]
    case "semaphore/available":
    case "latch/count":
      return [op.operation, [key], []]
    case "permit_semaphore/acquire":
      return [op.operation, [key, zset, ...tells], [initial, lease, "PUBLISH", ...asking, ...some]]
    case "permit_semaphore/release":
    case "permit_semaphore/try_release":
      return [op.operation, [key, zset, ...tells], ["PUBLISH", ...some]]
    case "permit_semaphore/renew":
      return [
        op.operation,
        names.map((name) => `{${at(name)}}:timeout`),
        [lease, some.join(","), lease, ids[op.first]!]
      ]
    case "permit_semaphore/count":
      return [op.operation, [key, zset, ...tells], ["PUBLISH"]]
    case "permit_semaphore/set":
      return [op.operation, [key, zset, ...tells], [op.times, op.flag ? 1 : 0, "PUBLISH"]]
    case "permit_semaphore/add":
      return [op.operation, [key, zset, ...tells], [initial, op.count, "PUBLISH"]]
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
          ...["queue", "readers"].map((what) => `${key}:no ${what}`),
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
      if (key.includes("permit_places")) {
        for (const client of await redis.zrange(key, "0", "-1")) await redis.zincrby(key, -millis * 1000, client)
      } else if (key.includes("permit_wants")) {
        for (const [client, text] of Object.entries(await redis.hgetall(key))) {
          const [wanted, longest, told] = text.split(" ")
          if (told !== undefined) await redis.hset(key, client, `${wanted} ${longest} ${Number(told) - millis * 1000}`)
        }
      } else if ((await redis.type(key)) === "zset") {
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
        const end = `redisson_sc:{${prefix}end}`
        const channels = names.flatMap((name) => {
          const shared = `redisson_sc:{${prefix}${name}}`
          const own = ["ours", ...clientIds.slice(0, 2)].map((suffix) => `${shared}:${suffix}`)
          return [shared, ...own, `redisson_countdownlatch__channel__{${prefix}${name}}`]
        })
        for (const channel of channels) {
          yield* memory.subscribe(channel).pipe(
            Stream.runForEach((signal) =>
              Effect.sync(() => signal._tag === "Message" && fromMemory.push(`${channel} ${signal.message}`))
            ),
            Effect.forkScoped({ startImmediately: true })
          )
        }
        const hear = (channel: string, message: string) => fromRedis.push(`${channel} ${message}`)
        listener.on("message", hear)
        yield* Effect.promise(() => listener.subscribe(end, ...channels))

        const advance = (times: number) =>
          Effect.andThen(TestClock.adjust(times * step), advanceRedis(client, prefix, times * step))
        for (const op of ops) {
          if (op.operation === "advance") {
            yield* advance(op.times)
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
          if (op.asks !== undefined) yield* advance(1)
        }

        yield* Effect.promise(() => client.publish(end, "end"))
        while (!fromRedis.at(-1)?.endsWith("end"))
          yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 1)))
        listener.off("message", hear)
        yield* Effect.promise(() => listener.unsubscribe())
        yield* Effect.yieldNow
        // a channel has its order; among the channels there is none on memory
        assert.deepStrictEqual(fromMemory.toSorted(), fromRedis.slice(0, -1).toSorted(), story)
        yield* Effect.promise(async () => {
          for (const key of await client.keys(`*${prefix}*`)) await client.del(key)
        })
      }).pipe(Effect.scoped),
    { arbitrary: { runs: 75 * times, size: 40 } }
  )
})
