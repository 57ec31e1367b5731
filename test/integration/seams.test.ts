/**
 * Both seams have one primitive for asking and one for listening. What an application puts in their place is what runs, also where
 * the primitive of the driver or store below could be started without a fiber.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Stream } from "effect"
import { Lock, LockStore, RedisDriver, RedisLock } from "effect-redis-lock"
import { redisUrl } from "../redis.ts"

/** What passed through a wrapper. */
class Passed {
  readonly operations: Array<string> = []
  readonly signals: Array<string> = []

  ask<A, E>(operation: string, self: Effect.Effect<A, E>): Effect.Effect<A, E> {
    return Effect.tap(self, () => Effect.sync(() => this.operations.push(operation)))
  }

  listen<E>(self: Stream.Stream<RedisDriver.Signal, E>): Stream.Stream<RedisDriver.Signal, E> {
    return Stream.tap(self, ({ _tag }) => Effect.sync(() => this.signals.push(_tag)))
  }
}

const driver = (database: number) => IoRedis.layer({ url: `${redisUrl}/${database}` })

const wrappedDriver = (passed: Passed, database: number) =>
  Layer.effect(
    RedisDriver.RedisDriver,
    Effect.map(RedisDriver.RedisDriver, (below) => ({
      ...below,
      eval: (script: RedisDriver.RedisScript, ...rest: [ReadonlyArray<string>, ReadonlyArray<string | number>]) =>
        passed.ask(script.name, below.eval(script, ...rest)),
      subscribe: (channel: string) => passed.listen(below.subscribe(channel))
    }))
  ).pipe(Layer.provide(driver(database)))

const wrappedStore = (passed: Passed, database: number) =>
  Layer.effect(
    LockStore.LockStore,
    Effect.map(LockStore.LockStore, (below): LockStore.LockStore["Service"] => ({
      ...below,
      run: (operation, keys, args) => passed.ask(operation, below.run(operation, keys, args)),
      subscribe: (channel) => passed.listen(below.subscribe(channel))
    }))
  ).pipe(Layer.provide(LockStore.layerRedis), Layer.provide(driver(database)))

// only a message can end a wait
const options = { fallbackInterval: "1 hour" } as const

const seams = {
  "RedisDriver.eval and subscribe": (passed: Passed, database: number) =>
    RedisLock.layer(options).pipe(Layer.provide(wrappedDriver(passed, database))),
  "LockStore.run and subscribe": (passed: Passed, database: number) =>
    RedisLock.layerFromStore(options).pipe(Layer.provide(wrappedStore(passed, database)))
}

for (const [seam, clientOver] of Object.entries(seams)) {
  const clients = {
    "a lock on one server": (passed: Passed) => clientOver(passed, 0),
    // a database of its own for each member: they share no keys
    "a lock on a quorum": (passed: Passed) =>
      RedisLock.layerQuorum([1, 2, 3].map((database) => Layer.fresh(clientOver(passed, database))))
  }
  for (const [kind, client] of Object.entries(clients)) {
    it.live(`what wraps ${seam} is asked and listened to by ${kind}`, () =>
      Effect.gen(function* () {
        const holder = new Passed()
        const waiter = new Passed()
        const lock = Lock.make(`seams:${crypto.randomUUID()}`)
        const isHeld = yield* Deferred.make<void>()
        const release = yield* Deferred.make<void>()
        const holding = yield* Effect.forkChild(
          Effect.andThen(Deferred.succeed(isHeld, undefined), Deferred.await(release)).pipe(
            Lock.withLock(lock),
            Effect.provide(Layer.fresh(client(holder)))
          )
        )
        yield* Deferred.await(isHeld)
        const waiting = yield* Effect.forkChild(
          Effect.void.pipe(Lock.withLock(lock), Effect.provide(Layer.fresh(client(waiter))))
        )
        while (!waiter.signals.includes("Subscribed")) yield* Effect.sleep("5 millis")
        assert.notInclude(waiter.signals, "Message")
        yield* Deferred.succeed(release, undefined)
        yield* Fiber.join(holding)
        yield* Fiber.join(waiting)
        assert.includeMembers(holder.operations, ["lock/acquire", "lock/release"])
        assert.includeMembers(waiter.operations, ["lock/acquire", "lock/release"])
        assert.include(waiter.signals, "Message")
      })
    )
  }
}
