/**
 * What every store must do, done by a quorum of three: programs see no difference.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { RedisServer } from "@effect-redis-lock/testing"
import { assert, describe, it } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber, Layer } from "effect"
import { Lock, LockReentered, LockStore, ReadWriteLock, RedisLock } from "effect-redis-lock"
import type { LockClient } from "../../packages/core/dist/internal/client/LockClient.js"
import { contract } from "../contract/suite.ts"
import { read, reentrant, write } from "../contract/suite/kinds.ts"

/** Three stores, which all clients of a suite share. */
class Stores extends Context.Service<Stores, ReadonlyArray<LockStore.LockStore["Service"]>>()("test/Stores") {}

const clients = (options: RedisLock.RedisLockOptions) =>
  Layer.unwrap(
    Effect.map(Stores, (stores) =>
      RedisLock.layerQuorum(
        stores.map((store) =>
          RedisLock.layerFromStore(options).pipe(Layer.provide(Layer.succeed(LockStore.LockStore, store)))
        ),
        // a machine however busy
        { memberTimeout: "5 seconds" }
      )
    )
  )

const three = <E>(store: Layer.Layer<LockStore.LockStore, E>) =>
  Layer.effect(
    Stores,
    Effect.forEach([1, 2, 3], () =>
      Effect.map(Layer.build(Layer.fresh(store)), (context) => Context.get(context, LockStore.LockStore))
    )
  )

const memory = { name: "a quorum of three in memory", store: three(LockStore.layerMemory), time: "virtual" } as const

const redis = {
  name: "a quorum of three Redis servers",
  store: three(
    LockStore.layerRedis.pipe(
      Layer.provide(
        Layer.unwrap(Effect.map(RedisServer.start(), ({ url }) => IoRedis.layer({ url, commandTimeout: "10 seconds" })))
      )
    )
  ),
  time: "real"
} as const

/** A quorum's store, for clients that are made as always. */
const storeOf = <E>(stores: Layer.Layer<Stores, E>) =>
  Layer.effect(
    LockStore.LockStore,
    Effect.map(RedisLock.RedisLock, (service) => (service as unknown as LockClient).store)
  ).pipe(Layer.provide(clients({})), Layer.provide(stores))

for (const backend of [memory, redis]) {
  for (const kind of [reentrant, write, read]) {
    contract({ ...backend, store: storeOf(backend.store), isQuorum: true }, kind)
  }
}

const readWrite = <E>(name: string, store: Layer.Layer<Stores, E>) =>
  describe(`a read-write lock on ${name}`, () => {
    it.layer(Layer.provideMerge(Layer.orDie(clients({})), store), { excludeTestServices: true })((it) => {
      const elsewhere = <A, E2, R>(self: Effect.Effect<A, E2, R>) =>
        Effect.provide(self, Layer.fresh(Layer.orDie(clients({}))))
      const make = Effect.sync(() => ReadWriteLock.make(`rw:${crypto.randomUUID()}`))
      const isFree = (lock: Lock.Lock<RedisLock.RedisLock, any>) =>
        Effect.map(Lock.withLockIfAvailable(Effect.void, lock), (got) => got._tag === "Some")

      it.effect("A read-write lock on a quorum lets readers of several clients in together, and no writer", () =>
        Effect.gen(function* () {
          const { readLock, writeLock } = yield* make
          yield* Effect.gen(function* () {
            assert.isTrue(yield* elsewhere(isFree(readLock)))
            assert.isFalse(yield* elsewhere(isFree(writeLock)))
          }).pipe(Lock.withLock(readLock))
          assert.isTrue(yield* elsewhere(isFree(writeLock)))
        })
      )

      it.effect("A read-write lock on a quorum lets a writer in alone, which may read", () =>
        Effect.gen(function* () {
          const { readLock, writeLock } = yield* make
          yield* Effect.gen(function* () {
            assert.isFalse(yield* elsewhere(isFree(readLock)))
            assert.isFalse(yield* elsewhere(isFree(writeLock)))
            assert.isTrue(yield* isFree(readLock))
            assert.strictEqual(yield* Lock.holdCount(writeLock), 1)
          }).pipe(Lock.withLock(writeLock))
          assert.isFalse(yield* Lock.isLocked(writeLock))
        })
      )

      it.effect("A read-write lock on a quorum hands over from readers to a waiting writer, and back", () =>
        Effect.gen(function* () {
          const { readLock, writeLock } = yield* make
          const letGo = yield* Deferred.make<void>()
          const reading = yield* Deferred.make<void>()
          const reader = yield* Effect.andThen(Deferred.succeed(reading, undefined), Deferred.await(letGo)).pipe(
            Lock.withLock(readLock),
            elsewhere,
            Effect.forkChild
          )
          yield* Deferred.await(reading)
          const writer = yield* Effect.succeed("written").pipe(Lock.withLock(writeLock), Effect.forkChild)
          // time to come in, which it must not
          yield* Effect.sleep(50)
          assert.isUndefined(writer.pollUnsafe())
          yield* Deferred.succeed(letGo, undefined)
          yield* Fiber.join(reader)
          assert.strictEqual(yield* Fiber.join(writer), "written")
          assert.strictEqual(yield* elsewhere(Lock.withLock(Effect.succeed("read"), readLock)), "read")
        })
      )

      it.effect("A read-write lock on a quorum counts re-entries, and refuses a reader that wants to write", () =>
        Effect.gen(function* () {
          const { readLock, writeLock } = yield* make
          yield* Effect.gen(function* () {
            assert.strictEqual(yield* Lock.holdCount(readLock).pipe(Lock.withLock(readLock)), 2)
            assert.strictEqual(yield* Lock.holdCount(readLock), 1)
            assert.instanceOf(yield* Effect.flip(Lock.withLock(Effect.void, writeLock)), LockReentered)
          }).pipe(Lock.withLock(readLock))
          assert.isTrue(yield* elsewhere(isFree(writeLock)))
        })
      )
    })
  })

readWrite(memory.name, memory.store)
readWrite(redis.name, redis.store)
