/**
 * What a lock of several must do, on memory and on Redis; and with members of two services, of other kinds, and composed ones.
 */
import { onlyMessages } from "../kit/onlyMessages.ts"
import { serviceOf } from "../kit/testStore.ts"
import { assert, it } from "@effect/vitest"
import { Duration, Effect, Exit, Fiber, Layer, Option, Schedule } from "effect"
import {
  FairLock,
  FencedLock,
  Lock,
  LockLost,
  LockReentered,
  LockStore,
  LockTimeout,
  MultiLock,
  NonReentrantLock,
  ReadWriteLock,
  RedisLock,
  RedLock,
  SpinLock
} from "effect-redis-lock"
import { onRedis } from "../kit/stores.ts"
import { growsBy } from "../kit/server/conditions.ts"
import { observedStore, waiterSleeps } from "../kit/observedStore.ts"
import { sectionUntilTold } from "../kit/sections.ts"
import { testsOf } from "../kit/test.ts"

const watchdogLease = Duration.seconds(6)

/** A fallback that never comes to help: a lost signal hangs the test. */
const options = { watchdogLeaseTime: watchdogLease, fallbackInterval: "1 hour" } as const
const clients = onlyMessages(options)(RedisLock.layerFromStore(options))

const names = Effect.sync(() => {
  const run = crypto.randomUUID().slice(0, 8)
  return [`multi:${run}:a`, `multi:${run}:b`, `multi:${run}:c`] as const
})

const multi = (members: ReadonlyArray<string>, options?: Lock.AcquireOptions) =>
  MultiLock.make(
    members.map((name) => Lock.make(name)),
    options
  )

const elapsed = <A, E, R>(self: Effect.Effect<A, E, R>) =>
  Effect.map(Effect.timed(self), ([duration, result]) => ({ millis: Duration.toMillis(duration), result }))

const failuresOf = <A, E>(exit: Exit.Exit<A, E>): ReadonlyArray<E> =>
  Exit.isFailure(exit) ? exit.cause.reasons.flatMap((reason) => (reason._tag === "Fail" ? [reason.error] : [])) : []

const soon = <A, E, R>(self: Effect.Effect<A, E, R>) =>
  Effect.timeoutOrElse(self, { duration: "4 minutes", orElse: () => Effect.die(new Error("it did not happen")) })

/** Holds a lock in a fiber of its own until told to let go. */
const hold = Effect.fnUntraced(function* <E>(
  lock: Lock.Lock<RedisLock.RedisLock, E, any>,
  who: <A, E2>(self: Effect.Effect<A, E2, RedisLock.RedisLock>) => Effect.Effect<A, E2, any> = (self) => self,
  options?: Lock.AcquireOptions
) {
  const holder = sectionUntilTold((body) => who(Lock.withLock(body, lock, options)))
  const { end, fiber } = yield* soon(holder)
  return { exit: soon(Fiber.await(fiber)), letGo: soon(end) }
})

const suite = <E>(where: string, store: Layer.Layer<LockStore.LockStore, E>) =>
  it.layer(Layer.provideMerge(Layer.orDie(clients), observedStore(store)), { excludeTestServices: true })(
    `a lock of several on ${where}`,
    (it) => {
      const test = testsOf(it.effect)
      const elsewhere = <A, E2, R>(self: Effect.Effect<A, E2, R>) =>
        Effect.provide(self, Layer.fresh(Layer.orDie(clients)))
      const areLocked = (locks: ReadonlyArray<string>) => Effect.forEach(locks, (lock) => Lock.isLocked(lock))

      test("A lock of several holds all its members, and then none", function* () {
        const all = yield* names
        const lock = multi(all)
        for (let i = 0; i < 2; i++) {
          yield* Effect.gen(function* () {
            assert.deepStrictEqual(yield* elsewhere(areLocked(all)), [true, true, true])
            assert.isTrue(yield* Lock.isLocked(lock))
            for (const each of [lock, ...all]) assert.isTrue(yield* Lock.isHeldByCurrentOwner(each))
            assert.isFalse(yield* Lock.withOwner(Lock.isHeldByCurrentOwner(lock)))
            assert.strictEqual(yield* Lock.holdCount(lock), 1)
            for (const name of all) {
              assert.isTrue(Option.isNone(yield* elsewhere(Lock.withLockIfAvailable(Effect.void, name))))
            }
            assert.isTrue(Option.isNone(yield* elsewhere(Lock.withLockIfAvailable(Effect.void, lock))))
          }).pipe(Lock.withLock(lock))
          assert.deepStrictEqual(yield* areLocked(all), [false, false, false])
          assert.isFalse(yield* Lock.isLocked(lock))
        }
      })

      test("The holder of a lock of several is recognised in an inner scope as well", function* () {
        const lock = multi(yield* names)
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* Lock.scoped(lock)
            assert.isTrue(yield* Effect.scoped(Lock.isHeldByCurrentOwner(lock)))
            assert.strictEqual(yield* Effect.scoped(Lock.holdCount(lock)), 1)
          })
        )
      })

      test("A lock of several holds nothing while one is taken, and times out by its own name", function* () {
        const all = yield* names
        const lock = multi(all)
        const other = yield* hold(Lock.make(all[1]), elsewhere)
        assert.isTrue(Option.isNone(yield* Effect.scoped(Lock.tryScoped(lock))))
        assert.deepStrictEqual(yield* areLocked(all), [false, true, false])
        const { millis, result } = yield* elapsed(
          Effect.flip(Lock.withLock(Effect.void, lock, { waitTime: "400 millis" }))
        )
        assert.instanceOf(result, LockTimeout)
        assert.strictEqual(result.lock, all.join(", "))
        assert.isDefined(result.holder)
        assert.isAtLeast(millis, 399)
        assert.deepStrictEqual(yield* areLocked(all), [false, true, false])
        assert.instanceOf(yield* Effect.flip(Lock.withLock(Effect.void, lock, { waitTime: 0 })), LockTimeout)
        yield* other.letGo
        assert.deepStrictEqual(yield* areLocked(all), [false, false, false])
      })

      test("A wait for a lock of several is woken by each taken member, one after the other", function* () {
        const all = yield* names
        const holders = yield* Effect.forEach(all, (name) => hold(Lock.make(name), elsewhere))
        const waiting = yield* Effect.forkChild(Lock.withLock(Effect.succeed("all"), multi(all)))
        // in an order that is not theirs
        for (const i of [2, 0, 1]) {
          // time to come in, which it must not
          yield* Effect.sleep(50)
          assert.isUndefined(waiting.pollUnsafe())
          yield* holders[i]!.letGo
        }
        assert.strictEqual(yield* soon(Fiber.join(waiting)), "all")
      })

      test("A lock of several waits its turn among waiters for a single member, which also get theirs", function* () {
        const all = yield* names
        const holder = yield* hold(Lock.make(all[0]), elsewhere)
        const before = yield* Effect.forkChild(Lock.withLock(Effect.succeed("single"), all[0]))
        yield* waiterSleeps
        const waiting = yield* Effect.forkChild(Lock.withLock(Effect.succeed("all"), multi(all)))
        yield* waiterSleeps
        const after = yield* Effect.forEach(all, (name) => Effect.forkChild(Lock.withLock(Effect.succeed(name), name)))
        yield* holder.letGo
        assert.strictEqual(yield* soon(Fiber.join(before)), "single")
        assert.strictEqual(yield* soon(Fiber.join(waiting)), "all")
        for (const [i, fiber] of after.entries()) assert.strictEqual(yield* soon(Fiber.join(fiber)), all[i])
      })

      test("A lock of several is lost soon with one member, by its name, and gives the others back", function* () {
        const all = yield* names
        for (const lostOne of all) {
          let interrupted = false
          const section = yield* Effect.never.pipe(
            Effect.onInterrupt(() => Effect.sync(() => (interrupted = true))),
            Lock.withLock(multi(all)),
            Effect.forkChild
          )
          yield* Effect.repeat(Lock.isLocked(lostOne), { until: (locked) => locked, schedule: Schedule.spaced(5) })
          // as by a DEL: this client is not told
          yield* elsewhere(Lock.forceRelease(lostOne))
          const [lost, ...others] = failuresOf(yield* soon(Fiber.await(section)))
          assert.instanceOf(lost, LockLost)
          assert.strictEqual(lost.lock, lostOne)
          assert.strictEqual(lost.reason, "NotOwner")
          assert.deepStrictEqual(others, [])
          assert.isTrue(interrupted)
          assert.deepStrictEqual(yield* areLocked(all), [false, false, false])
        }
      })

      test("A lock of several is renewed as a whole, and tells what it holds", function* () {
        const all = yield* names
        yield* Effect.gen(function* () {
          const holding = yield* Lock.scoped(multi(all))
          assert.deepStrictEqual(Object.keys(holding.token), [...all])
          for (const name of all) assert.isTrue(holding.token[name]! > 0n)
          const left = () => Effect.runPromise(Effect.map(holding.remaining, Duration.toMillis))
          yield* growsBy("it is renewed", left, 2)
          assert.isTrue(yield* holding.isHeld)
          yield* holding.ensureHeld
          assert.isBelow(Duration.toMillis(yield* holding.remaining), Duration.toMillis(watchdogLease))
          yield* holding.renew("1 hour")
          assert.isAbove(Duration.toMinutes(yield* holding.remaining), 58)
          assert.strictEqual((yield* Effect.flip(holding.renew(0)))._tag, "InvalidLockOptions")
          yield* holding.release
          assert.isFalse(yield* holding.isHeld)
          yield* holding.release
          assert.deepStrictEqual(yield* areLocked(all), [false, false, false])
        }).pipe(Effect.scoped)
      })

      test("A lock of several with a fixed lease has it from the last grant on", function* () {
        const all = yield* names
        // the first member is entered again: its own lease began earlier, and is longer or shorter
        for (const first of ["10 minutes", "3 hours"] as const) {
          yield* Effect.gen(function* () {
            yield* Lock.scoped(all[0], { leaseTime: first })
            // so that the leases begin at different times
            yield* Effect.sleep(50)
            const holding = yield* Lock.scoped(multi(all), { leaseTime: "1 hour" })
            assert.isAbove(Duration.toMinutes(yield* holding.remaining), 60 * 0.99 - 1)
            for (const name of all.slice(1)) {
              const inRedis = Option.getOrThrow(yield* Lock.remainingTime(name))
              assert.isAbove(Duration.toMinutes(inRedis), 59)
              assert.isAtMost(Duration.toMinutes(inRedis), 60)
            }
          }).pipe(Effect.scoped)
        }
      })

      test("A lock of several can be re-entered as a whole, by its members, and as a member of another", function* () {
        const [a, b, c] = yield* names
        const inner = multi([a, b])
        const outer = MultiLock.make([inner, Lock.make(c)])
        yield* Effect.gen(function* () {
          assert.strictEqual(yield* Lock.holdCount(a).pipe(Lock.withLock(a)), 2)
          assert.strictEqual(yield* Lock.holdCount(inner).pipe(Lock.withLock(inner)), 2)
          assert.strictEqual(yield* Lock.holdCount(outer).pipe(Lock.withLock(outer), Effect.timeout("4 minutes")), 2)
          assert.strictEqual(yield* Lock.holdCount(a), 1)
          const { token } = yield* Lock.currentHolding(outer)
          assert.deepStrictEqual(Object.keys(token), [inner.name, c])
        }).pipe(Lock.withLock(outer))
        // and where one member was held before
        yield* Effect.gen(function* () {
          assert.strictEqual(yield* Lock.holdCount(a).pipe(Lock.withLock(outer)), 2)
          assert.deepStrictEqual(yield* areLocked([a, b, c]), [true, false, false])
        }).pipe(Lock.withLock(a))
        assert.deepStrictEqual(yield* areLocked([a, b, c]), [false, false, false])
      })

      test("A lock of several may have members of every kind", function* () {
        const run = crypto.randomUUID().slice(0, 8)
        const { writeLock } = ReadWriteLock.make(`kinds:${run}:rw`)
        const { readLock } = ReadWriteLock.make(`kinds:${run}:ro`)
        const kinds = [
          Lock.make(`kinds:${run}:plain`),
          FairLock.make(`kinds:${run}:fair`),
          FencedLock.make(`kinds:${run}:fenced`),
          SpinLock.make(`kinds:${run}:spin`),
          NonReentrantLock.make(`kinds:${run}:once`),
          writeLock,
          readLock
        ]
        const lock = MultiLock.make(kinds)
        const others = MultiLock.make(kinds.toReversed())
        yield* Effect.gen(function* () {
          for (const kind of kinds.slice(0, -1)) {
            assert.isTrue(Option.isNone(yield* elsewhere(Lock.withLockIfAvailable(Effect.void, kind))), kind.name)
          }
          assert.isTrue(Option.isSome(yield* elsewhere(Lock.withLockIfAvailable(Effect.void, readLock))))
          // what cannot be entered again fails at once, and what had been entered until then is left
          assert.instanceOf(yield* Effect.flip(Lock.withLock(Effect.void, others)), LockReentered)
          assert.strictEqual(yield* Lock.holdCount(kinds[0]!), 1)
          assert.strictEqual(yield* Lock.holdCount(writeLock), 1)
        }).pipe(Lock.withLock(lock))
        const waiting = yield* hold(others, elsewhere)
        const mine = yield* Effect.forkChild(Lock.withLock(Effect.succeed("mine"), lock))
        yield* waiterSleeps
        yield* waiting.letGo
        assert.strictEqual(yield* soon(Fiber.join(mine)), "mine")
        for (const kind of kinds) assert.isFalse(yield* Lock.isLocked(kind), kind.name)
      })

      test("A lock of several may have members on another service, and one that a majority keeps", function* () {
        const [a, b, c] = yield* names
        const services = yield* Effect.forEach([1, 2, 3], () =>
          serviceOf(Layer.provide(clients, LockStore.layerMemory))
        )
        const red = RedLock.make(services.map((service) => Lock.provide(Lock.make(c), service)))
        const far = Lock.provide(Lock.make(b), services[0]!)
        const lock = MultiLock.make([Lock.make(a), far, red])
        yield* Effect.gen(function* () {
          const { token } = yield* Lock.currentHolding(lock)
          assert.deepStrictEqual(Object.keys(token), [a, b, c])
          assert.isTrue(yield* elsewhere(Lock.isLocked(a)))
          assert.isTrue(yield* Lock.isLocked(far))
          assert.isTrue(yield* Lock.isLocked(red))
          assert.isFalse(yield* Lock.isLocked(b), "it is held elsewhere")
        }).pipe(Lock.withLock(lock), Effect.scoped)
        assert.deepStrictEqual(
          [yield* Lock.isLocked(a), yield* Lock.isLocked(far), yield* Lock.isLocked(red)],
          [false, false, false]
        )
        // the far one is taken: what was won here is given back
        yield* Effect.gen(function* () {
          assert.isTrue(Option.isNone(yield* Lock.withOwner(Lock.withLockIfAvailable(Effect.void, lock))))
          assert.isFalse(yield* Lock.isLocked(a))
          assert.isFalse(yield* Lock.isLocked(red))
        }).pipe(Lock.withLock(far))
      })
    }
  )

suite("memory", LockStore.layerMemory)
suite("Redis", onRedis)
