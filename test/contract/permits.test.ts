/**
 * What anonymous permits and permits with leases must do besides, on every store: on memory under virtual time, and on Redis in real
 * time.
 */
import { assert, describe } from "@effect/vitest"
import { Deferred, Duration, Effect, Exit, Layer, Logger, Option } from "effect"
import { LockLost, LockStore, PermitId, PermitSemaphore, RedisLock, Semaphore } from "effect-redis-lock"
import { onRedis } from "../kit/stores.ts"
import { expectWarning } from "../run/logs.ts"
import { wrappedStore } from "../kit/wrappedStore.ts"
import { background } from "../kit/background.ts"
import { freshName } from "../kit/names.ts"
import { semaphoreContract, type Time } from "./suite/semaphores.ts"

const contract = <E0>(name: string, store: Layer.Layer<LockStore.LockStore, E0>, time: Time): void => {
  const {
    virtual,
    watchdogLeaseTime,
    elsewhere,
    pass,
    markersEnd,
    aDayLater,
    outcome,
    succeeded,
    failure,
    over,
    kinds,
    holding,
    suite
  } = semaphoreContract(store, time)

  describe(`anonymous and leased permits on ${name}`, () => {
    suite("a semaphore of its own kind", (test) => {
      test("Anonymous permits are acquired without waiting, for a scope, or for somebody else to release", function* () {
        const service = yield* RedisLock.RedisLock
        const semaphore = Semaphore.provide(Semaphore.make(freshName("semaphore"), { permits: 3 }), service)
        const free = Semaphore.availablePermits(semaphore)
        yield* Effect.scoped(
          Effect.andThen(
            Semaphore.scoped(semaphore, 2),
            Effect.map(free, (n) => assert.strictEqual(n, 1))
          )
        )
        assert.strictEqual(yield* free, 3)
        assert.deepStrictEqual(yield* Semaphore.withPermitsIfAvailable(free, semaphore, 2), Option.some(1))
        assert.deepStrictEqual(yield* Semaphore.withPermitsIfAvailable(free, semaphore, 4), Option.none())
        assert.isTrue(yield* Semaphore.tryAcquire(semaphore, 3))
        assert.isFalse(yield* Semaphore.tryAcquire(semaphore))
        yield* Semaphore.release(semaphore, 3)
        assert.strictEqual(yield* free, 3)
      })

      test("A semaphore is refused if a permit semaphore has the name", function* () {
        const key = freshName("semaphore")
        yield* Effect.gen(function* () {
          const error = yield* Effect.flip(Semaphore.acquire(key))
          assert.strictEqual(error._tag === "LockStoreError" ? error.reason : error._tag, "WrongType")
          assert.include(error.message, "is taken by a PermitSemaphore")
          assert.strictEqual((yield* Effect.flip(Semaphore.release(key)))._tag, "LockStoreError")
        }).pipe(PermitSemaphore.withPermit(PermitSemaphore.make(key, { permits: 2 })))
      })

      test("Permits that were held for longer than their marker lives are given back without it", function* () {
        yield* Effect.gen(function* () {
          const key = freshName("semaphore")
          const { available, section } = kinds[0].make(key, 3)
          const letGo = yield* holding(section, 2)
          yield* markersEnd(key)
          yield* letGo
          assert.strictEqual(yield* available, 3)
        }).pipe(over(virtual ? (store) => store : aDayLater))
      })
    })

    suite("a permit semaphore of its own kind", (test) => {
      test("A permit semaphore renews held permits for longer than a lease", function* () {
        yield* Effect.gen(function* () {
          const semaphore = PermitSemaphore.make(freshName("semaphore"), { permits: 2 })
          const letGo = yield* holding((n) => PermitSemaphore.withPermits(semaphore, n), 2)
          yield* pass(Duration.times(watchdogLeaseTime, 1.5))
          assert.strictEqual(yield* elsewhere(PermitSemaphore.acquiredPermits(semaphore)), 2)
          assert.isTrue(Exit.isSuccess(yield* letGo))
          assert.strictEqual(yield* PermitSemaphore.availablePermits(semaphore), 2)
        }).pipe(over((store) => store, { watchdogLeaseTime }))
      })

      test("A section whose permit's fixed lease has run out is interrupted, and another gets the permit", function* () {
        const semaphore = PermitSemaphore.make(freshName("semaphore"), { permits: 1 })
        const doomed = yield* background(
          PermitSemaphore.withPermit(Effect.never, semaphore, { leaseTime: "400 millis" })
        )
        const next = yield* background(PermitSemaphore.withPermit(Effect.succeed("in"), semaphore))
        const error = failure(yield* outcome(doomed))
        assert.instanceOf(error, LockLost)
        assert.strictEqual(error.reason, "Expired")
        assert.strictEqual(yield* succeeded(next), "in")
      })

      test("A section whose permit somebody else has given back is interrupted at the next renewal", function* () {
        yield* Effect.gen(function* () {
          expectWarning(/^The scope of permits has closed, but giving them back went wrong\./)
          const semaphore = PermitSemaphore.make(freshName("semaphore"), { permits: 1 })
          const ids = yield* Deferred.make<ReadonlyArray<string>>()
          const fiber = yield* Effect.gen(function* () {
            const permit = yield* PermitSemaphore.scoped(semaphore)
            yield* Deferred.succeed(ids, permit.ids)
            return yield* permit.awaitLost
          }).pipe(Effect.scoped, background)
          yield* elsewhere(PermitId.release(semaphore, (yield* Deferred.await(ids))[0]!))
          const error = failure(yield* outcome(fiber))
          assert.instanceOf(error, LockLost)
          assert.strictEqual(error.reason, "NotOwner")
          assert.strictEqual(yield* PermitSemaphore.availablePermits(semaphore), 1)
        }).pipe(over((store) => store, { watchdogLeaseTime }))
      })

      test("An id that is given twice, in small and in capital letters, is given back once with the others", function* () {
        const semaphore = PermitSemaphore.make(freshName("semaphore"), { permits: 3 })
        expectWarning(/^The scope of permits has closed, but giving them back went wrong\./)
        const { ids } = yield* PermitSemaphore.scoped(semaphore, { permits: 2 })
        const [one, other] = ids as [string, string]
        assert.isTrue(yield* PermitId.tryRelease(semaphore, [one, other, one.toUpperCase()]))
        assert.strictEqual(yield* PermitSemaphore.availablePermits(semaphore), 3)
      })

      test("After the loss of one of three permits the end of their section frees the other two at once", function* () {
        const semaphore = PermitSemaphore.make(freshName("semaphore"), { permits: 3 })
        expectWarning(/^The scope of permits has closed, but giving them back went wrong\./)
        yield* Effect.scoped(
          Effect.gen(function* () {
            const held = yield* PermitSemaphore.scoped(semaphore, { permits: 3, leaseTime: "1 hour" })
            yield* elsewhere(PermitId.release(semaphore, held.ids[0]!))
            assert.strictEqual((yield* Effect.flip(held.renew("1 hour")))._tag, "LockLost")
            assert.strictEqual(yield* PermitSemaphore.availablePermits(semaphore), 1)
          })
        )
        const next = yield* background(
          Effect.succeed("in").pipe(PermitSemaphore.withPermits(semaphore, 3, { waitTime: "1 minute" }))
        )
        assert.strictEqual(yield* succeeded(next), "in")
      })

      test("A held permit checks the clock, can be renewed by hand, and can be released early, once", function* () {
        const semaphore = PermitSemaphore.make(freshName("semaphore"), { permits: 2 })
        const permit = yield* PermitSemaphore.scoped(semaphore, { permits: 2, leaseTime: "10 seconds" })
        yield* permit.renew("1 hour")
        yield* permit.renew("1 second")
        assert.isAbove(Duration.toMinutes(yield* permit.remaining), 58)
        const left = Option.getOrThrow(yield* PermitId.leaseTime(semaphore, permit.ids[1]!))
        assert.isAbove(Duration.toMinutes(left), 58)
        assert.isTrue(yield* permit.isHeld)
        yield* permit.release
        yield* permit.release
        assert.isFalse(yield* permit.isHeld)
        assert.strictEqual((yield* Effect.flip(permit.ensureHeld))._tag, "LockLost")
        assert.strictEqual(yield* PermitSemaphore.availablePermits(semaphore), 2)
      })

      test("A semaphore of 5 that is set to 1 keeps its 4 holders, and admits nobody until the last of them is gone", function* () {
        expectWarning(/^The semaphore already exists with 1 permits; the 5 given here are ignored/)
        const semaphore = PermitSemaphore.make(freshName("semaphore"), { permits: 5 })
        const permits = yield* Effect.forEach([1, 2, 3, 4], () => PermitSemaphore.scoped(semaphore))
        yield* elsewhere(PermitSemaphore.setPermits(semaphore, 1))
        assert.strictEqual(yield* PermitSemaphore.acquiredPermits(semaphore), 4)
        const attempt = PermitSemaphore.withPermitIfAvailable(Effect.void, semaphore)
        const waiting = yield* background(elsewhere(PermitSemaphore.withPermit(Effect.succeed("in"), semaphore)))
        for (const permit of permits) {
          assert.isTrue(yield* permit.isHeld)
          assert.isTrue(Option.isNone(yield* elsewhere(attempt)))
          assert.isUndefined(waiting.pollUnsafe())
          yield* permit.release
        }
        assert.strictEqual(yield* succeeded(waiting), "in")
      })

      test("tryScoped asks once for a permit", function* () {
        const semaphore = PermitSemaphore.make(freshName("semaphore"), { permits: 1 })
        const inner = PermitSemaphore.withPermitIfAvailable(Effect.succeed("in"), semaphore)
        assert.deepStrictEqual(yield* inner, Option.some("in"))
        assert.deepStrictEqual(yield* PermitSemaphore.withPermit(inner, semaphore), Option.none())
      })

      /** A semaphore, 11000 of whose permits had leases that have ended, and were not given back. */
      const ended = Effect.gen(function* () {
        expectWarning(/^The scope of permits has closed, but giving them back went wrong\./)
        const semaphore = PermitSemaphore.make(freshName("semaphore"), { permits: 11_000 })
        const leaseTime = virtual ? 10_000 : 3000
        const lost = yield* Effect.forEach([10_000, 1000], (permits) =>
          PermitSemaphore.scoped(semaphore, { permits, leaseTime }).pipe(
            Effect.andThen((permit) => permit.awaitLost),
            Effect.scoped,
            over((store) =>
              wrappedStore(store, ({ operation, run }) =>
                operation === "permit_semaphore/release" ? Effect.succeed(1) : run()
              )
            ),
            background
          )
        )
        for (const each of lost) assert.strictEqual(failure(yield* outcome(each))._tag, "LockLost")
        yield* pass("300 millis")
        return semaphore
      })

      test("A permit semaphore recovers 10000 permits at once whose leases have ended", function* () {
        const semaphore = yield* ended
        const free = PermitSemaphore.availablePermits(semaphore)
        assert.strictEqual(yield* PermitSemaphore.withPermits(free, semaphore, 10_000, { waitTime: 0 }), 1000)
        assert.strictEqual(yield* free, 11_000)
      })

      test("A request that is denied while the leases of 11000 permits end does not mistake the total", function* () {
        const fewer = PermitSemaphore.make((yield* ended).name, { permits: 500 })
        yield* PermitSemaphore.setPermits(fewer, 500)
        const warnings: Array<string> = []
        const logger = Logger.make(
          ({ logLevel, message }) => void (logLevel === "Warn" && warnings.push(String(message)))
        )
        const all = PermitSemaphore.withPermits(Effect.void, fewer, 500).pipe(Effect.provide(Logger.layer([logger])))
        yield* succeeded(yield* background(all))
        assert.deepStrictEqual(warnings, [])
        assert.strictEqual(yield* PermitSemaphore.availablePermits(fewer), 500)
      })
    })
  })
}

contract("memory", LockStore.layerMemory, "virtual")
contract("Redis", onRedis, "real")
