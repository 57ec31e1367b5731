/**
 * Random sequences of operations give the same replies on memory and on Redis.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { assert, it } from "@effect/vitest"
import { Arbitrary, Context, Duration, Effect, Layer, Result, Schema } from "effect"
import { LockStore, type RedisDriver } from "effect-redis-lock"
import { TestClock } from "effect/testing"
import type { Redis } from "ioredis"
import { redisUrl } from "../kit/server/redisUrl.ts"
import { runOperation } from "../kit/storeOperations.ts"
import { times } from "../kit/times.ts"
import { bare } from "../kit/server/bareRedis.ts"

class MemoryStore extends Context.Service<MemoryStore, LockStore.LockStore["Service"]>()("test/MemoryStore") {}
class RedisStore extends Context.Service<RedisStore, LockStore.LockStore["Service"]>()("test/RedisStore") {}
class Client extends Context.Service<Client, Redis>()("test/Client") {}

const client = Layer.effect(Client, bare({ url: redisUrl }))

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

// All times are multiples of 5 seconds: what little real time passes between the two stores never tips a comparison.
const step = 5000
const patience = 4 * step
const names = ["a", "b"]
const clients = ["one", "two", "three"]

const plain = [
  "lock/acquire",
  "lock/acquire",
  "lock/release",
  "lock/keep",
  "lock/renew",
  "lock/force_release",
  "lock/inspect",
  "lock/look",
  "lock/found",
  "advance"
] as const

const fair = [
  "fair_lock/acquire",
  "fair_lock/acquire",
  "fair_lock/acquire",
  "fair_lock/refresh",
  "fair_lock/release",
  "fair_lock/release",
  "lock/keep",
  "fair_lock/force_release",
  "lock/found",
  "lock/inspect",
  "lock/look",
  "lock/look",
  "advance"
] as const

const readWrite = [
  "read_lock/acquire",
  "read_lock/acquire",
  "read_lock/release",
  "read_lock/renew",
  "read_lock/force_release",
  "write_lock/acquire",
  "write_lock/acquire",
  "write_lock/release",
  "write_lock/force_release",
  "lock/found",
  "lock/inspect",
  "lock/look",
  "lock/look",
  "advance"
] as const

const records = ["record/write", "record/write", "record/write", "record/read", "record/read", "record/clear"] as const

// kinds that exclude each other also by themselves, so that they do not only answer with errors
const mixes = {
  "plain and fenced locks": [...plain, "fenced_lock/acquire", "foreign"],
  "several locks at once": [
    ...plain,
    "multi_lock/acquire",
    "multi_lock/acquire",
    "multi_lock/release",
    "fenced_lock/acquire",
    "foreign"
  ],
  "fair locks": fair,
  "read-write locks": readWrite,
  "records beside locks": [...plain, ...records, ...records],
  "all kinds together": [...plain, ...fair, ...readWrite, ...records, "fenced_lock/acquire", "foreign"]
} as const

const opOf = (operations: (typeof mixes)[keyof typeof mixes]) =>
  Schema.Struct({
    operation: Schema.Literals(operations),
    name: Schema.Literals(names),
    owner: Schema.Literals(clients),
    other: Schema.Literals(clients),
    times: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 4 })),
    count: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 3 }))
  })
type Op = ReturnType<typeof opOf>["Type"]

/** Tokens of server time differ between the stores; their order must not. Counters are the same. */
const makeRanks = () => {
  const seen: Array<number> = []
  let highestRead = 0
  return (token: number, isRead = false): string => {
    if (token < 1e15) return `counter ${token}`
    let rank = seen.indexOf(token)
    if (rank === -1) {
      assert.isTrue(seen.every((earlier) => earlier < token) && (isRead || token > highestRead), "tokens rise")
      // of two readers at one time, virtual time tells that it was one
      if (isRead) {
        highestRead = token
        return "the time, as no token is on record"
      }
      rank = seen.push(token) - 1
    }
    return `token ${rank}`
  }
}

type Ranks = Map<string, ReturnType<typeof makeRanks>>

const rounded = (millis: number): number => (millis < 0 ? millis : Math.ceil(millis / step) * step)

/** Who reads a lock that has no writer. */
const readersOf = (store: LockStore.LockStore["Service"], lock: string) =>
  Effect.map(runOperation(store, "lock/inspect", [lock, `${lock} has no token`]), (reply) => {
    const [, , fields] = reply as [number, string | null, ReadonlyArray<string>]
    return fields[fields.indexOf("mode") + 1] === "read" ? fields.filter((_, i) => i % 2 === 0) : []
  })

/** A reply, without what may differ. */
const normal = (op: Op, reply: RedisDriver.Reply, ranks: Ranks, readers: ReadonlyArray<string>): unknown => {
  const rank = ranks.get(op.name)!
  if (op.operation === "multi_lock/acquire") {
    // the clocks decide whether the tokens are the same
    const [granted, ...rest] = typeof reply === "number" ? [1, reply, reply] : (reply as Array<number>)
    if (granted === 1) return names.map((name, i) => ranks.get(name)!(rest[i]!))
    const [index, left, holder] = rest
    return [index, rounded(left!), holder]
  }
  if (op.operation.endsWith("/acquire")) {
    if (typeof reply === "number") return rank(reply, op.operation === "read_lock/acquire")
    const [left, holder] = reply as [number, string]
    // the reader that reads the longest is named: virtual time does not tell which of two that is
    if (readers.includes(holder)) return [rounded(left), "a reader"]
    // of several clients with waiting writers one is named: virtual time does not tell which that is
    return [rounded(left), holder.length === 36 ? "a waiting writer's client" : holder]
  }
  if (op.operation === "lock/inspect") {
    const [left, token, fields] = reply as [number, string | null, Array<string>]
    return [rounded(left), token === null ? null : rank(Number(token)), fields]
  }
  if (op.operation === "lock/look") {
    const [type, left, token, fields, counter, queue, waiting, readers] = reply as [
      string,
      number,
      string | null,
      ...Array<ReadonlyArray<string | number> | string | number | null>
    ]
    const held = readers as ReadonlyArray<string | number>
    return [
      ...[type, rounded(left), token === null ? null : rank(Number(token)), fields, counter, queue, waiting],
      // equal in virtual time, apart in real time
      held.flatMap((reader, i) => (i % 2 === 0 ? [`${reader} ${rounded(Number(held[i + 1]))}`] : [])).toSorted()
    ]
  }
  // but for the time
  if (op.operation === "record/read") return (reply as ReadonlyArray<string | null>).slice(1)
  if (op.operation === "fair_lock/refresh") {
    const [left, head, millis, holder, lost] = reply as [number, string | null, number, string | null, number]
    return [rounded(left), head, rounded(millis), holder, lost]
  }
  return reply
}

/** Owners begin with the 36 characters of their client's id. */
const clientOf = (who: string): string => `00000000-0000-4000-8000-${who.padStart(12, "0")}`

const requestOf = (op: Op, prefix: string): readonly [ReadonlyArray<string>, ReadonlyArray<string | number>] => {
  const lock = `${prefix}${op.name}`
  const key = (what: string) => `${what}:{${lock}}`
  const token = key("redisson_lock_token")
  const channel = key("redisson_lock__channel")
  const sharedChannel = key("redisson_rwlock")
  const queue = [key("redisson_lock_queue"), key("redisson_lock_timeout"), key("effect_redis_lock_clients")]
  const readers = key("effect_redis_lock_readers")
  const stem = `{${lock}}`
  // nobody listens: a release passes over all who have places
  const hasPlaces = op.times % 2 === 1
  const places = key("effect_redis_lock_places")
  const hasAsked = op.count === 3 ? 1 : 0
  const placeAge = op.count === 2 ? 2500 * step : 0
  const publish = op.count === 1 ? "" : "PUBLISH"
  const owner = `${clientOf(op.owner)}:1`
  const other = `${clientOf(op.other)}:1`
  const told = hasPlaces && op.count === 2 ? other : publish
  const from = op.times === 1 ? [] : op.times === 2 ? [owner] : [owner, other]
  const hold = (who: string) => `${stem}:${who}:rwlock_timeout:1`
  const lease = op.times * step
  const life = op.count * 2 * step
  const tokenLife = 86_400_000
  switch (op.operation) {
    case "lock/acquire":
      return [
        [lock, token, ...(hasPlaces ? [places] : [])],
        [owner, lease, tokenLife, ...(hasPlaces ? ["", hasAsked, placeAge] : [])]
      ]
    case "fenced_lock/acquire":
      return [
        [lock, token],
        [owner, lease]
      ]
    case "lock/release":
      return [
        [lock, channel, ...(hasPlaces ? [places, token] : [])],
        [owner, told, ...(hasPlaces ? [2000, tokenLife] : [])]
      ]
    case "lock/keep":
      return [
        [lock, channel, ...(hasPlaces ? [queue[0]!] : [])],
        [owner, "PUBLISH", lease]
      ]
    case "lock/renew":
      return [
        names.map((name) => prefix + name),
        [lease, owner, owner, ...(op.times % 2 === 0 ? [] : [lease, lease * op.times])]
      ]
    case "lock/force_release":
      return [
        [lock, channel],
        ["PUBLISH", ...from]
      ]
    case "multi_lock/acquire":
      return [
        [...names.map((name) => prefix + name), ...names.map((name) => `redisson_lock_token:{${prefix}${name}}`)],
        [owner, lease, tokenLife]
      ]
    case "multi_lock/release":
      return [
        names.flatMap((name) => [
          prefix + name,
          `redisson_lock__channel:{${prefix}${name}}`,
          ...(hasPlaces
            ? [`effect_redis_lock_places:{${prefix}${name}}`, `redisson_lock_token:{${prefix}${name}}`]
            : [])
        ]),
        [owner, ...(hasPlaces ? [2000, tokenLife] : ["", ""]), told, "PUBLISH"]
      ]
    case "lock/found":
      return [[op.count === 1 ? lock : op.count === 2 ? queue[0]! : op.times === 1 ? readers : places], []]
    case "lock/look":
      return [[lock, token, queue[0]!, readers, `{${lock}}:timeout`, `${lock}:no places`], [1000]]
    case "fair_lock/acquire":
      return [
        [lock, token, ...queue, channel],
        [owner, lease, tokenLife, op.count === 1 ? 0 : patience, clientOf(op.owner), life, "PUBLISH"]
      ]
    case "fair_lock/refresh":
      return [
        [lock, channel, ...queue],
        [
          "PUBLISH",
          patience,
          clientOf(op.owner),
          op.times === 4 ? 0 : life,
          op.count === 2 ? 0 : 1,
          op.count === 3 || op.times === 4 ? 0 : 1,
          ...(op.times === 4 ? [] : [owner, ...(op.count === 1 ? [other] : [])])
        ]
      ]
    case "fair_lock/release":
      return [
        [lock, channel, ...queue],
        [owner, "PUBLISH"]
      ]
    case "fair_lock/force_release":
      return [
        [lock, channel, ...queue],
        ["PUBLISH", ...from]
      ]
    case "read_lock/acquire":
      return [
        [lock, token, hold(owner), readers, places],
        [
          owner,
          lease,
          op.count === 1 ? other : "",
          1234,
          // two steps and a half, as virtual time does not tell what was at the same time
          op.times === 4 ? "" : op.times === 1 ? 0 : 2500 * step,
          ...(hasPlaces ? [hasAsked, placeAge] : ["", 0])
        ]
      ]
    case "read_lock/release":
      return [
        [lock, sharedChannel, stem, readers, ...(hasPlaces ? [places, token] : [])],
        [owner, publish, ...(hasPlaces ? [2000, tokenLife] : [])]
      ]
    case "write_lock/release":
      return [
        [lock, sharedChannel, stem, readers, places, ...(hasPlaces ? [token] : [])],
        [
          owner,
          told,
          ...(hasPlaces ? [2000, tokenLife] : ["", ""]),
          hasPlaces ? owner : op.count === 1 ? "" : clientOf(op.owner)
        ]
      ]
    case "read_lock/renew":
      return [
        [lock, readers, hold(owner), lock, readers, hold(other)],
        [lease, owner, lease * op.times, other]
      ]
    case "read_lock/force_release":
    case "write_lock/force_release":
      return [
        [lock, sharedChannel, stem, readers],
        ["PUBLISH", ...from]
      ]
    case "write_lock/acquire":
      return [
        [lock, token, readers, places],
        [owner, lease, tokenLife, "", hasPlaces ? owner : op.count === 1 ? "" : clientOf(op.owner), hasAsked, placeAge]
      ]
    case "record/write":
      return [
        [lock, key("effect_redis_lock_record")],
        [owner, op.times, op.count, "a value\nof two lines", op.times === 4 ? 0 : lease, "PUBLISH"]
      ]
    case "record/read":
      return [[lock, key("effect_redis_lock_record")], []]
    case "record/clear":
      return [
        [lock, key("effect_redis_lock_record")],
        [owner, "PUBLISH"]
      ]
    default:
      return [[lock, token], []]
  }
}

const serverMicros = (redis: Redis) =>
  Effect.promise(async () => {
    const [seconds = 0, micros = 0] = await redis.time()
    return BigInt(seconds) * 1_000_000n + BigInt(micros)
  })

/** Lets time pass on the server by bringing every expiry, and every time that is written down, nearer. */
const advanceRedis = (redis: Redis, prefix: string, millis: number) =>
  Effect.promise(async () => {
    for (const key of await redis.keys(`*${prefix}*`)) {
      if ((await redis.type(key)) === "zset") {
        const units = key.startsWith("effect_redis_lock_places") ? 1000 * millis : millis
        for (const member of await redis.zrange(key, "0", "-1")) await redis.zincrby(key, String(-units), member)
      }
      const left = await redis.pttl(key)
      if (left === -1) continue
      await (left <= millis ? redis.del(key) : redis.pexpire(key, left - millis))
    }
  })

it.layer(both)("memory and Redis", (it) => {
  for (const [title, operations] of Object.entries(mixes)) {
    it.effect.prop(
      `Memory and Redis reply alike, whatever happens in whatever order: ${title}`,
      [Arbitrary.array(Arbitrary.schema(opOf(operations)), { minLength: 10, maxLength: 60 })],
      ([ops]) =>
        Effect.gen(function* () {
          const memory = yield* MemoryStore
          const redis = yield* RedisStore
          const client = yield* Client
          const prefix = `prop:${crypto.randomUUID()}:`
          const [memoryRanks, redisRanks] = [0, 1].map((): Ranks => new Map(names.map((name) => [name, makeRanks()])))
          let gaps = 0
          let lastTime = yield* serverMicros(client)
          for (const op of ops) {
            if (op.operation === "advance") {
              // what the first gap has postponed for a fair waiter, a sixth one would end within a millisecond: the clocks decide
              if (++gaps > 5 && operations.some((name) => name.startsWith("fair_lock/"))) continue
              yield* TestClock.adjust(op.times * step)
              yield* advanceRedis(client, prefix, op.times * step)
              continue
            }
            // a foreign type under the lock's key: the token's key of another name is a string on both
            const foreign = op.operation === "foreign"
            const actual: Op = foreign ? { ...op, operation: "lock/acquire" } : op
            const [keys, args] = requestOf(actual, prefix)
            const at = foreign ? [keys[1]!, `redisson_lock_token:{${keys[1]!}}`] : keys
            const fromRedis = yield* Effect.result(
              runOperation(redis, actual.operation as LockStore.Operation, at, args)
            )
            // What real time has passed on Redis passes in memory as well: a busy machine may take long for one operation, and of two
            // within a millisecond one is the earlier.
            const now = yield* serverMicros(client)
            yield* TestClock.adjust(Duration.micros(now - lastTime))
            lastTime = now
            const fromMemory = yield* Effect.result(
              runOperation(memory, actual.operation as LockStore.Operation, at, args)
            )
            if (Result.isSuccess(fromMemory) && Result.isSuccess(fromRedis)) {
              if (foreign) continue
              const readers = actual.operation === "write_lock/acquire" ? yield* readersOf(memory, keys[0]!) : []
              assert.deepStrictEqual(
                normal(actual, fromMemory.success, memoryRanks!, readers),
                normal(actual, fromRedis.success, redisRanks!, readers),
                `${op.operation} in ${JSON.stringify(ops)}`
              )
            } else {
              assert.strictEqual(
                Result.isFailure(fromMemory) && fromMemory.failure.reason,
                Result.isFailure(fromRedis) && fromRedis.failure.reason,
                `${op.operation} in ${JSON.stringify(ops)}`
              )
            }
          }
        }),
      { arbitrary: { runs: 50 * times, size: 50 } }
    )
  }
})
