/**
 * Locks that stay taken after their release: what the contract of all stores does not show.
 */
import { assert, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Option } from "effect"
import {
  FairLock,
  InvalidLockOptions,
  Lock,
  LockStore,
  MultiLock,
  PermitSemaphore,
  RedisLock,
  RedLock
} from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { as, clientOf, testStore } from "../kit/testStore.ts"
import { wrappedStore } from "../kit/wrappedStore.ts"

const minHold = "1 minute"

it.effect("Quorums and semaphores refuse minHold with InvalidLockOptions", () =>
  Effect.gen(function* () {
    const member = yield* Effect.map(Layer.build(Layer.fresh(RedisLock.layerMemory)), (context) =>
      Layer.succeedContext(context)
    )
    const refused = (self: Effect.Effect<unknown, unknown, RedisLock.RedisLock>) =>
      Effect.map(Effect.flip(self), (error) => {
        assert.instanceOf(error, InvalidLockOptions)
        assert.strictEqual(error.option, "minHold")
      })
    yield* refused(Lock.withLock(Effect.void, "a", { minHold })).pipe(
      Effect.provide(RedisLock.layerQuorum([member, member, member]))
    )
    const red = RedLock.make([Lock.make("a"), Lock.make("b"), Lock.make("c")])
    yield* refused(Lock.withLock(Effect.void, red, { minHold })).pipe(Effect.provide(member))
    const permits = PermitSemaphore.make("s", { permits: 1 })
    // a variable, as the literal does not compile
    const options = { minHold, leaseTime: "2 minutes" } as const
    yield* refused(PermitSemaphore.withPermits(Effect.void, permits, 1, options)).pipe(Effect.provide(member))
  }).pipe(Effect.scoped)
)

for (const [kind, lock] of Object.entries({ "a plain lock": Lock.make("a"), "a fair lock": FairLock.make("a") })) {
  it.effect(
    `A release of ${kind} whose reply is lost is sent again, and the lock stays taken no longer than minHold`,
    () =>
      Effect.gen(function* () {
        const server = yield* testStore()
        let sent = 0
        const store = wrappedStore(server.store, ({ fail, operation, run }) =>
          operation === "lock/keep" && sent++ === 0
            ? Effect.andThen(run(), Effect.andThen(Effect.sleep("100 millis"), fail("TimedOut")))
            : run()
        )
        const service = yield* clientOf({ store })
        const section = yield* Effect.forkChild(as(service)(Lock.withLock(Effect.void, lock, { minHold })))
        yield* TestClock.adjust("1 second")
        yield* Fiber.join(section)
        assert.isAtLeast(sent, 2)
        assert.isTrue(yield* as(service)(Lock.isLocked(lock)))
        yield* TestClock.adjust("58900 millis")
        assert.isTrue(yield* as(service)(Lock.isLocked(lock)))
        yield* TestClock.adjust("150 millis")
        assert.isFalse(yield* as(service)(Lock.isLocked(lock)))
      }).pipe(Effect.scoped)
  )
}

it.effect("A section with a shorter minHold inside another one does not shorten that of the outer one", () =>
  Effect.gen(function* () {
    const service = yield* clientOf(yield* testStore())
    const inner = Lock.withLock(Effect.void, "a", { minHold: "1 second" })
    yield* as(service)(Lock.withLock(inner, "a", { minHold }))
    yield* TestClock.adjust("59 seconds")
    assert.isTrue(yield* as(service)(Lock.isLocked("a")))
    yield* TestClock.adjust("1 second")
    assert.isFalse(yield* as(service)(Lock.isLocked("a")))
  }).pipe(Effect.scoped)
)

it.effect("A member of a MultiLock stays taken for the minHold of a re-entry, and the others are free at once", () =>
  Effect.gen(function* () {
    const server = yield* testStore()
    const [one, other] = [as(yield* clientOf(server)), as(yield* clientOf(server))]
    const inner = Lock.withLock(Effect.void, "a", { minHold })
    yield* one(Lock.withLock(inner, MultiLock.make(["a", "b", "c"])))
    const isFree = (name: string) => Effect.map(Effect.scoped(other(Lock.tryScoped(name))), Option.isSome)
    assert.deepStrictEqual(yield* Effect.forEach(["a", "b", "c"], isFree), [false, true, true])
    yield* TestClock.adjust("59 seconds")
    assert.isFalse(yield* isFree("a"))
    yield* TestClock.adjust("1 second")
    assert.isTrue(yield* isFree("a"))
  }).pipe(Effect.scoped)
)

it.effect("A renewal that arrives after the release does not extend the time for which a lock stays taken", () =>
  Effect.gen(function* () {
    const store = yield* LockStore.LockStore
    const service = yield* clientOf({ store })
    const holding = yield* Effect.scoped(as(service)(Lock.scoped("a", { minHold: "3 seconds" })))
    yield* store.run({
      operation: LockStore.operations["lock/renew"],
      keys: ["a"],
      args: [60_000, holding.owner]
    })
    yield* TestClock.adjust("3 seconds")
    assert.isTrue(Option.isSome(yield* Effect.scoped(as(service)(Lock.tryScoped("a")))))
  }).pipe(Effect.scoped, Effect.provide(LockStore.layerMemory))
)
