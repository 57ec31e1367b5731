/**
 * What Effect's cluster expects of a `RunnerStorage`, and what this one promises besides, over every driver. The first two tests are the
 * cases of Effect's own tests of its `SqlRunnerStorage`.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { NodeRedis } from "@effect/platform-node"
import { assert, describe } from "@effect/vitest"
import { Effect, Layer, ManagedRuntime } from "effect"
import { RedisDriver } from "effect-redis-lock"
import { afterAll } from "vitest"
import { eventually } from "../kit/eventually.ts"
import { freshName } from "../kit/names.ts"
import { TheCluster } from "../kit/server/cluster.ts"
import { redisUrl } from "../kit/server/redisUrl.ts"
import { addressOf, again, idsOf, runnerOf, shardsUpTo, storageOver, type StorageOptions } from "./storages.ts"
import { testLiveQuietly } from "../kit/test.ts"

// one cluster for all tests
const runtime = ManagedRuntime.make(TheCluster.layer())
afterAll(() => runtime.dispose())

const drivers: Record<string, Layer.Layer<RedisDriver.RedisDriver, unknown>> = {
  "one server over ioredis": IoRedis.layer({ url: redisUrl }),
  "one server over Effect's Redis": RedisDriver.layerRedis.pipe(
    Layer.provide(NodeRedis.layer({ url: redisUrl, disableOfflineQueue: true }))
  ),
  "a Redis Cluster over ioredis": Layer.unwrap(
    Effect.map(
      Effect.promise(() => runtime.runPromise(TheCluster)),
      ({ urls }) => IoRedis.layerCluster({ nodes: urls })
    )
  )
}

for (const [where, driver] of Object.entries(drivers)) {
  // they mostly wait
  describe(`the runner storage on ${where}`, { concurrent: true }, () => {
    /** Processes of a cluster of this test. */
    const processes = () => {
      const prefix = freshName("cluster")
      return (options?: StorageOptions) => storageOver(driver, { prefix, ...options })
    }

    const test: typeof testLiveQuietly = (title, body, timeout) =>
      testLiveQuietly(`${title}, on ${where}`, body, timeout)

    test("A registered runner is listed with its health until it unregisters, and keeps its machine id when it registers again", function* () {
      const storage = yield* processes()()
      const runner = runnerOf(1234)
      assert.strictEqual(yield* storage.register(runner, true), 1)
      assert.strictEqual(yield* storage.register(runner, true), 1)
      assert.deepStrictEqual(yield* storage.getRunners, [[runner, true]])
      yield* storage.setRunnerHealth(runner.address, false)
      assert.deepStrictEqual(yield* storage.getRunners, [[runner, false]])
      yield* storage.setRunnerHealth(runner.address, true)
      assert.deepStrictEqual(yield* storage.getRunners, [[runner, true]])
      yield* storage.unregister(runner.address)
      assert.deepStrictEqual(yield* storage.getRunners, [])
      yield* storage.setRunnerHealth(runner.address, true)
      assert.deepStrictEqual(yield* storage.getRunners, [])
    })

    test("A runner acquires shards, acquires them again, refreshes and releases them", function* () {
      const storage = yield* processes()()
      const shards = shardsUpTo(3)
      assert.deepStrictEqual(idsOf(yield* storage.acquire(addressOf(1), shards)), [1, 2, 3])
      assert.deepStrictEqual(idsOf(yield* storage.acquire(addressOf(1), shards)), [1, 2, 3])
      assert.deepStrictEqual(idsOf(yield* storage.refresh(addressOf(1), shards)), [1, 2, 3])
      yield* storage.release(addressOf(1), shards[1]!)
      assert.deepStrictEqual(idsOf(yield* storage.refresh(addressOf(1), shards)), [1, 3])
      assert.deepStrictEqual(yield* storage.acquire(addressOf(1), []), [])
      assert.deepStrictEqual(yield* storage.refresh(addressOf(1), []), [])
    })

    test("A shard has one owner: another runner acquires it when it was released, and refreshes, releases and takes nothing before", function* () {
      const process = processes()
      const [one, two] = [yield* process(), yield* process()]
      const shards = shardsUpTo(4)
      yield* one.acquire(addressOf(1), shards)
      assert.deepStrictEqual(yield* two.acquire(addressOf(2), shards), [])
      assert.deepStrictEqual(yield* two.refresh(addressOf(2), shards), [])
      yield* two.release(addressOf(2), shards[0]!)
      yield* two.releaseAll(addressOf(2))
      assert.deepStrictEqual(idsOf(yield* one.refresh(addressOf(1), shards)), [1, 2, 3, 4])
      yield* one.release(addressOf(1), shards[2]!)
      assert.deepStrictEqual(idsOf(yield* two.acquire(addressOf(2), shards)), [3])
      yield* one.releaseAll(addressOf(1))
      assert.deepStrictEqual(idsOf(yield* two.acquire(addressOf(2), shards)), [1, 2, 3, 4])
      assert.deepStrictEqual(yield* one.refresh(addressOf(1), shards), [])
    })

    test("Shards of different groups with the same number are different shards", function* () {
      const process = processes()
      const [one, two] = [yield* process(), yield* process()]
      yield* one.acquire(addressOf(1), shardsUpTo(2, "a:b"))
      const acquired = yield* two.acquire(addressOf(2), [...shardsUpTo(2, "a:b"), ...shardsUpTo(2, "a")])
      assert.deepStrictEqual(acquired.map(String), ["a:1", "a:2"])
    })

    test("Of two runners that race for 300 shards each shard goes to one", function* () {
      const process = processes()
      const storages = [yield* process(), yield* process()]
      const shards = shardsUpTo(300)
      const parts = Array.from({ length: 30 }, (_, part) => shards.slice(part * 10, part * 10 + 10))
      const owned = yield* Effect.forEach(
        storages,
        (storage, index) =>
          Effect.map(
            Effect.forEach(index === 0 ? parts : parts.toReversed(), (part) => storage.acquire(addressOf(index), part)),
            (all) => idsOf(all.flat())
          ),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(
        owned.flat().sort((one, other) => one - other),
        idsOf(shards)
      )
    })

    test("Ten thousand shards are acquired, refreshed and released like one", function* () {
      const process = processes()
      const [one, two] = [yield* process(), yield* process()]
      const shards = shardsUpTo(10_000)
      yield* two.acquire(addressOf(2), [shards[0]!, shards[5000]!, shards[9999]!])
      const others = idsOf(shards).filter((id) => ![1, 5001, 10_000].includes(id))
      assert.deepStrictEqual(idsOf(yield* one.acquire(addressOf(1), shards)), others)
      assert.deepStrictEqual(idsOf(yield* one.refresh(addressOf(1), shards)), others)
      yield* one.releaseAll(addressOf(1))
      assert.deepStrictEqual(idsOf(yield* two.acquire(addressOf(2), shards)), idsOf(shards))
    })

    test("Machine ids are dense, and those of runners that have unregistered are given to others", function* () {
      const process = processes()
      const [one, two] = [yield* process(), yield* process()]
      const ids = yield* Effect.forEach([1, 2, 3, 4], (port) => one.register(runnerOf(port), true))
      assert.deepStrictEqual(ids, [1, 2, 3, 4])
      assert.strictEqual(yield* two.register(runnerOf(5), true), 5)
      yield* one.unregister(addressOf(2))
      yield* one.unregister(addressOf(3))
      assert.strictEqual(yield* two.register(runnerOf(6), true), 2)
      assert.strictEqual(yield* two.register(runnerOf(2), true), 3)
      assert.strictEqual(yield* two.register(runnerOf(7), true), 6)
      assert.strictEqual((yield* two.getRunners).length, 6)
    })

    test("A machine id stays taken while its runner, which has unregistered, still holds shards", function* () {
      const storage = yield* processes()()
      yield* storage.register(runnerOf(1), true)
      yield* storage.acquire(addressOf(1), shardsUpTo(1))
      yield* storage.unregister(addressOf(1))
      assert.strictEqual(yield* storage.register(runnerOf(2), true), 2)
      yield* storage.releaseAll(addressOf(1))
      assert.strictEqual(yield* storage.register(runnerOf(3), true), 1)
    })

    test("A runner that falls silent is listed for one lease and keeps its machine id for the retention, after which it is given to another", function* () {
      const process = processes()
      const silent = yield* process({ lease: "2 seconds" })
      const other = yield* process()
      assert.strictEqual(yield* again(silent.register(runnerOf(1), true)), 1)
      assert.strictEqual(yield* other.register(runnerOf(2), true), 2)
      yield* eventually("the silent runner is not listed any more", other.getRunners, (all) => all.length === 1)
      // for as long as it may only be stopped
      assert.strictEqual(yield* other.register(runnerOf(3), true), 3)
      const impatient = yield* process({ retention: 100 })
      let port = 4
      yield* eventually(
        "its machine id is given to another runner",
        Effect.suspend(() => impatient.register(runnerOf(port++), true)),
        (id) => id === 1
      )
    })

    test("A runner that was stopped for longer than its lease gets an empty refresh, whether or not its shards were taken meanwhile", function* () {
      const process = processes()
      const stopped = yield* process({ lease: "4 seconds" })
      const other = yield* process()
      const shards = shardsUpTo(20)
      yield* again(stopped.acquire(addressOf(1), shards))
      yield* eventually(
        "another runner can take a shard",
        other.acquire(addressOf(2), shards.slice(0, 10)),
        (acquired) => acquired.length === 10
      )
      assert.deepStrictEqual(yield* stopped.refresh(addressOf(1), shards), [])
      // the others are free, and are acquired by whoever comes first
      assert.deepStrictEqual(idsOf(yield* again(stopped.acquire(addressOf(1), shards))), idsOf(shards.slice(10)))
    })

    test("A process that registers at the address of another gets its machine id, and its shards when the leases are over", function* () {
      const process = processes()
      const former = yield* process({ lease: "2 seconds" })
      const next = yield* process()
      const shards = shardsUpTo(3)
      yield* again(former.register(runnerOf(1), true))
      yield* again(former.acquire(addressOf(1), shards.slice(0, 2)))
      assert.strictEqual(yield* next.register(runnerOf(1), true), 1)
      // of one process at this address the shards are, or of the other, never of both
      assert.deepStrictEqual(yield* again(former.refresh(addressOf(1), shards)), [])
      assert.deepStrictEqual(yield* again(former.acquire(addressOf(1), shards)), [])
      assert.include(idsOf(yield* next.acquire(addressOf(1), shards)), 3)
      yield* again(former.unregister(addressOf(1)))
      assert.strictEqual((yield* next.getRunners).length, 1)
      yield* eventually(
        "the next process has the shards",
        next.acquire(addressOf(1), shards),
        (acquired) => acquired.length === 3
      )
      yield* again(former.releaseAll(addressOf(1)))
      assert.deepStrictEqual(idsOf(yield* next.refresh(addressOf(1), shards)), [1, 2, 3])
    })

    test("Clusters with different prefixes know nothing of each other", function* () {
      const [one, two] = [yield* processes()(), yield* processes()()]
      yield* one.register(runnerOf(1), true)
      yield* one.acquire(addressOf(1), shardsUpTo(2))
      assert.deepStrictEqual(yield* two.getRunners, [])
      assert.deepStrictEqual(idsOf(yield* two.acquire(addressOf(2), shardsUpTo(2))), [1, 2])
      assert.strictEqual(yield* two.register(runnerOf(2), true), 1)
    })
  })
}
