/**
 * Whatever operation an interruption hits, composed locks leave nothing behind: no member held, no waiter, no holding watched.
 */
import { as, serviceOf } from "../../kit/testStore.ts"
import { assert, describe } from "@effect/vitest"
import { Effect, Fiber, Layer, Result } from "effect"
import { Lock, LockStore, MultiLock, RedisLock, RedLock } from "effect-redis-lock"
import type { LockClient } from "../../../packages/core/dist/internal/client/LockClient.js"
import { onRedis } from "../../kit/stores.ts"
import { assertIdle, clients } from "./elsewhere.ts"
import { isWaiting, sweep } from "./sweep.ts"
import { testLive } from "../../kit/test.ts"

type Service = RedisLock.RedisLock["Service"]

const assertAllIdle = (service: Service, index: number) =>
  Effect.gen(function* () {
    yield* as(service)(assertIdle(index))
    for (const quorum of (service as unknown as LockClient).quorumClients.values()) {
      assert.strictEqual(quorum.lines.size, 0, `a waiter of a quorum is left after ${index}`)
      assert.strictEqual(quorum.watchdog.leases.length, 0, `a holding of a quorum is left after ${index}`)
    }
  })

/** Three services, each of a store of its own. */
const three = <E>(store: Layer.Layer<LockStore.LockStore, E>) =>
  Effect.forEach([1, 2, 3], () => serviceOf(Layer.provide(clients, store)))

interface Scenario {
  readonly lock: Lock.Lock<never, any, any>
  readonly members: ReadonlyArray<Lock.Lock<never, any, any>>
}

const scenarios: Record<string, (services: ReadonlyArray<Service>, name: string) => Scenario> = {
  "a lock of several on one service": ([service], name) => {
    const members = ["a", "b", "c"].map((suffix) => Lock.provide(Lock.make(`${name}:${suffix}`), service!))
    return { lock: MultiLock.make(members), members }
  },
  "a lock of several on three services": (services, name) => {
    const members = services.map((service, i) => Lock.provide(Lock.make(`${name}:${i}`), service))
    return { lock: MultiLock.make(members), members }
  },
  "a lock on a majority": (services, name) => {
    // where two services are of one server, one of them would keep the other out
    const members = services.map((service, i) => Lock.provide(Lock.make(`${name}:${i}`), service))
    return { lock: RedLock.make(members, { memberTimeout: "5 seconds", retryDelay: 1 }), members }
  }
}

const suite = <E>(where: "memory" | "Redis", store: Layer.Layer<LockStore.LockStore, E>) =>
  describe(`interruption of composed locks on ${where}`, { concurrent: isWaiting(where) }, () => {
    for (const [title, make] of Object.entries(scenarios)) {
      const setUp = Effect.gen(function* () {
        const services = yield* three(store)
        const { lock, members } = make(services, `composed:${crypto.randomUUID()}`)
        const assertFree = (index: number) =>
          Effect.gen(function* () {
            for (const service of services) yield* assertAllIdle(service, index)
            for (const member of members) {
              assert.isFalse(yield* Lock.isLocked(member), `${member.name} is left after ${index}`)
            }
            const again = yield* Effect.result(Lock.withLock(Effect.void, lock, { waitTime: 0 }))
            assert.isTrue(Result.isSuccess(again), `the lock cannot be had after ${index}`)
          })
        return { lock, members, assertFree }
      })

      testLive(`at every operation of ${title}`, function* () {
        const { assertFree, lock } = yield* setUp
        const programs = [
          Lock.withLock(Effect.yieldNow, lock),
          Effect.scoped(Effect.andThen(Lock.tryScoped(lock), Effect.yieldNow)),
          Lock.withLock(Lock.withLock(Effect.yieldNow, lock), lock)
        ]
        // on Redis for the waits for its replies, which the first has as well
        for (const program of where === "memory" ? programs : programs.slice(0, 1)) {
          const interruptions = yield* sweep({ program, check: (index) => assertFree(index) })
          assert.isAbove(interruptions, 10)
        }
      })

      // in memory nothing comes in another order than in the sweep
      if (where === "memory") continue
      testLive(`at 200 random moments of four fibers that compete for ${title} and its members`, function* () {
        const { assertFree, lock, members } = yield* setUp
        // each fiber an owner of its own
        const competing = Effect.all(
          [
            Lock.withLock(Effect.yieldNow, lock),
            Lock.withLock(Effect.yieldNow, lock, { waitTime: "10 seconds" }),
            Lock.withLock(Effect.yieldNow, members[1]!),
            Effect.scoped(Lock.tryScoped(lock))
          ].map(Lock.withOwner),
          { concurrency: "unbounded", discard: true }
        )
        let interrupted = 0
        for (let i = 0; i < 200; i++) {
          const fiber = yield* Effect.forkChild(competing)
          if (i % 4 === 0) for (let n = Math.random() * 20; n > 0; n--) yield* Effect.yieldNow
          else yield* Effect.sleep(Math.random() * 4)
          if (fiber.pollUnsafe() === undefined) interrupted++
          yield* Fiber.interrupt(fiber)
          yield* assertFree(i)
        }
        assert.isAbove(interrupted, 10)
      })
    }
  })

suite("memory", LockStore.layerMemory)
suite("Redis", onRedis)
