/**
 * The clients that quorums of a service's locks have in common.
 */
import { assert, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer, Logger, Option, References, Result, Scope } from "effect"
import { TestClock } from "effect/testing"
import { InvalidLockOptions, Lock, RedisLock, RedLock, type StoreReason } from "effect-redis-lock"
import type { LockClient } from "../../packages/core/dist/internal/client/LockClient.js"
import { as, clientLayer, clientOf, serviceOf, testStores } from "../kit/testStore.ts"
import { background } from "../kit/background.ts"
import { unreachable } from "../kit/wrappedStore.ts"
import { expectWarning } from "../run/logs.ts"
import { test } from "../kit/test.ts"

test("The members of a quorum share one client, however many names their locks have had", function* () {
  const stores = yield* testStores(3)
  for (const options of [{}, { keyPrefix: "app:" }]) {
    const services = yield* Effect.forEach(stores, (store) => clientOf(store, options))
    for (let i = 0; i < 100; i++) {
      const red = RedLock.make(services.map((service) => Lock.provide(Lock.make(`order:${i}`), service)))
      yield* Effect.gen(function* () {
        assert.isTrue(yield* Lock.isLocked(Lock.provide(Lock.make(`order:${i}`), services[1]!)))
        assert.isFalse(yield* stores[2]!.isFree(`${options.keyPrefix ?? ""}order:${i}`))
      }).pipe(Lock.withLock(red))
    }
    const sizes = services.map((service) => (service as unknown as LockClient).quorumClients.size)
    assert.deepStrictEqual(sizes, [1, 1, 1])
  }
})

test("A section of a RedLock enters another one of the same locks, in whatever order it names them", function* () {
  const services = yield* Effect.forEach(yield* testStores(3), (store) => clientOf(store))
  for (const names of [
    ["a", "a", "a"],
    ["c", "a", "b"]
  ]) {
    const inOrder = (order: ReadonlyArray<number>) =>
      RedLock.make(order.map((i) => Lock.provide(Lock.make(names[i]!), services[i]!)))
    const inner = Lock.withLockIfAvailable(Effect.succeed("in"), inOrder([1, 2, 0]))
    assert.deepStrictEqual(yield* Lock.withLock(inner, inOrder([0, 1, 2])), Option.some("in"))
  }
})

for (const [position, at] of [
  ["first", 0],
  ["last", 2]
] as const) {
  test(`The client of a RedLock ends, and is forgotten by its other members, once its ${position} one has closed`, function* () {
    const [passing, ...others] = yield* testStores(3)
    const lasting = yield* Effect.forEach(others, (store) => clientOf(store))
    const clients = lasting as unknown as ReadonlyArray<LockClient>
    for (let i = 0; i < 10; i++) {
      const fiber = yield* Effect.scoped(
        Effect.gen(function* () {
          const services = lasting.toSpliced(at, 0, yield* clientOf(passing!))
          yield* Lock.withLock(Effect.void, RedLock.make(services.map((at) => Lock.provide(Lock.make("a"), at))))
          const [quorum] = clients[0]!.quorumClients.values()
          return quorum!.fork(Effect.never)
        })
      )
      assert.isDefined(fiber.pollUnsafe())
    }
    for (const { isClosing, joinedBy, quorumClients } of clients) {
      assert.deepStrictEqual([isClosing, joinedBy.size, quorumClients.size], [false, 0, 0])
    }
  })
}

test("The client of the first member of a RedLock closes at once though that of another one is closing", function* () {
  expectWarning(/^A lock client was closed, and \d+ that it held could not be given back in time/)
  const scopes = yield* Effect.forEach([0, 1, 2], () => Scope.make())
  const stores = yield* testStores(3)
  const services = yield* Effect.forEach(stores, (store, i) =>
    Scope.provide(clientOf(store, { releaseTimeout: "100 millis" }), scopes[i]!)
  )
  const red = RedLock.make(services.map((service) => Lock.provide(Lock.make("a"), service)))
  const held = yield* Effect.scoped(Effect.andThen(Lock.scoped(red), Effect.never)).pipe(Effect.exit, background)
  yield* TestClock.adjust(1)
  for (const store of stores) store.isDown = true
  const closing = yield* Effect.forEach([2, 0, 1], (i) => background(Scope.close(scopes[i]!, Exit.void)))
  assert.deepStrictEqual(
    services.map((service) => (service as unknown as LockClient).isClosing),
    [true, true, true]
  )
  yield* TestClock.withLive(Fiber.joinAll(closing))
  yield* TestClock.adjust("10 minutes")
  yield* Fiber.interrupt(held)
})

for (const closed of [[0], [2], [0, 2], [0, 1, 2]]) {
  const isMinority = closed.length === 1
  test(`A RedLock of which members ${closed.join(", ")} are closed ${isMinority ? "is held on the others" : "fails with an error"}`, function* () {
    const scopes = yield* Effect.forEach([0, 1, 2], () => Scope.make())
    const stores = yield* testStores(3)
    const services = yield* Effect.forEach(stores, (store, i) => Scope.provide(clientOf(store), scopes[i]!))
    for (const i of closed) yield* Scope.close(scopes[i]!, Exit.void)
    const red = RedLock.make(services.map((service) => Lock.provide(Lock.make("a"), service)))
    const ran = yield* background(Effect.result(Lock.withLock(Effect.succeed("ran"), red, { waitTime: 0 })))
    yield* TestClock.adjust("10 seconds")
    const result = yield* Fiber.join(ran)
    if (isMinority) assert.deepStrictEqual(result, Result.succeed("ran"))
    else assert.include(["LockStoreError", "QuorumNotReached"], Result.isFailure(result) ? result.failure._tag : "ran")
    for (const scope of scopes) yield* Scope.close(scope, Exit.void)
  })
}

for (const closed of [0, 2]) {
  test(`A RedLock that was used before its member ${closed} was closed is held on the others`, function* () {
    const scopes = yield* Effect.forEach([0, 1, 2], () => Scope.make())
    const stores = yield* testStores(3)
    const services = yield* Effect.forEach(stores, (store, i) => Scope.provide(clientOf(store), scopes[i]!))
    const make = () => RedLock.make(services.map((service) => Lock.provide(Lock.make("a"), service)))
    const red = make()
    yield* Lock.withLock(Effect.void, red)
    yield* Scope.close(scopes[closed]!, Exit.void)
    for (const lock of [red, make()]) {
      assert.strictEqual(yield* Lock.withLock(Effect.succeed("ran"), lock, { waitTime: 0 }), "ran")
    }
    for (const scope of scopes) yield* Scope.close(scope, Exit.void)
  })
}

test("A quorum of locks that belong to no service asks the service with which it is used, each time", function* () {
  const stores = yield* testStores(2)
  const [one, other] = [yield* clientOf(stores[0]!), yield* clientOf(stores[1]!)]
  const names = ["a", "b", "c"]
  const red = RedLock.make(names.map((name) => Lock.make(name)))
  const taken = Effect.forEach(stores, (store) =>
    Effect.map(
      Effect.forEach(names, (name) => store.isFree(name)),
      (free) => free.every((isFree) => !isFree)
    )
  )
  assert.deepStrictEqual(yield* as(one)(Lock.withLock(taken, red)), [true, false])
  assert.deepStrictEqual(yield* as(other)(Lock.withLock(taken, red)), [false, true])
})

test("A quorum of an even number of servers is refused while half of them cannot be reached", function* () {
  for (const half of [1, 2]) {
    const present = (yield* testStores(half)).map(({ store }) => clientLayer(store))
    const away = present.map(() => Layer.effect(RedisLock.RedisLock, Effect.fail(unreachable("connect", "a server"))))
    const error = yield* Effect.flip(Effect.scoped(Layer.build(RedisLock.layerQuorum([...present, ...away]))))
    assert.strictEqual(error._tag, "LockStoreError")
  }
})

test("A quorum reckons with the command timeout of a member that joins late", function* () {
  expectWarning(/^One server of the quorum cannot be reached yet/)
  const [first, second, third] = yield* testStores(3)
  let isUp = false
  const late = Layer.unwrap(
    Effect.suspend(() =>
      isUp
        ? Effect.succeed(clientLayer({ ...third!.store, commandLifeMillis: 10_000, commandTimeoutMillis: 60_000 }))
        : Effect.fail(unreachable("connect", "server 3"))
    )
  )
  const layers = [clientLayer(first!.store), clientLayer(second!.store), late]
  const service = yield* serviceOf(RedisLock.layerQuorum(layers))
  const { store } = service as unknown as LockClient
  assert.isBelow(store.commandTimeoutMillis, 60_000)
  isUp = true
  yield* TestClock.adjust("1 minute")
  assert.strictEqual(store.commandTimeoutMillis, 60_000)
  assert.strictEqual(store.commandLifeMillis, 10_000)
})

it.effect("A quorum that is first used inside another lock does not name that one in its warnings", () => {
  const warned: Array<unknown> = []
  const logger = Logger.make(({ fiber, message }) =>
    warned.push({ text: [message].flat()[0], ...fiber.getRef(References.CurrentLogAnnotations) })
  )
  return Effect.gen(function* () {
    const stores = yield* testStores(3)
    const red = Effect.map(
      Effect.forEach(stores, (store) => clientOf(store)),
      (services) => RedLock.make(services.map((service) => Lock.provide(Lock.make("a"), service)))
    )
    const [mine, others] = [yield* red, yield* red]
    yield* as(yield* clientOf(stores[0]!))(Lock.withLock(Lock.withLock(Effect.void, mine), "around it"))
    yield* background(Lock.withLock(Effect.never, others))
    stores[2]!.isDown = true
    yield* background(Lock.withLock(Effect.void, mine))
    yield* TestClock.adjust("1 second")
    assert.deepStrictEqual(warned, [{ text: "No wake-up signals from one server of the quorum.", member: "member 3" }])
  }).pipe(Effect.scoped, Effect.provide(Logger.layer([logger])))
})

/** What is logged, with the failure. */
const logInto = (lines: Array<string>) =>
  Logger.layer([Logger.make(({ cause, message }) => void lines.push(`${[message].flat().join(" ")} ${String(cause)}`))])

test("What keeps a member from joining late is logged whenever it is something new, and it is built again", function* () {
  const [first, second, third] = yield* testStores(3)
  const lines: Array<string> = []
  const reasons: ReadonlyArray<StoreReason> = [
    "NotConnected",
    "NotConnected",
    "NotAuthenticated",
    "NotAuthenticated",
    "NotConnected"
  ]
  let built = 0
  const late = Layer.unwrap(
    Effect.suspend(() => {
      const reason = reasons[built++]
      return reason === undefined
        ? Effect.succeed(clientLayer(third!.store))
        : Effect.fail(unreachable("connect", "server 3", reason))
    })
  )
  const layers = [clientLayer(first!.store), clientLayer(second!.store), late]
  yield* Effect.gen(function* () {
    const service = yield* serviceOf(RedisLock.layerQuorum(layers))
    yield* TestClock.adjust("1 minute")
    assert.strictEqual(built, reasons.length + 1)
    yield* as(service)(Lock.withLock(Effect.void, "a"))
    assert.isAbove(third!.operations.length, 0)
  }).pipe(Effect.provide(logInto(lines)))
  assert.lengthOf(lines, 2)
  assert.match(lines[0]!, /^One server of the quorum cannot be reached yet\..*no connection/s)
  assert.match(lines[1]!, /^One server of the quorum cannot be reached yet\..*NOAUTH/s)
})

test("A member that comes late with an invalid option, or another key prefix, does not join, and that is logged", function* () {
  for (const [invalid, says] of [
    [new InvalidLockOptions({ option: "releaseTimeout", problem: "it is negative" }), /releaseTimeout/],
    [undefined, /keyPrefix.*must be the same/]
  ] as const) {
    const [first, second, third] = yield* testStores(3)
    const lines: Array<string> = []
    let built = 0
    const late = Layer.unwrap(
      Effect.gen(function* () {
        if (++built === 1) return yield* unreachable("connect", "server 3")
        return invalid === undefined ? clientLayer(third!.store, { keyPrefix: "other:" }) : yield* invalid
      })
    )
    const layers = [clientLayer(first!.store), clientLayer(second!.store), late]
    yield* Effect.gen(function* () {
      const service = yield* serviceOf(RedisLock.layerQuorum(layers))
      yield* TestClock.adjust("1 minute")
      yield* as(service)(Lock.withLock(Effect.void, "a"))
    }).pipe(Effect.provide(logInto(lines)))
    assert.strictEqual(built, 2)
    assert.deepStrictEqual(third!.operations, [])
    assert.lengthOf(lines, 2)
    assert.match(lines[1]!, /^One server of the quorum cannot join\./)
    assert.match(lines[1]!, says)
  }
})
