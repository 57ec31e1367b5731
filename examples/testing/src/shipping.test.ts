/**
 * What a service with locks should test: a lock that is taken, a lock that is lost, a second instance, a write that comes too late. No Redis,
 * and no waiting: a minute of Effect's test clock takes no time.
 */
import { LockClients } from "@effect-redis-lock/testing"
import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer } from "effect"
import { Lock, LockStore, RedisLock } from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { Carrier, layerShipments, ship, Shipments } from "./shipping.ts"

/** A carrier that says when it has come, and stays for ten minutes. */
const slowCarrier = (come: Deferred.Deferred<void>) =>
  Layer.succeed(
    Carrier,
    Carrier.of({ collect: () => Effect.andThen(Deferred.succeed(come, undefined), Effect.sleep("10 minutes")) })
  )

it.effect("a shipment that another fiber is at is busy after a minute", () =>
  Effect.gen(function* () {
    const come = yield* Deferred.make<void>()
    yield* Effect.gen(function* () {
      const first = yield* Effect.forkChild(ship("17"))
      yield* Deferred.await(come)
      const second = yield* Effect.forkChild(ship("17"))
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(yield* Fiber.join(second), "busy")
      yield* TestClock.adjust("9 minutes")
      assert.strictEqual(yield* Fiber.join(first), "shipped")
    }).pipe(Effect.provide([slowCarrier(come), layerShipments, RedisLock.layerMemory]))
  })
)

it.effect("a shipment that loses its lock is interrupted, and nothing is noted", () =>
  Effect.gen(function* () {
    const come = yield* Deferred.make<void>()
    yield* Effect.gen(function* () {
      const shipment = yield* Effect.forkChild(Effect.flip(ship("17")))
      yield* Deferred.await(come)
      yield* Lock.forceRelease("order:17")
      const error = yield* Fiber.join(shipment)
      assert.strictEqual(error._tag, "LockLost")
      assert.isFalse(yield* (yield* Shipments).isShipped("17"))
    }).pipe(Effect.provide([slowCarrier(come), layerShipments, RedisLock.layerMemory]))
  })
)

it.effect("a second instance finds the order busy", () =>
  Effect.gen(function* () {
    const come = yield* Deferred.make<void>()
    yield* Effect.gen(function* () {
      const [one, two] = yield* LockClients.make(2)
      yield* Effect.forkChild(Effect.provideService(ship("17"), RedisLock.RedisLock, one!))
      yield* Deferred.await(come)
      const second = yield* Effect.forkChild(Effect.provideService(ship("17"), RedisLock.RedisLock, two!))
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(yield* Fiber.join(second), "busy")
    }).pipe(Effect.scoped, Effect.provide([slowCarrier(come), layerShipments, LockStore.layerMemory]))
  })
)

it.effect("the store refuses the token of an earlier holder", () =>
  Effect.gen(function* () {
    const shipments = yield* Shipments
    const tokenOf = Effect.map(Lock.currentHolding("order:17"), ({ token }) => token).pipe(Lock.withLock("order:17"))
    const earlier = yield* tokenOf
    const later = yield* tokenOf
    yield* shipments.note("17", later)
    const error = yield* Effect.flip(shipments.note("17", earlier))
    assert.strictEqual(error._tag, "Outdated")
  }).pipe(Effect.provide([layerShipments, RedisLock.layerMemory]))
)
