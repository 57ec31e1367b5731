/**
 * Locks that stay taken after their release: what the contract of all stores does not show.
 */
import { assert, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer, Option, Scope } from "effect"
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
import { operations } from "../kit/operations.ts"
import { clientId, listenTo, runOperation } from "../kit/storeOperations.ts"
import { as, clientOf, testStore } from "../kit/testStore.ts"
import { wrappedStore } from "../kit/wrappedStore.ts"
import { test } from "../kit/test.ts"

const minHold = "1 minute"
const fairKeys = ["redisson_lock_queue:{a}", "redisson_lock_timeout:{a}", "effect_redis_lock_clients:{a}"]

test("Quorums and semaphores refuse minHold with InvalidLockOptions", function* () {
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
})

for (const [kind, lock] of Object.entries({ "a plain lock": Lock.make("a"), "a fair lock": FairLock.make("a") })) {
  test(`A release of ${kind} whose reply is lost is sent again, and the lock stays taken no longer than minHold`, function* () {
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
  })
}

test("A section with a shorter minHold inside another one does not shorten that of the outer one", function* () {
  const service = yield* clientOf(yield* testStore())
  const inner = Lock.withLock(Effect.void, "a", { minHold: "1 second" })
  yield* as(service)(Lock.withLock(inner, "a", { minHold }))
  yield* TestClock.adjust("59 seconds")
  assert.isTrue(yield* as(service)(Lock.isLocked("a")))
  yield* TestClock.adjust("1 second")
  assert.isFalse(yield* as(service)(Lock.isLocked("a")))
})

test("A member of a MultiLock stays taken for the minHold of a re-entry, and the others are free at once", function* () {
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
})

it.effect("A renewal that arrives after the release does not extend the time for which a lock stays taken", () =>
  Effect.gen(function* () {
    const store = yield* LockStore.LockStore
    const service = yield* clientOf({ store })
    const holding = yield* Effect.scoped(as(service)(Lock.scoped("a", { minHold: "3 seconds" })))
    yield* store.run({
      operation: operations["lock/renew"],
      keys: ["a"],
      args: [60_000, holding.owner]
    })
    yield* TestClock.adjust("3 seconds")
    assert.isTrue(Option.isSome(yield* Effect.scoped(as(service)(Lock.tryScoped("a")))))
  }).pipe(Effect.scoped, Effect.provide(LockStore.layerMemory))
)

for (const [kind, lock] of Object.entries({ "a plain lock": Lock.make("a"), "a fair lock": FairLock.make("a") })) {
  test(`${kind} that its minHold has kept is handed over, without a request of its waiter`, function* () {
    const server = yield* testStore()
    const [one, other] = [as(yield* clientOf(server)), as(yield* clientOf(server, { fallbackInterval: "1 hour" }))]
    const scope = yield* Scope.make()
    yield* Scope.provide(one(Lock.scoped(lock, { minHold })), scope)
    const waiter = yield* Effect.forkChild(other(Lock.withLock(Effect.void, lock)))
    yield* TestClock.adjust("1 second")
    yield* Scope.close(scope, Exit.void)
    yield* TestClock.adjust("58 seconds")
    assert.isUndefined(waiter.pollUnsafe())
    yield* TestClock.adjust("1 second")
    assert.isDefined(waiter.pollUnsafe())
  })

  test(`${kind} that its minHold keeps is free a tenth of a second later if its process has ended`, function* () {
    const server = yield* testStore()
    const other = as(yield* clientOf(server))
    yield* Effect.scoped(
      Effect.flatMap(clientOf(server), (service) => as(service)(Lock.withLock(Effect.void, lock, { minHold })))
    )
    const waiter = yield* Effect.forkChild(other(Lock.withLock(Effect.void, lock)))
    yield* TestClock.adjust("60050 millis")
    assert.isUndefined(waiter.pollUnsafe())
    yield* TestClock.adjust("1 second")
    assert.isDefined(waiter.pollUnsafe())
  })
}

test("A waiter that does not ask any more costs a lock that its minHold keeps one turn, not each", function* () {
  const server = yield* testStore()
  const [one, other] = [as(yield* clientOf(server)), as(yield* clientOf(server))]
  const entered: Array<string> = []
  const take = (who: string) =>
    Effect.sync(() => void entered.push(who)).pipe(Lock.withLock("a", { minHold: "1 second" }))
  // the oldest place is that of a stopped process: it hears, as its connection is open, and does nothing
  const stopped = clientId("5")
  yield* listenTo(server.store, `redisson_lock__channel:{a}:${stopped}`)
  yield* runOperation(server.store, "lock/acquire", ["a", "redisson_lock_token:{a}"], ["x:1", 100, 60_000])
  yield* runOperation(
    server.store,
    "lock/acquire",
    ["a", "redisson_lock_token:{a}", "effect_redis_lock_places:{a}"],
    [`${stopped}:1`, 30_000, 60_000]
  )
  yield* Effect.forkScoped(Effect.forever(one(take("one"))))
  yield* Effect.forkScoped(Effect.forever(one(take("one"))))
  yield* Effect.forkScoped(Effect.forever(other(take("other"))))
  for (let i = 0; i < 300; i++) yield* TestClock.adjust(100)
  // two seconds for the one that does not begin; each of the others has every second turn
  assert.isAbove(entered.length, 20)
  const turns = entered.slice(3)
  assert.isFalse(
    turns.some((who, i) => who === turns[i + 1]),
    entered.join()
  )
})

test("A waiter at the head of a fair queue that asks only when it is told learns that the lock is kept, and when it is free", function* () {
  const server = yield* testStore()
  const [one, other] = [as(yield* clientOf(server)), clientId("6")]
  const head = `${other}:1`
  const { heard } = yield* listenTo(server.store, `redisson_lock__channel:{a}:${head}`)
  const section = Effect.suspend(() =>
    runOperation(
      server.store,
      "fair_lock/acquire",
      ["a", "redisson_lock_token:{a}", ...fairKeys, "redisson_lock__channel:{a}"],
      [head, 60_000, 60_000, 300_000, other, 3_600_000, "PUBLISH", 7]
    )
  ).pipe(Effect.andThen(Effect.void))
  yield* one(Lock.withLock(section, FairLock.make("a"), { minHold }))
  yield* TestClock.adjust("1 second")
  assert.deepStrictEqual(heard, ["0"])
  yield* TestClock.adjust("1 minute")
  assert.lengthOf(heard, 2)
  assert.match(heard[1]!, /^0 7 /)
})

test("A client hands over no more than ten thousand locks that their minHold keeps; the others free themselves", function* () {
  const { store } = yield* testStore()
  let handedOver = 0
  const answering = wrappedStore(store, ({ args, operation }) => {
    if (operation === "lock/release" && String(args[0]).endsWith(":kept")) handedOver++
    return Effect.succeed(operation === "lock/acquire" ? 1 : operation.startsWith("lock/") ? 1 : 0)
  })
  const run = as(yield* clientOf({ store: answering }))
  for (const round of [1, 2]) {
    yield* Effect.forEach(
      Array.from({ length: 10_001 }, (_, i) => `${i}`),
      (name) => run(Lock.withLock(Effect.void, name, { minHold })),
      { discard: true }
    )
    yield* TestClock.adjust(minHold)
    assert.strictEqual(handedOver, round * 10_000)
  }
})
