/**
 * Whatever operation an interruption hits, nothing stays behind: no lock, no waiter, no channel, and the lock can be had at
 * once.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Result } from "effect"
import { Lock, LockStore, ReadWriteLock, RedisLock } from "effect-redis-lock"
import type { AnyLock } from "../../contract/suite/contract.ts"
import { kinds } from "../../contract/suite/kinds.ts"
import { onRedis } from "../../kit/stores.ts"
import { assertIdle, holdElsewhere, sweepHandOver, testLeavesNothing, testsElsewhere } from "./elsewhere.ts"
import { isWaiting, sweep } from "./sweep.ts"
import { typeOfKey, typeOfKeyIn } from "../../kit/storeOperations.ts"

const keysOf = (name: string) => [
  name,
  `redisson_lock_queue:{${name}}`,
  `redisson_lock_timeout:{${name}}`,
  `effect_redis_lock_clients:{${name}}`,
  `effect_redis_lock_readers:{${name}}`,
  `effect_redis_lock_writers:{${name}}`
]

/** Nothing but the token is in the store. */
const assertNothing = (lock: string, index: number) =>
  LockStore.LockStore.use((store) =>
    Effect.forEach(
      keysOf(lock),
      (key) =>
        Effect.map(typeOfKeyIn(store, key), (type) =>
          assert.strictEqual(type, "none", `${key} is left after ${index}`)
        ),
      { concurrency: "unbounded", discard: true }
    )
  )

const assertFree = (lock: AnyLock, index: number) =>
  Effect.gen(function* () {
    yield* assertIdle(index)
    yield* assertNothing(lock.name, index)
    const again = yield* Effect.result(Lock.withLock(Effect.void, lock, { waitTime: 0 }))
    assert.isTrue(Result.isSuccess(again), `the lock cannot be had after ${index}`)
  })

const fresh = (make: (name: string) => AnyLock) => Effect.sync(() => make(`sweep:${crypto.randomUUID()}`))

type Program = Effect.Effect<unknown, unknown, RedisLock.RedisLock>

const uncontended: Record<string, (lock: AnyLock) => Program> = {
  "of withLock": (lock) => Lock.withLock(Effect.yieldNow, lock),
  "of withLock with a fixed lease and a wait time": (lock) =>
    Lock.withLock(Effect.yieldNow, lock, { leaseTime: "1 minute", waitTime: "1 minute" }),
  "of withLockIfAvailable": (lock) => Lock.withLockIfAvailable(Effect.yieldNow, lock),
  "of scoped, an early release and the scope's end": (lock) =>
    Effect.scoped(Effect.flatMap(Lock.scoped(lock), (holding) => Effect.andThen(Effect.yieldNow, holding.release))),
  "of tryScoped": (lock) => Effect.scoped(Effect.andThen(Lock.tryScoped(lock), Effect.yieldNow)),
  "of re-entry": (lock) => Effect.yieldNow.pipe(Lock.withLock(lock), Lock.withLock(lock)),
  "of a section that fails": (lock) => Lock.withLock(Effect.fail("no"), lock),
  "under a timeout": (lock) => Effect.timeout(Lock.withLock(Effect.yieldNow, lock), "1 minute")
}

const suite = <E>(
  name: string,
  store: Layer.Layer<LockStore.LockStore, E>,
  swept: ReadonlyArray<string> = kinds.map(({ name }) => name)
) =>
  describe(`interruption on ${name}`, () => {
    const concurrent = isWaiting(name)
    for (const { make, name: title, reentrant, rival = make } of kinds) {
      if (!swept.includes(title)) continue
      it.layer(store, { excludeTestServices: true, concurrent })(`${title}, at every operation`, (it) => {
        const test = testsElsewhere(it)
        for (const [scenario, program] of Object.entries(uncontended)) {
          if (scenario === "of re-entry" && !reentrant) continue
          test(`Interruption ${scenario} leaves nothing behind: ${title}`, function* () {
            const lock = yield* fresh(make)
            const interruptions = yield* sweep({
              program: program(lock),
              check: (index) => assertFree(lock, index)
            })
            assert.isAbove(interruptions, 10)
          })
        }

        for (const options of [{}, { waitTime: "1 minute" }] as const) {
          test(`Interruption of waiting${"waitTime" in options ? " with a wait time" : ""}, while the holder lets go, leaves nothing behind: ${title}`, function* () {
            const lock = yield* fresh(make)
            yield* sweepHandOver({
              hold: holdElsewhere(Lock.withLock(rival(lock.name))),
              waiters: [Lock.withLock(Effect.yieldNow, lock, options)],
              check: (index) => assertFree(lock, index)
            })
          })
        }

        test("Interrupting a waiter behind others of its client leaves nothing behind, at every operation", function* () {
          const lock = yield* fresh(make)
          const interruptions = yield* sweep({
            program: Effect.all(
              [rival(lock.name), lock, lock].map((each) =>
                Lock.withLock(Effect.yieldNow, each, { waitTime: "1 minute" })
              ),
              { concurrency: "unbounded" }
            ),
            check: (index) => assertFree(lock, index)
          })
          assert.isAbove(interruptions, 100)
        })
      })
    }

    it.layer(store, { excludeTestServices: true, concurrent })("a read-write lock, at every operation", (it) => {
      const test = testsElsewhere(it)
      test("Interrupting a writer that reads leaves nothing behind, at every operation", function* () {
        const { readLock, writeLock } = ReadWriteLock.make(`sweep:${crypto.randomUUID()}`)
        yield* sweep({
          program: Effect.yieldNow.pipe(Lock.withLock(readLock), Lock.withLock(writeLock)),
          check: (index) => Effect.andThen(assertFree(writeLock, index), assertFree(readLock, index))
        })
      })

      test("Interrupting a writer that goes on as a reader leaves nothing behind, at every operation", function* () {
        const { readLock, writeLock } = ReadWriteLock.make(`sweep:${crypto.randomUUID()}`)
        yield* sweep({
          program: Effect.gen(function* () {
            const writing = yield* Lock.scoped(writeLock)
            yield* Lock.scoped(readLock)
            yield* writing.release
            yield* Effect.yieldNow
          }).pipe(Effect.scoped),
          check: (index) => assertFree(writeLock, index)
        })
      })

      test("Interrupting a writer that waits for readers of its own process and of another leaves nothing behind", function* () {
        const { readLock, writeLock } = ReadWriteLock.make(`sweep:${crypto.randomUUID()}`)
        const reader = yield* holdElsewhere(Lock.withLock(readLock))
        yield* sweep({
          program: Effect.all(
            [
              Lock.withLock(Effect.yieldNow, readLock),
              Effect.ignore(Lock.withLock(Effect.yieldNow, writeLock, { waitTime: 3 }))
            ],
            { concurrency: "unbounded" }
          ),
          check: (index) =>
            Effect.gen(function* () {
              yield* assertIdle(index)
              const type = yield* typeOfKey(keysOf(writeLock.name).at(-1)!)
              assert.strictEqual(type, "none", `readers are held off after ${index}`)
            })
        })
        yield* reader.letGo
        yield* Fiber.join(reader.fiber)
      })
    })
  })

suite("memory", LockStore.layerMemory)
// the same scripts; a real driver, whose commands are on their way for longer, under one kind for each way of waiting
suite("Redis", onRedis, ["a reentrant lock", "a fair lock", "a write lock", "a read lock"])

testLeavesNothing("Interrupted acquisitions leave no channel and no key but the token's on the server", {
  prefix: "sweep"
})
