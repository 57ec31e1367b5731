/**
 * The functions of two arguments, data-first and data-last.
 */
import { assert, it } from "@effect/vitest"
import { Duration, Effect, Fiber, Option, pipe } from "effect"
import { TestClock } from "effect/testing"
import { Lock, RedisLock } from "effect-redis-lock"

/** Rounded, as the two forms are not asked at the same moment. */
const lease = (holding: { readonly remaining: Effect.Effect<Duration.Duration> }) =>
  Effect.map(holding.remaining, (remaining) => Math.ceil(Duration.toSeconds(remaining)))

it.effect("Lock.scoped takes its options after the lock or before it, or none", () =>
  Effect.gen(function* () {
    const lock = Lock.make("a")
    const scopes = {
      "data first": Lock.scoped(lock, { leaseTime: "10 seconds" }),
      "data last": lock.pipe(Lock.scoped({ leaseTime: "10 seconds" })),
      "data last, a name": pipe("a", Lock.scoped({ leaseTime: "10 seconds" }))
    }
    for (const [form, scoped] of Object.entries(scopes)) {
      assert.strictEqual(yield* Effect.scoped(Effect.flatMap(scoped, lease)), 10, form)
    }
    for (const scoped of [lock.pipe(Lock.scoped), Lock.scoped(lock), Lock.scoped("a"), lock.pipe(Lock.scoped({}))]) {
      assert.strictEqual(yield* Effect.scoped(Effect.flatMap(scoped, lease)), 30)
    }
  }).pipe(Effect.provide(RedisLock.layerMemory))
)

it.effect("Lock.tryScoped takes its options after the lock or before it, or none", () =>
  Effect.gen(function* () {
    const lock = Lock.make("a")
    const granted = Effect.map(Option.getOrThrow<any>)
    for (const scoped of [
      Lock.tryScoped(lock, { leaseTime: "10 seconds" }),
      lock.pipe(Lock.tryScoped({ leaseTime: "10 seconds" }))
    ]) {
      assert.strictEqual(yield* Effect.scoped(Effect.flatMap(granted(scoped), lease)), 10)
    }
    for (const scoped of [lock.pipe(Lock.tryScoped), Lock.tryScoped("a"), lock.pipe(Lock.tryScoped({}))]) {
      assert.strictEqual(yield* Effect.scoped(Effect.flatMap(granted(scoped), lease)), 30)
    }
  }).pipe(Effect.provide(RedisLock.layerMemory))
)

it.effect("a waitTime given before the lock limits the wait", () =>
  Effect.gen(function* () {
    const other = Lock.make("a").pipe(Lock.scoped({ waitTime: "5 seconds" }), Effect.scoped, Lock.withOwner)
    const holder = yield* Effect.forkChild(Lock.withLock(Effect.never, "a"), { startImmediately: true })
    const refused = yield* Effect.forkChild(Effect.flip(other), { startImmediately: true })
    yield* TestClock.adjust("5 seconds")
    assert.strictEqual((yield* Fiber.join(refused))._tag, "LockTimeout")
    yield* Fiber.interrupt(holder)
  }).pipe(Effect.provide(RedisLock.layerMemory))
)
