/**
 * What the holder of a lock learns when somebody else takes it away.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Stream } from "effect"
import { FairLock, Lock, LockLost, LockStore, NonReentrantLock, ReadWriteLock, RedisLock } from "effect-redis-lock"
import { IoRedis } from "@effect-redis-lock/ioredis"
import { clientOf } from "../kit/clients.ts"
import { soon, until } from "../kit/eventually.ts"
import { freshName } from "../kit/names.ts"
import { redisUrl } from "../kit/server/redisUrl.ts"

const onRedis = LockStore.layerRedis.pipe(Layer.provide(IoRedis.layer({ url: redisUrl })))

/** Clients of one store that renew so rarely that no renewal tells them anything, and the channels to which one has subscribed. */
const clientsOver = Effect.fnUntraced(function* <E>(store: Layer.Layer<LockStore.LockStore, E>) {
  const channels: Array<string> = []
  const inner = yield* Effect.provide(LockStore.LockStore, yield* Layer.build(store))
  const noting = LockStore.LockStore.of({
    ...inner,
    subscribe: (channel) =>
      Stream.tap(inner.subscribe(channel), ({ _tag }) =>
        Effect.sync(() => void (_tag === "Subscribed" && channels.push(channel)))
      )
  })
  const client = (keyPrefix: string) =>
    clientOf(
      RedisLock.layerFromStore({ keyPrefix, watchdogLeaseTime: "1 hour" }).pipe(
        Layer.provide(Layer.succeed(LockStore.LockStore, noting))
      )
    )
  return { client, channels }
})

for (const [title, store] of [
  ["memory", LockStore.layerMemory],
  ["Redis", onRedis]
] as const) {
  describe(`locks taken by force on ${title}`, () => {
    it.live("A holder learns at once that a lock was taken from it, of each kind, and keeps its other locks", () =>
      Effect.gen(function* () {
        const { channels, client } = yield* clientsOver(store)
        for (const keyPrefix of ["", "app:"]) {
          const holder = yield* client(keyPrefix)
          const locks = [
            Lock.make(freshName()),
            FairLock.make(freshName()),
            NonReentrantLock.make(freshName()),
            ReadWriteLock.make(freshName()).readLock,
            ReadWriteLock.make(freshName()).writeLock
          ]
          const hold = (lock: (typeof locks)[number]) =>
            Effect.forkScoped(Effect.flip(holder.run(Lock.withLock(Effect.never, lock))))
          const sections = yield* Effect.forEach(locks, hold)
          const other = yield* hold(Lock.make(freshName()))
          yield* until("the holder listens", () =>
            channels.some((channel) => channel.startsWith(`effect_redis_lock_client:{${keyPrefix}`))
          )
          channels.length = 0
          const admin = yield* client(keyPrefix)
          for (const [i, lock] of locks.entries()) {
            assert.isTrue(yield* admin.run(Lock.forceRelease(lock)))
            const lost = yield* soon("the loss", Fiber.join(sections[i]!))
            assert.instanceOf(lost, LockLost)
            assert.strictEqual((lost as LockLost).reason, "NotOwner")
          }
          assert.isUndefined(other.pollUnsafe())
        }
      }).pipe(Effect.scoped)
    )
  })
}
