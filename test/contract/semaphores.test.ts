/**
 * What both kinds of semaphore must do on every store: on memory under virtual time, and on Redis in real time.
 */
import { assert, describe } from "@effect/vitest"
import { Deferred, Duration, Effect, Exit, Fiber, Layer } from "effect"
import { Lock, LockLost, LockStore, LockStoreError, LockTimeout, RedisLock } from "effect-redis-lock"
import { onRedis } from "../kit/stores.ts"
import { type Store, deaf, recording, wrappedStore } from "../kit/wrappedStore.ts"
import { ObservedStore } from "../kit/observedStore.ts"
import { background } from "../kit/background.ts"
import { freshName } from "../kit/names.ts"
import { semaphoreContract, type Time } from "./suite/semaphores.ts"
import { withClosingSubscriptions } from "../kit/subscriptions.ts"

const contract = <E0>(name: string, store: Layer.Layer<LockStore.LockStore, E0>, time: Time): void => {
  const {
    virtual,
    elsewhere,
    breath,
    pass,
    channelOf,
    waiting,
    until,
    outcome,
    succeeded,
    failure,
    over,
    losing,
    kinds,
    holding,
    suite,
    options
  } = semaphoreContract(store, time)

  describe(`semaphores of both kinds on ${name}`, () => {
    for (const { acquiring, kind, make, returning } of kinds) {
      suite(kind, (test) => {
        test("A semaphore begins with its permits when it is first used, and keeps those that it has", function* () {
          const key = freshName("semaphore")
          const five = make(key, 5)
          assert.strictEqual(yield* five.available, 5)
          assert.strictEqual(yield* make(key).available, 0)
          const seen = Effect.all([five.available, make(key, 7).available]).pipe(
            make(key, 7).section(1),
            five.section(2)
          )
          assert.deepStrictEqual(yield* seen, [2, 2])
          assert.strictEqual(yield* make(key).available, 5)
          yield* five.add(1)
          assert.strictEqual(yield* five.available, 6)
        })

        test("A semaphore begins with its permits even if it is first changed", function* () {
          const five = make(freshName("semaphore"), 5)
          yield* five.add(2)
          assert.strictEqual(yield* five.available, 7)
        })

        test("A permit costs one command to acquire and one to give back", function* () {
          const operations: Array<string> = []
          yield* Effect.void.pipe(make(freshName("semaphore"), 2).section(2), over(recording(operations)))
          assert.deepStrictEqual(operations, [acquiring, returning])
        })

        test("A semaphore gets its permits back however the section ends, and the section's failure wins", function* () {
          const { available, section } = make(freshName("semaphore"), 3)
          assert.strictEqual(yield* Effect.succeed("in").pipe(section(2)), "in")
          assert.strictEqual(yield* Effect.fail("no").pipe(section(2), Effect.flip), "no")
          assert.isTrue(Exit.hasDies(yield* Effect.die("bug").pipe(section(2), Effect.exit)))
          const fiber = yield* background(Effect.never.pipe(section(2)))
          while ((yield* available) !== 1) yield* Effect.yieldNow
          yield* Fiber.interrupt(fiber)
          assert.strictEqual(yield* available, 3)
        })

        test("A semaphore serves all waiters that fit after one signal, first come, first served", function* () {
          const key = freshName("semaphore")
          const { add, available, section } = make(key, 1)
          const letGo = yield* holding(section, 1)
          const served: Array<number> = []
          const fibers: Array<Fiber.Fiber<void, unknown>> = []
          for (const demand of [5, 1, 3, 2, 1]) {
            fibers.push(
              yield* Effect.andThen(
                Effect.sync(() => void served.push(demand)),
                Effect.never
              ).pipe(section(demand), background)
            )
            yield* waiting(key)
          }
          if (virtual) {
            // not enough for the first, nor for the third: nobody waits behind them
            yield* elsewhere(add(1))
            yield* until(() => served.length >= 1)
            yield* waiting(key)
            assert.deepStrictEqual(served, [1])
            // one message for two of them
            yield* elsewhere(add(4))
            yield* until(() => served.length >= 3)
            yield* waiting(key)
            assert.deepStrictEqual(served.toSorted(), [1, 1, 3])
            yield* elsewhere(add(6))
            yield* until(() => served.length >= 4)
            yield* waiting(key)
            assert.strictEqual(served.length, 4)
            assert.strictEqual(served[3], 5)
            yield* elsewhere(add(1))
            yield* until(() => served.length >= 5)
            assert.strictEqual(served[4], 2)
          } else {
            // whether permits are kept for the first depends on how long it has waited
            yield* elsewhere(add(12))
            yield* until(() => served.length >= 5)
          }
          yield* Effect.forEach(fibers, Fiber.interrupt)
          yield* letGo
          assert.strictEqual(yield* available, 13)
        })

        test("A waiter for permits is not overtaken by one that arrives later and wants as many", function* () {
          const key = freshName("semaphore")
          const { section } = make(key, 1)
          const operations: Array<string> = []
          yield* Effect.gen(function* () {
            const letGo = yield* holding(section, 1)
            const order: Array<number> = []
            const fibers: Array<Fiber.Fiber<void, unknown>> = []
            for (const i of [0, 1, 2, 3]) {
              fibers.push(
                yield* Effect.sync(() => void order.push(i)).pipe(section(1, { waitTime: "1 hour" }), background)
              )
              yield* waiting(key)
            }
            // the first one's question, before and after subscribing, is all that is asked for the four of them
            assert.isAtMost(operations.length, 4)
            yield* letGo
            for (const fiber of fibers) yield* succeeded(fiber)
            assert.deepStrictEqual(order, [0, 1, 2, 3])
          }).pipe(over(recording(operations)))
        })

        test("A wait for permits ends after the wait time, and says what was wanted and free", function* () {
          yield* Effect.gen(function* () {
            const key = freshName("semaphore")
            const { available, section } = make(key, 3)
            const letGo = yield* holding(section, 2)
            const first = yield* background(Effect.void.pipe(section(2, { waitTime: "200 millis" })))
            const second = yield* background(Effect.void.pipe(section(3, { waitTime: "100 millis" })))
            for (const [fiber, wanted] of [
              [first, 2],
              [second, 3]
            ] as const) {
              const error = failure(yield* outcome(fiber))
              assert.instanceOf(error, LockTimeout)
              assert.strictEqual(error.lock, key)
              assert.strictEqual(error.permits?.wanted, wanted)
              assert.isAtLeast(Duration.toMillis(error.waited), 100)
              assert.include(error.message, `${wanted} free permits`)
            }
            const once = yield* Effect.flip(Effect.void.pipe(section(2, { waitTime: 0 })))
            assert.instanceOf(once, LockTimeout)
            assert.deepStrictEqual({ ...once.permits }, { wanted: 2, available: 1 })
            // nobody of this client waits any more
            const traffic = yield* ObservedStore
            while (!traffic.isUnheard(channelOf(key))) yield* pass("10 millis")
            yield* letGo
            assert.strictEqual(yield* available, 3)
          }).pipe(
            over((store) => store, options),
            withClosingSubscriptions(100)
          )
        })

        test("A lost message of a semaphore costs at most the fallback interval", function* () {
          const key = freshName("semaphore")
          const { add, section } = make(key, 1)
          yield* Effect.gen(function* () {
            const letGo = yield* holding(section, 1)
            const waiters = []
            let served = 0
            const body = Effect.andThen(
              Effect.sync(() => void served++),
              Effect.never
            )
            for (const demand of [2, 1, 1]) {
              waiters.push(yield* background(body.pipe(section(demand))))
              yield* waiting(key)
            }
            yield* elsewhere(add(2))
            if (virtual) {
              yield* pass("700 millis")
              yield* waiting(key)
              assert.strictEqual(served, 0)
              yield* pass("600 millis")
            }
            yield* until(() => served >= 1)
            yield* waiting(key)
            assert.strictEqual(served, 1)
            yield* elsewhere(add(2))
            if (virtual) yield* pass("1300 millis")
            yield* until(() => served >= 3)
            for (const waiter of waiters) yield* Fiber.interrupt(waiter)
            yield* letGo
          }).pipe(
            // waiters also ask when the lease of a permit ends: not here
            over(deaf, { watchdogLeaseTime: "30 seconds", fallbackInterval: virtual ? "1 second" : "300 millis" })
          )
        })

        test("A waiter notices permits that become free while it asks, queued or not", function* () {
          const key = freshName("semaphore")
          const { add, available, section } = make(key)
          yield* add(1)
          let isArmed = false
          /** Whether somebody else is faster than the one who was told. */
          let isOvertaken = false
          /** Once, before the denial is known, a permit becomes free and the message of it is heard. */
          const interfering = (store: Store) =>
            wrappedStore(store, ({ operation, run }) =>
              operation !== acquiring || !isArmed
                ? run()
                : Effect.gen(function* () {
                    isArmed = false
                    if (isOvertaken) yield* take
                    const denial = yield* run()
                    const before = heard()
                    yield* free
                    while (heard() === before) yield* breath
                    return denial
                  })
            )
          const context = yield* Effect.context<RedisLock.RedisLock | LockStore.LockStore>()
          const change = (permits: number) => Effect.provideContext(Effect.orDie(elsewhere(add(permits))), context)
          const [free, take] = [change(1), change(-1)]
          const traffic = yield* ObservedStore
          const heard = () => traffic.signals(channelOf(key))
          yield* Effect.gen(function* () {
            const letGo = yield* holding(section, 1)
            // so that it is subscribed, and stays so for a while
            const first = yield* background(Effect.void.pipe(section(1)))
            yield* waiting(key)
            yield* letGo
            yield* Fiber.join(first)
            const again = yield* holding(section, 1)
            isArmed = true
            yield* Effect.void.pipe(section(1))
            // and once more, during the question of one who waits already
            const waiter = yield* background(Effect.succeed("in").pipe(section(3)))
            yield* waiting(key)
            isArmed = true
            isOvertaken = true
            yield* elsewhere(add(2))
            assert.strictEqual(yield* Fiber.join(waiter), "in")
            yield* again
          }).pipe(over(interfering))
          assert.strictEqual(yield* available, 4)
        })

        test("A waiter for permits that is interrupted during its request passes the turn on", function* () {
          const key = freshName("semaphore")
          const { add, section } = make(key, 1)
          let isArmed = false
          const asked = yield* Deferred.make<void>()
          const hanging = (store: Store) =>
            wrappedStore(store, ({ operation, run }) => {
              if (operation !== acquiring || !isArmed) return run()
              isArmed = false
              return Effect.andThen(Deferred.succeed(asked, undefined), Effect.never)
            })
          yield* Effect.gen(function* () {
            const letGo = yield* holding(section, 1)
            const first = yield* background(Effect.void.pipe(section(1)))
            yield* waiting(key)
            const second = yield* background(Effect.succeed("in").pipe(section(1)))
            yield* waiting(key)
            isArmed = true
            yield* elsewhere(add(1))
            yield* Deferred.await(asked)
            yield* Fiber.interrupt(first)
            assert.strictEqual(yield* Fiber.join(second), "in")
            yield* letGo
          }).pipe(over(hanging))
        })

        for (const hasRun of [true, false]) {
          test(`Permits are rolled back if the reply of the request is lost, ${hasRun ? "after" : "before"} it has run`, function* () {
            const { add, available, section } = make(freshName("semaphore"))
            yield* add(5)
            const error = yield* Effect.void.pipe(
              section(3, { waitTime: 0 }),
              over(losing(acquiring, hasRun)),
              Effect.flip
            )
            assert.instanceOf(error, LockStoreError)
            assert.strictEqual(error.reason, "TimedOut")
            assert.strictEqual(yield* available, 5)
          })

          test(`Permits are given back once if the reply is lost, ${hasRun ? "after" : "before"} it has run`, function* () {
            const { available, section } = make(freshName("semaphore"), 5)
            const fiber = yield* background(Effect.succeed("in").pipe(section(3), over(losing(returning, hasRun))))
            assert.strictEqual(yield* succeeded(fiber), "in")
            assert.strictEqual(yield* available, 5)
          })
        }

        test("A section that succeeded fails if Redis no longer knows its permits at the end", function* () {
          const { section } = make(freshName("semaphore"), 5)
          const wiping = (store: Store) =>
            wrappedStore(store, ({ operation, run }) =>
              operation === returning ? Effect.andThen(run(), run()) : run()
            )
          const error = yield* Effect.void.pipe(section(1), over(wiping), Effect.flip)
          assert.instanceOf(error, LockLost)
          assert.strictEqual(error.reason, "NotOwner")
        })

        test("A semaphore says what else is under its name", function* () {
          const key = freshName("semaphore")
          const { add, available, section } = make(key, 1)
          yield* Effect.gen(function* () {
            for (const use of [Effect.void.pipe(section(1)), available, add(1)]) {
              const error = yield* Effect.flip(use as Effect.Effect<unknown, unknown>)
              assert.instanceOf(error, LockStoreError)
              assert.strictEqual(error.reason, "WrongType")
              assert.include(
                error.message,
                `"${key}" is not a ${kind === "a semaphore" ? "Semaphore" : "PermitSemaphore"}`
              )
              assert.include(error.message, "hash")
            }
          }).pipe(Lock.withLock(key))
          yield* Effect.void.pipe(section(1))
          const error = yield* Effect.flip(Lock.withLock(Effect.void, key))
          assert.strictEqual(error._tag === "LockStoreError" ? error.reason : error._tag, "WrongType")
        })

        test("A semaphore can be reached through a key prefix, or bound to a service", function* () {
          const key = freshName("semaphore")
          const { available, section } = make(key, 4)
          yield* Effect.gen(function* () {
            assert.strictEqual(yield* available, 1)
            assert.strictEqual(yield* make(`app:${key}`).available.pipe(elsewhere), 1)
          }).pipe(
            section(3),
            over((store) => store, { ...options, keyPrefix: "app:" })
          )
          assert.strictEqual(yield* make(key).available, 0)
        })
      })
    }
  })
}

contract("memory", LockStore.layerMemory, "virtual")
contract("Redis", onRedis, "real")
