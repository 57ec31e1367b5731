/**
 * Shards that are refreshed together share one lease, which is extended without listing them. Whatever happens to one of them, each
 * refresh answers with exactly the shards that are held.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { RedisServer } from "@effect-redis-lock/testing"
import { assert, describe } from "@effect/vitest"
import { Effect, Fiber, Layer, Option } from "effect"
import { RedisDriver } from "effect-redis-lock"
import type { Redis } from "ioredis"
import { impossible, skewedServers } from "../faults/skewedServers.ts"
import { eventually, until } from "../kit/eventually.ts"
import { bare, reconnectsAtOnce } from "../kit/server/bareRedis.ts"
import { addressOf, again, idsOf, runnerOf, shardsUpTo, storageOver } from "./storages.ts"
import { testLiveQuietly, testLive } from "../kit/test.ts"

const over = ({ url }: { readonly url: string }) =>
  IoRedis.layer({ url, commandTimeout: 3000, ioredis: reconnectsAtOnce })

const key = "{effect_cluster}:shards"

/** Which scripts were run, in order. */
const recording = (at: { readonly url: string }) => {
  const scripts: Array<string> = []
  const driver = Layer.effect(
    RedisDriver.RedisDriver,
    Effect.map(RedisDriver.RedisDriver, (driver) => ({
      ...driver,
      eval: (...args: Parameters<typeof driver.eval>) => {
        scripts.push(args[0].name.replace("runner_storage/", ""))
        return driver.eval(...args)
      }
    }))
  ).pipe(Layer.provide(over(at)))
  return { driver, scripts }
}

/** Every lease says how many shards name it. */
const assertSizes = Effect.fnUntraced(function* (redis: Redis) {
  const fields = yield* Effect.promise(() => redis.hgetall(key))
  const named = new Map<string, number>()
  for (const lease of Object.values(fields)) {
    if (lease in fields) named.set(lease, (named.get(lease) ?? 0) + 1)
  }
  const sizes = Object.entries(fields).flatMap(([field, value]) => {
    const size = /^\d{13} (\d+)$/.exec(value)?.[1]
    return size === undefined ? [] : [[field, Number(size)] as const]
  })
  assert.deepStrictEqual(new Map(sizes.sort()), new Map([...named].sort()))
})

/** Waits until a refresh has kept the only runner alive for longer. */
const keepsAlive = <A, E>(redis: Redis, refresh: Effect.Effect<A, E>) => {
  const state = Effect.promise(async () => (await redis.hvals("{effect_cluster}:runners"))[0]!)
  return until(
    "it is kept alive for longer",
    Effect.gen(function* () {
      const before = yield* state
      yield* refresh
      return (yield* state) > before
    })
  )
}

describe("shards that are refreshed together", () => {
  testLive(
    "A runner that refreshes the same shards again, all or some of them, sends one command without any shard, and is kept alive",
    function* () {
      const server = yield* RedisServer.start()
      const { driver, scripts } = recording(server)
      const [one, two] = [yield* storageOver(driver), yield* storageOver(over(server))]
      const shards = shardsUpTo(300)
      yield* one.register(runnerOf(1), true)
      yield* one.acquire(addressOf(1), shards)
      yield* one.refresh(addressOf(1), shards)
      scripts.length = 0
      for (const asked of [shards, [...shards], shards.slice(5, 6), new Set(shards.slice(7)), shards]) {
        const ids = idsOf([...asked])
        assert.deepStrictEqual(idsOf(yield* one.refresh(addressOf(1), asked)), ids)
      }
      assert.deepStrictEqual(
        scripts,
        Array.from({ length: 5 }, () => "extend")
      )
      yield* keepsAlive(yield* bare(server), one.refresh(addressOf(1), shards))
      // nor does an answer belong to the storage
      ;(yield* one.refresh(addressOf(1), shards)).pop()
      assert.strictEqual((yield* one.refresh(addressOf(1), shards)).length, 300)
      assert.deepStrictEqual(yield* two.acquire(addressOf(2), shards), [])
    }
  )

  testLive("A runner without shards that refreshes is kept alive, and extends no lease", function* () {
    const server = yield* RedisServer.start()
    const redis = yield* bare(server)
    const storage = yield* storageOver(over(server))
    yield* storage.register(runnerOf(1), true)
    yield* storage.acquire(addressOf(1), shardsUpTo(3))
    yield* storage.refresh(addressOf(1), shardsUpTo(3))
    const before = yield* Effect.promise(() => redis.hgetall(key))
    assert.deepStrictEqual(yield* storage.refresh(addressOf(1), []), [])
    yield* keepsAlive(redis, storage.refresh(addressOf(1), []))
    assert.deepStrictEqual(yield* Effect.promise(() => redis.hgetall(key)), before)
    assert.strictEqual((yield* storage.refresh(addressOf(1), shardsUpTo(3))).length, 3)
  })

  testLive("A shard that is named twice is acquired, refreshed and released as one", function* () {
    const server = yield* RedisServer.start()
    const redis = yield* bare(server)
    const [one, two] = [yield* storageOver(over(server)), yield* storageOver(over(server))]
    const [first, second] = shardsUpTo(2)
    const twice = [first!, second!, first!]
    for (let i = 0; i < 3; i++) {
      for (const answer of [yield* one.acquire(addressOf(1), twice), yield* one.refresh(addressOf(1), twice)]) {
        assert.deepStrictEqual(new Set(answer), new Set([first, second]))
      }
      yield* assertSizes(redis)
    }
    yield* one.release(addressOf(1), first!)
    yield* assertSizes(redis)
    assert.deepStrictEqual(yield* one.refresh(addressOf(1), [second!]), [second!])
    assert.deepStrictEqual(yield* two.acquire(addressOf(2), twice), [first!])
  })

  testLive(
    "A shard that its runner does not refresh is free when its lease is over, although the runner refreshes others",
    function* () {
      const server = yield* RedisServer.start()
      const [one, two] = [yield* storageOver(over(server), { lease: "2 seconds" }), yield* storageOver(over(server))]
      const [kept, abandoned] = [shardsUpTo(3), shardsUpTo(4).slice(3)]
      yield* again(one.acquire(addressOf(1), kept))
      yield* again(one.refresh(addressOf(1), kept))
      // as when Sharding gives up before the reply
      yield* again(one.acquire(addressOf(1), abandoned))
      yield* eventually(
        "another runner acquires it",
        Effect.andThen(again(one.refresh(addressOf(1), kept)), two.acquire(addressOf(2), abandoned)),
        (acquired) => acquired.length === 1
      )
    }
  )

  for (const operation of ["release", "release_all"] as const) {
    testLive(
      `A ${operation} that Redis runs after the shards were acquired again leaves them to the runner`,
      function* () {
        const server = yield* RedisServer.start()
        let late: ReturnType<RedisDriver.RedisDriver["Service"]["eval"]> | undefined
        const driver = Layer.effect(
          RedisDriver.RedisDriver,
          Effect.map(RedisDriver.RedisDriver, (driver) => ({
            ...driver,
            eval: (...args: Parameters<typeof driver.eval>) => {
              if (args[0].name !== `runner_storage/${operation}` || late !== undefined) return driver.eval(...args)
              late = driver.eval(...args)
              return Effect.fail(RedisDriver.makeError(new Error("ERR held back")))
            }
          }))
        ).pipe(Layer.provide(over(server)))
        const [one, two] = [yield* storageOver(driver), yield* storageOver(over(server))]
        const shards = shardsUpTo(3)
        const release = operation === "release" ? one.release(addressOf(1), shards[1]!) : one.releaseAll(addressOf(1))
        yield* one.acquire(addressOf(1), shards)
        yield* one.refresh(addressOf(1), shards)
        yield* Effect.flip(release)
        // as Sharding does
        yield* release
        yield* one.acquire(addressOf(1), shards)
        assert.strictEqual(yield* late!, 0)
        assert.deepStrictEqual(yield* two.acquire(addressOf(2), shards), [])
        assert.deepStrictEqual(idsOf(yield* one.refresh(addressOf(1), shards)), [1, 2, 3])
        yield* release
        assert.deepStrictEqual(
          idsOf(yield* two.acquire(addressOf(2), shards)),
          operation === "release" ? [2] : [1, 2, 3]
        )
      }
    )
  }

  testLive(
    "A shard that its runner has given up while a refresh is repeated is not refreshed, though Redis has not heard of it",
    function* () {
      const server = yield* RedisServer.start()
      let isAway = false
      let refused = 0
      const driver = Layer.effect(
        RedisDriver.RedisDriver,
        Effect.map(RedisDriver.RedisDriver, (driver) => ({
          ...driver,
          eval: (...args: Parameters<typeof driver.eval>) =>
            Effect.suspend(() => {
              if (!isAway) return driver.eval(...args)
              refused++
              return Effect.fail(RedisDriver.makeError(new Error("The client is offline")))
            })
        }))
      ).pipe(Layer.provide(over(server)))
      const storage = yield* storageOver(driver)
      const shards = shardsUpTo(3)
      yield* storage.acquire(addressOf(1), shards)
      isAway = true
      const refresh = yield* Effect.forkScoped(storage.refresh(addressOf(1), shards), { startImmediately: true })
      yield* until("the refresh is refused", () => refused > 0)
      yield* Effect.flip(storage.release(addressOf(1), shards[1]!))
      isAway = false
      assert.deepStrictEqual(idsOf(yield* Fiber.join(refresh)), [1, 3])
      assert.deepStrictEqual(idsOf(yield* storage.refresh(addressOf(1), shards)), [1, 3])
    }
  )

  testLive("A runner whose shards were lost in Redis gets an empty refresh", function* () {
    const server = yield* RedisServer.start()
    const redis = yield* bare(server)
    const storage = yield* storageOver(over(server))
    const shards = shardsUpTo(3)
    yield* storage.acquire(addressOf(1), shards)
    yield* storage.refresh(addressOf(1), shards)
    yield* storage.refresh(addressOf(1), shards)
    yield* Effect.promise(() => redis.del(key))
    assert.deepStrictEqual(yield* storage.refresh(addressOf(1), shards), [])
    yield* storage.acquire(addressOf(1), shards)
    assert.deepStrictEqual(idsOf(yield* storage.refresh(addressOf(1), shards)), [1, 2, 3])
  })
})

/** A runner that holds three shards, and another one that could take them, on a server whose clock is set. */
const onAClockThatIsSet = Effect.gen(function* () {
  const [place] = yield* skewedServers([0])
  const { server, setClock } = place!
  const one = yield* storageOver(over(server))
  const two = yield* storageOver(over(server), { lease: "10 hours" })
  const shards = shardsUpTo(3)
  // so that the key stays
  yield* two.acquire(addressOf(2), shardsUpTo(1, "other"))
  yield* one.acquire(addressOf(1), shards)
  return { one, setClock, shards, two }
})

if (impossible !== undefined)
  console.log(`The tests of leases on a server whose clock is set are skipped: ${impossible}`)

describe.skipIf(impossible !== undefined)("leases on a server whose clock is set", () => {
  testLiveQuietly(
    "A runner whose shard was taken over gets none of its shards back, even if the server's clock is set back",
    function* () {
      const { one, setClock, shards, two } = yield* onAClockThatIsSet
      assert.deepStrictEqual(idsOf(yield* one.refresh(addressOf(1), shards)), [1, 2, 3])
      yield* setClock(3600)
      assert.deepStrictEqual(idsOf(yield* two.acquire(addressOf(2), shards.slice(1, 2))), [2])
      yield* setClock(0)
      assert.deepStrictEqual(yield* one.refresh(addressOf(1), shards), [])
    }
  )

  testLiveQuietly(
    "A lease that is over by the server's clock is not extended, though nobody took its shards and the runner's own clock is behind",
    function* () {
      const { one, setClock, shards, two } = yield* onAClockThatIsSet
      yield* one.refresh(addressOf(1), shards)
      assert.deepStrictEqual(idsOf(yield* one.refresh(addressOf(1), shards)), [1, 2, 3])
      yield* setClock(3600)
      assert.deepStrictEqual(yield* one.refresh(addressOf(1), shards), [])
      yield* setClock(0)
      assert.deepStrictEqual(yield* one.refresh(addressOf(1), shards), [])
      assert.deepStrictEqual(idsOf(yield* two.acquire(addressOf(2), shards)), [1, 2, 3])
    }
  )

  testLiveQuietly(
    "Whatever runners do and whatever time passes, a shard has one owner and a refresh answers with exactly the shards that are held",
    function* () {
      const [place] = yield* skewedServers([0])
      const { redis, server, setClock } = place!
      const seed = Date.now() % 1_000_000
      let state = seed
      const random = (below: number): number => {
        state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff
        return Math.floor((state / 0x80000000) * below)
      }
      const shards = shardsUpTo(8)
      let hour = 0
      const leaseHours = [0.5, 1.5] as const
      const loses = [false, false]
      const processes = yield* Effect.forEach([0, 1], (index) =>
        storageOver(
          Layer.effect(
            RedisDriver.RedisDriver,
            Effect.map(RedisDriver.RedisDriver, (driver) => ({
              ...driver,
              eval: (...args: Parameters<typeof driver.eval>) =>
                Effect.flatMap(driver.eval(...args), (reply) =>
                  loses[index]
                    ? Effect.fail(RedisDriver.makeError(new Error("ERR the reply was lost")))
                    : Effect.succeed(reply)
                )
            }))
          ).pipe(Layer.provide(over(server))),
          { lease: leaseHours[index]! * 3_600_000 }
        )
      )

      /** Who holds which shard in Redis, and until when. */
      const owned = Effect.gen(function* () {
        const [[seconds], fields] = yield* Effect.promise(() => Promise.all([redis.time(), redis.hgetall(key)]))
        const held = new Map<number, { readonly owner: number; readonly until: number }>()
        for (const { id } of shards) {
          const lease = fields[`default:${id}`] ?? ""
          const until = Number(fields[lease]?.slice(0, 13) ?? 0)
          if (until > Number(seconds) * 1000) held.set(id, { owner: Number(/:(\d+) /.exec(lease)![1]), until })
        }
        return { held, now: Number(seconds) * 1000 }
      })

      /** What each process has been granted, and was not told to have lost. */
      const granted = [new Set<number>(), new Set<number>()]
      const history: Array<string> = []
      const operations = ["acquire", ...Array.from({ length: 7 }, () => "refresh" as const), "release", "pass"] as const
      /** What each process has kept by its last refresh: mostly it refreshes that again, or a part of it. */
      const last = [shards, shards]

      for (let step = 0; step < 400; step++) {
        const index = random(2)
        const storage = processes[index]!
        const address = addressOf(index)
        const known = granted[index]!
        const drawn = operations[random(operations.length)]!
        const operation = drawn === "release" && random(4) === 0 ? "releaseAll" : drawn
        const candidates = operation === "refresh" && random(8) > 0 ? last[index]! : shards
        const asked = random(4) > 0 ? candidates : candidates.filter(() => random(2) === 0)
        const ids = idsOf(asked)
        if (operation === "pass") {
          yield* setClock(++hour * 3600)
          continue
        }
        loses[index] = random(10) === 0
        history.push(`${index} ${operation} ${ids}${loses[index] ? ", reply lost" : ""}, hour ${hour}`)
        const context = () => `seed ${seed}\n${history.slice(-40).join("\n")}`
        const before = (yield* owned).held
        const isMine = (id: number) => before.get(id)?.owner === index

        let told: ReadonlyArray<number> = []
        if (operation === "acquire") {
          told = ids.filter((id) => isMine(id) || !before.has(id))
          const answer = yield* Effect.option(storage.acquire(address, asked))
          if (Option.isSome(answer)) {
            assert.deepStrictEqual(idsOf(answer.value), told, context())
            for (const id of ids) known.delete(id)
            for (const id of told) known.add(id)
          }
        } else if (operation === "refresh") {
          told = ids.filter((id) => isMine(id) && known.has(id))
          const answer = yield* Effect.option(storage.refresh(address, asked))
          if (Option.isSome(answer)) {
            assert.deepStrictEqual(idsOf(answer.value), told, context())
            for (const id of ids) if (!told.includes(id)) known.delete(id)
            last[index] = told.length > 0 ? answer.value : shards
          } else told = []
        } else if (operation === "release") {
          const shard = shards[random(shards.length)]!
          yield* Effect.ignore(storage.release(address, shard))
          known.delete(shard.id)
          before.delete(isMine(shard.id) ? shard.id : 0)
        } else {
          yield* Effect.ignore(storage.releaseAll(address))
          known.clear()
          for (const { id } of shards) if (isMine(id)) before.delete(id)
        }
        loses[index] = false

        const after = yield* owned
        for (const { id } of shards) {
          const [was, is] = [before.get(id), after.held.get(id)]
          if (told.includes(id)) {
            assert.strictEqual(is?.owner, index, context())
            assert.isAtLeast(is!.until, after.now + (leaseHours[index]! * 60 - 1) * 60_000, context())
          } else if (was === undefined || was.owner !== index) assert.deepStrictEqual(is, was, context())
          else {
            assert.strictEqual(is?.owner, index, context())
            assert.isAtLeast(is!.until, was.until, context())
          }
        }
        yield* assertSizes(redis)
      }
    }
  )
})
