/**
 * What the holder of a lock learns when somebody else takes it away.
 */
import { assert, describe, it } from "@effect/vitest"
import { type Cause, Effect, Fiber, Latch, Layer, Queue, Stream } from "effect"
import {
  FairLock,
  Lock,
  LockLost,
  LockStore,
  LockStoreError,
  NonReentrantLock,
  ReadWriteLock,
  type RedisDriver,
  RedisLock
} from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { createHash } from "node:crypto"
import { clientOf } from "../kit/clients.ts"
import { soon, until } from "../kit/eventually.ts"
import { freshName } from "../kit/names.ts"
import { runOperation } from "../kit/storeOperations.ts"
import { stores } from "../kit/stores.ts"
import { type Handler, wrappedStore } from "../kit/wrappedStore.ts"

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

for (const [title, store] of Object.entries(stores)) {
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

const channelOf = (channel: string) => channel.startsWith("effect_redis_lock_client:")

/** A client of its own memory, of which the test decides what it hears on its channel. */
const hearing = Effect.fnUntraced(function* (handle: Handler = ({ run }) => run()) {
  const inner = yield* Effect.provide(LockStore.LockStore, yield* Layer.build(LockStore.layerMemory))
  const subscriptions: Array<Queue.Queue<RedisDriver.Signal, Cause.Done>> = []
  const store = LockStore.LockStore.of({
    ...wrappedStore(inner, handle),
    subscribe: (channel) =>
      !channelOf(channel)
        ? inner.subscribe(channel)
        : Stream.unwrap(
            Effect.map(Queue.unbounded<RedisDriver.Signal, Cause.Done>(), (queue) => {
              Queue.offerUnsafe(queue, { _tag: "Subscribed" })
              subscriptions.push(queue)
              return Stream.fromQueue(queue)
            })
          )
  })
  const over = (behind: LockStore.LockStore["Service"]) =>
    clientOf(
      RedisLock.layerFromStore({ watchdogLeaseTime: "1 hour" }).pipe(
        Layer.provide(Layer.succeed(LockStore.LockStore, behind))
      )
    )
  const holder = yield* over(store)
  const name = freshName()
  const section = yield* Effect.forkScoped(Effect.flip(holder.run(Lock.withLock(Effect.never, name))))
  yield* until("the holder listens", () => subscriptions.length === 1)
  return { admin: yield* over(inner), holder, name, section, subscriptions }
})

/** An owner of a client of its own. */
const strangerOf = (name: string) =>
  `${createHash("md5")
    .update(name)
    .digest("hex")
    .replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-")}:1`

describe("the messages of a lock that is taken by force", () => {
  it.live("A message that was lost with its connection is made up for when the subscription is back", () =>
    Effect.gen(function* () {
      const { admin, name, section, subscriptions } = yield* hearing()
      assert.isTrue(yield* admin.run(Lock.forceRelease(name)))
      yield* Queue.offer(subscriptions[0]!, { _tag: "Subscribed" })
      assert.instanceOf(yield* soon("the loss", Fiber.join(section)), LockLost)
    }).pipe(Effect.scoped)
  )

  it.live("A holder whose stream of messages ends listens again", () =>
    Effect.gen(function* () {
      const { admin, name, section, subscriptions } = yield* hearing()
      yield* Queue.end(subscriptions[0]!)
      assert.isTrue(yield* admin.run(Lock.forceRelease(name)))
      assert.instanceOf(yield* soon("the loss", Fiber.join(section)), LockLost)
    }).pipe(Effect.scoped)
  )

  it.live("Many messages cost no more than a look that is under way and another one", () =>
    Effect.gen(function* () {
      const answer = yield* Latch.make()
      let looks = 0
      const { admin, name, section, subscriptions } = yield* hearing((request) => {
        if (request.operation !== "lock/renew") return request.run()
        looks++
        return Effect.andThen(answer.await, Effect.suspend(request.run))
      })
      const message = { _tag: "Message", message: "taken" } as const
      yield* Queue.offer(subscriptions[0]!, message)
      yield* until("the first look", () => looks > 0)
      yield* Queue.offerAll(
        subscriptions[0]!,
        Array.from({ length: 1000 }, () => message)
      )
      yield* until(
        "all messages are heard",
        Effect.map(Queue.size(subscriptions[0]!), (size) => size === 0)
      )
      assert.isTrue(yield* admin.run(Lock.forceRelease(name)))
      yield* answer.open
      assert.instanceOf(yield* soon("the loss", Fiber.join(section)), LockLost)
      assert.isAtMost(looks, 2)
    }).pipe(Effect.scoped)
  )

  it.live("A lock that this client was granted while it looked whom to tell is lost like any other", () =>
    Effect.gen(function* () {
      const looked = yield* Latch.make()
      const mayAnswer = yield* Latch.make()
      const { holder } = yield* hearing((request) => {
        if (!request.operation.endsWith("/inspect")) return request.run()
        return Effect.tap(Effect.suspend(request.run), () => Effect.andThen(looked.open, mayAnswer.await))
      })
      const name = freshName()
      const forced = yield* Effect.forkScoped(holder.run(Lock.forceRelease(name)))
      yield* soon("the look", looked.await)
      const entered = yield* Latch.make()
      const section = yield* Effect.forkScoped(
        Effect.flip(holder.run(Lock.withLock(Effect.andThen(entered.open, Effect.never), name)))
      )
      yield* soon("the grant", entered.await)
      yield* mayAnswer.open
      assert.isTrue(yield* Fiber.join(forced))
      assert.instanceOf(yield* soon("the loss", Fiber.join(section)), LockLost)
    }).pipe(Effect.scoped)
  )

  it.effect("A client whose user may not listen, or not read labels, is refused once and does not try again", () =>
    Effect.gen(function* () {
      const refused = { listening: 0, labels: 0 }
      const denied = (operation: string) =>
        new LockStoreError({ operation, lock: "", reason: "NoPermission", cause: new Error("NOPERM") })
      const inner = yield* Effect.provide(LockStore.LockStore, yield* Layer.build(LockStore.layerMemory))
      const store = LockStore.LockStore.of({
        ...wrappedStore(inner, (request) => {
          if (request.operation !== "client/label") return request.run()
          refused.labels++
          return Effect.fail(denied(request.operation))
        }),
        subscribe: (channel) =>
          channelOf(channel)
            ? Stream.suspend(() => {
                refused.listening++
                return Stream.fail(denied("subscribe"))
              })
            : inner.subscribe(channel)
      })
      const { run } = yield* clientOf(
        RedisLock.layerFromStore().pipe(Layer.provide(Layer.succeed(LockStore.LockStore, store)))
      )
      for (const _ of [1, 2, 3]) {
        for (const name of [freshName(), freshName()]) {
          yield* runOperation(inner, "lock/acquire", [name, `${name}:token`], [strangerOf(name), 600_000, 1000])
          yield* run(Lock.inspect(name))
        }
        const section = yield* Effect.forkChild(run(Lock.withLock(Effect.sleep("1 minute"), freshName())))
        yield* TestClock.adjust("2 minutes")
        yield* Fiber.join(section)
      }
      assert.deepStrictEqual(refused, { listening: 1, labels: 1 })
    }).pipe(Effect.scoped)
  )
})
