/**
 * Code of the application that throws where the library resumes or interrupts its fibers.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Layer, Logger, Option } from "effect"
import { CountDownLatch, type Holding, Lock, RedisLock } from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { redisUrl } from "../kit/server/redisUrl.ts"
import { as, clientOf, storeWith, testStore } from "../kit/testStore.ts"
import { testLive, testQuietly } from "../kit/test.ts"
import { background } from "../kit/background.ts"

const mistake = new Error("a mistake of the application")

/** Runs an effect in a fiber whose observer throws. */
const observed = Effect.fnUntraced(function* <A, E, R>(self: Effect.Effect<A, E, R>) {
  const fiber = yield* Effect.forkDetach(self, { startImmediately: true })
  fiber.addObserver(() => {
    throw mistake
  })
  return fiber
})

/** Notes what is logged, as text. */
const noting = (messages: Array<string>) =>
  Logger.layer([Logger.make(({ cause, message }) => void messages.push(`${String(message)} ${String(cause)}`))])

const keep = (name: string, options?: Lock.AcquireOptions) =>
  Effect.gen(function* () {
    const held = yield* Deferred.make<Holding>()
    yield* Effect.forkDetach(
      Effect.scoped(
        Effect.andThen(
          Effect.flatMap(Lock.scoped(name, options), (h) => Deferred.succeed(held, h)),
          Effect.never
        )
      ),
      { startImmediately: true }
    )
    return yield* Deferred.await(held)
  })

it.effect(
  "An observer that throws when its section loses the lock ends no renewal, loss or wait of other locks, and is logged",
  () => {
    const messages: Array<string> = []
    return Effect.gen(function* () {
      const [, service] = yield* storeWith({ watchdogLeaseTime: 3000 })
      yield* Effect.gen(function* () {
        const renewed = yield* keep("renewed")
        const lost = yield* keep("lost", { leaseTime: 1000 })
        const section = yield* observed(Lock.withLock(Effect.never, "section", { leaseTime: 1000 }))
        const waiting = yield* background(Effect.result(Lock.withLock(Effect.void, "renewed", { waitTime: 5000 })))
        yield* TestClock.adjust(1000)
        const exit = section.pollUnsafe()
        assert.strictEqual(exit && Option.getOrThrow(Exit.findErrorOption(exit))._tag, "LockLost")
        assert.isFalse(yield* lost.isHeld)
        yield* TestClock.adjust(9000)
        assert.isTrue(yield* renewed.isHeld)
        const outcome = waiting.pollUnsafe()
        assert.isDefined(outcome, "the wait has ended")
        assert.include(messages.join("\n"), mistake.message)
      }).pipe(as(service))
    }).pipe(Effect.provide(noting(messages)))
  }
)

testQuietly("An observer that throws when a renewal finds its lock lost does not affect other locks", function* () {
  const [server, service] = yield* storeWith({ watchdogLeaseTime: 3000 })
  yield* Effect.gen(function* () {
    const names = ["a", "b", "c"]
    const holdings: Array<Holding> = []
    for (const name of names) {
      holdings.push(yield* keep(name))
      yield* observed(Effect.flatMap(keep(`${name}:lost`), ({ awaitLost }) => awaitLost))
    }
    for (const name of names) yield* server.delete(`${name}:lost`)
    for (let i = 0; i < 10; i++) yield* TestClock.adjust(1000)
    for (const holding of holdings) assert.isTrue(yield* holding.isHeld, holding.name)
  }).pipe(as(service))
})

testQuietly("An observer that throws when its latch opens does not keep others from learning of it", function* () {
  const service = yield* clientOf(yield* testStore())
  yield* Effect.gen(function* () {
    yield* CountDownLatch.trySetCount("latch", 1)
    const waiting: Array<Fiber.Fiber<void, unknown>> = []
    for (let i = 0; i < 5; i++) waiting.push(yield* observed(CountDownLatch.await("latch")))
    yield* TestClock.adjust(1)
    yield* CountDownLatch.countDown("latch")
    yield* TestClock.adjust(10_000)
    for (const fiber of waiting) assert.isDefined(fiber.pollUnsafe())
  }).pipe(as(service))
})

testLive(
  "a callback of Effect.runCallback that throws at the end of a section keeps no lock and no renewal",
  function* () {
    const messages: Array<string> = []
    const context = yield* Layer.build(Layer.provideMerge(RedisLock.layerMemory, noting(messages)))
    const renewed = yield* Effect.provide(keep("renewed", { leaseTime: 400 }), context)
    const ended = yield* Deferred.make<void>()
    Effect.runCallbackWith(context)(Lock.withLock(Effect.never, "section", { leaseTime: 100 }), {
      onExit: () => {
        Deferred.doneUnsafe(ended, Effect.void)
        throw mistake
      }
    })
    yield* Deferred.await(ended)
    const lost = yield* Effect.flip(renewed.awaitLost)
    assert.strictEqual(lost.reason, "Expired")
    assert.include(messages.join("\n"), mistake.message)
    assert.isFalse(yield* Effect.provide(Lock.isLocked("section"), context))
  }
)

testLive("a callback that throws when a reply ends its fiber keeps no other reply back", function* () {
  const messages: Array<string> = []
  const context = yield* Layer.build(
    RedisLock.layer().pipe(
      Layer.provide(IoRedis.layer({ url: redisUrl, commandTimeout: 60_000 })),
      Layer.provideMerge(noting(messages))
    )
  )
  const name = `throws:${crypto.randomUUID()}`
  const others: Array<Fiber.Fiber<boolean, unknown>> = []
  for (let i = 0; i < 5; i++) {
    // one burst, whose replies come together
    Effect.runCallbackWith(context)(Lock.isLocked(`${name}:${i}`), {
      onExit: () => {
        throw mistake
      }
    })
    others.push(yield* background(Effect.provide(Lock.isLocked(name), context)))
  }
  for (const fiber of others) assert.isFalse(yield* Fiber.join(fiber))
  assert.strictEqual(messages.filter((message) => message.includes(mistake.message)).length, 5)
})
