/**
 * The clients that quorums of a service's locks have in common.
 */
import { assert, it } from "@effect/vitest"
import { Effect, Layer, Logger, References } from "effect"
import { TestClock } from "effect/testing"
import { Lock, RedisLock, RedLock } from "effect-redis-lock"
import type { LockClient } from "../../packages/core/dist/internal/client/LockClient.js"
import { as, clientLayer, clientOf, serviceOf, testStores } from "../kit/testStore.ts"
import { background } from "../kit/background.ts"
import { unreachable } from "../kit/wrappedStore.ts"
import { expectWarning } from "../run/logs.ts"

it.effect("The members of a quorum share one client, however many names their locks have had", () =>
  Effect.gen(function* () {
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
      assert.deepStrictEqual(sizes, [1, 0, 0])
    }
  })
)

it.effect("A quorum of locks that belong to no service asks the service with which it is used, each time", () =>
  Effect.gen(function* () {
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
)

it.effect("A quorum reckons with the command timeout of a member that joins late", () =>
  Effect.gen(function* () {
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
  }).pipe(Effect.scoped)
)

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
