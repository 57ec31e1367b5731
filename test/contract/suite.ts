/**
 * What every store must do, as one text: run on memory under virtual time and on Redis in real time.
 */
import { assert, describe, it } from "@effect/vitest"
import { Cause, Deferred, Duration, Effect, Exit, Fiber, Layer, Option, Ref, Result, Scope, Stream } from "effect"
import {
  type Holding,
  InvalidLockName,
  InvalidLockOptions,
  Lock,
  LockLost,
  LockStore,
  LockTimeout,
  RedisLock
} from "effect-redis-lock"
import { TestClock } from "effect/testing"

export interface Backend<E, S = LockStore.LockStore> {
  readonly name: string
  readonly store: Layer.Layer<S, E>
  /** How clients are made of the store. */
  readonly clients: (options: RedisLock.RedisLockOptions) => Layer.Layer<RedisLock.RedisLock, InvalidLockOptions, S>
  readonly time: "virtual" | "real"
}

let names = 0
const run = crypto.randomUUID().slice(0, 8)
const freshName = (label = "lock") => Effect.sync(() => `${label}:${run}:${++names}`)

/** The contract of a store, whose clients are made as always. */
export const contract = <E>(backend: Omit<Backend<E>, "clients">): void =>
  contractOf({ ...backend, clients: RedisLock.layerStore })

/** The contract of clients however made. */
export const contractOf = <E, S>({ clients: clientsOf, name, store, time }: Backend<E, S>): void => {
  const virtual = time === "virtual"

  // Leases in real time are short enough to wait for, and long enough for a busy machine to do a few round trips in.
  const shortLease = virtual ? Duration.seconds(5) : Duration.millis(600)
  const options: RedisLock.RedisLockOptions = {
    watchdogLeaseTime: virtual ? "30 seconds" : "1500 millis",
    fallbackInterval: virtual ? "1 second" : "200 millis"
  }
  const watchdogLease = Duration.fromInputUnsafe(options.watchdogLeaseTime!)

  const clients = clientsOf(options)
  /** Runs an effect as another client of the same store. */
  const elsewhere = <A, E, R>(self: Effect.Effect<A, E, R>) => Effect.provide(self, Layer.fresh(clients))

  const pass = (duration: Duration.Duration) => (virtual ? TestClock.adjust(duration) : Effect.sleep(duration))

  /** Waits for a fiber, letting time pass. */
  const outcome = <A, E>(fiber: Fiber.Fiber<A, E>): Effect.Effect<Exit.Exit<A, E>> =>
    virtual
      ? Effect.gen(function* () {
          while (fiber.pollUnsafe() === undefined) yield* TestClock.adjust("100 millis")
          return fiber.pollUnsafe()!
        })
      : Fiber.await(fiber)

  const succeeded = <A, E>(fiber: Fiber.Fiber<A, E>) => Effect.flatten(outcome(fiber))

  const failure = <A, E>(exit: Exit.Exit<A, E>): E => {
    assert.isTrue(Exit.isFailure(exit), "should have failed")
    return Option.getOrThrow(Cause.findErrorOption((exit as Exit.Failure<A, E>).cause))
  }

  /** Forks what holds a lock until it is told to let go. */
  const holdElsewhere = Effect.fnUntraced(function* (lock: string, acquire?: Lock.AcquireOptions) {
    const held = yield* Deferred.make<Holding>()
    const letGo = yield* Deferred.make<void>()
    const fiber = yield* Effect.gen(function* () {
      yield* Deferred.succeed(held, yield* Lock.scoped(lock, acquire))
      yield* Deferred.await(letGo)
    }).pipe(Effect.scoped, elsewhere, Effect.forkChild({ startImmediately: true }))
    const holding = yield* Effect.raceFirst(Deferred.await(held), Effect.andThen(Fiber.join(fiber), Effect.never))
    return { holding, letGo: Effect.andThen(Deferred.succeed(letGo, undefined), Fiber.join(fiber)) }
  })

  const suite = it.layer(Layer.provideMerge(clients, store), { excludeTestServices: !virtual })

  describe(`contract on ${name}`, () => {
    suite("a lock", (it) => {
      it.effect("is free, then held, then free again, and can be used again", () =>
        Effect.gen(function* () {
          const lock = yield* freshName()
          for (let i = 0; i < 2; i++) {
            assert.isFalse(yield* Lock.isLocked(lock))
            yield* Effect.gen(function* () {
              assert.isTrue(yield* Lock.isLocked(lock))
              assert.isTrue(yield* elsewhere(Lock.isLocked(lock)))
            }).pipe(Lock.withLock(lock))
          }
          assert.isFalse(yield* Lock.isLocked(lock))
        })
      )

      it.effect("returns what the section returns, and fails with what it fails with", () =>
        Effect.gen(function* () {
          const lock = yield* freshName()
          assert.strictEqual(yield* Lock.withLock(Effect.succeed(1), lock), 1)
          assert.strictEqual(yield* Effect.fail("no").pipe(Lock.withLock(lock), Effect.flip), "no")
          const died = yield* Effect.die("bug").pipe(Lock.withLock(lock), Effect.exit)
          assert.isTrue(Exit.hasDies(died))
          assert.isFalse(yield* Lock.isLocked(lock))
        })
      )

      it.effect("excludes the fibers of one client from each other", () =>
        Effect.gen(function* () {
          const lock = yield* freshName()
          const counter = yield* Ref.make(0)
          let inside = 0
          const section = Effect.gen(function* () {
            assert.strictEqual(++inside, 1)
            const seen = yield* Ref.get(counter)
            yield* Effect.yieldNow
            yield* Ref.set(counter, seen + 1)
            inside--
          }).pipe(Lock.withLock(lock))
          const all = yield* Effect.forEach(
            Array.from({ length: 8 }),
            () => Effect.forEach(Array.from({ length: 10 }), () => section),
            { concurrency: "unbounded" }
          ).pipe(Effect.forkChild)
          yield* succeeded(all)
          assert.strictEqual(yield* Ref.get(counter), 80)
        })
      )

      it.effect("excludes other clients, and is handed over when it is released", () =>
        Effect.gen(function* () {
          const lock = yield* freshName()
          const other = yield* holdElsewhere(lock)
          const mine = yield* Effect.succeed("in").pipe(
            Lock.withLock(lock),
            Effect.forkChild({ startImmediately: true })
          )
          yield* pass(Duration.millis(100))
          assert.isUndefined(mine.pollUnsafe())
          yield* other.letGo
          assert.strictEqual(yield* succeeded(mine), "in")
        })
      )

      it.effect("lets the fibers of a client in first come, first served", () =>
        Effect.gen(function* () {
          const lock = yield* freshName()
          const order: Array<number> = []
          const other = yield* holdElsewhere(lock)
          const fibers: Array<Fiber.Fiber<void, unknown>> = []
          for (let i = 0; i < 5; i++) {
            fibers.push(
              yield* Effect.sync(() => void order.push(i)).pipe(
                Lock.withLock(lock),
                Effect.forkChild({ startImmediately: true })
              )
            )
            yield* pass(Duration.millis(20))
          }
          yield* other.letGo
          for (const fiber of fibers) yield* succeeded(fiber)
          assert.deepStrictEqual(order, [0, 1, 2, 3, 4])
        })
      )

      it.effect("lets other clients in, though its own fibers always wait", () =>
        Effect.gen(function* () {
          const lock = yield* freshName()
          let mine = 0
          const busy = yield* Effect.forEach(
            [1, 2, 3, 4],
            () =>
              Effect.forever(
                Lock.withLock(
                  Effect.andThen(
                    Effect.yieldNow,
                    Effect.sync(() => mine++)
                  ),
                  lock
                )
              ),
            { concurrency: "unbounded" }
          ).pipe(Effect.forkChild)
          const others = 20
          const theirs = yield* Effect.forEach(
            Array.from({ length: others }),
            () => Lock.withLock(Effect.yieldNow, lock),
            { discard: true }
          ).pipe(elsewhere, Effect.forkChild)
          yield* succeeded(theirs)
          yield* Fiber.interrupt(busy)
          assert.isBelow(mine, others * 50)
        })
      )

      it.effect("takes any name that is allowed", () =>
        Effect.gen(function* () {
          const unique = yield* freshName("n")
          for (const lock of [
            `{${unique}}:a`,
            `a{${unique}`,
            `}${unique}{`,
            `ü 锁 🔒 ${unique}`,
            unique.padEnd(1024, "x")
          ]) {
            assert.isTrue(yield* Lock.isLocked(lock).pipe(Lock.withLock(lock)), lock)
            assert.isFalse(yield* Lock.isLocked(lock), lock)
          }
        })
      )
    })

    suite("the fencing token", (it) => {
      it.effect("rises with every grant, across clients, also after a force release", () =>
        Effect.gen(function* () {
          const lock = yield* freshName()
          const token = Effect.map(Lock.holding(lock), (holding) => holding.token).pipe(Lock.withLock(lock))
          const tokens = [yield* token, yield* elsewhere(token), yield* token]
          const zombie = yield* holdElsewhere(lock)
          tokens.push(zombie.holding.token)
          assert.isTrue(yield* Lock.forceRelease(lock))
          tokens.push(yield* token)
          assert.deepStrictEqual(
            tokens,
            [...new Set(tokens)].sort((a, b) => (a < b ? -1 : 1))
          )
          assert.isTrue(tokens[0]! > 0n)
          yield* zombie.letGo
        })
      )

      it.effect("belongs to the holding: re-entries share it", () =>
        Effect.gen(function* () {
          const lock = yield* freshName()
          yield* Effect.gen(function* () {
            const outer = yield* Lock.holding(lock)
            const inner = yield* Lock.holding(lock).pipe(Lock.withLock(lock))
            assert.strictEqual(inner.token, outer.token)
            assert.strictEqual(inner.owner, outer.owner)
            const state = Option.getOrThrow(yield* Lock.inspect(lock))
            assert.strictEqual(state.token, outer.token)
            assert.deepStrictEqual(state.holders, [{ owner: outer.owner, holdCount: 1, mode: "exclusive" }])
          }).pipe(Lock.withLock(lock))
        })
      )
    })

    suite("re-entry", (it) => {
      it.effect("works down a section, through timeouts and forks, and is counted", () =>
        Effect.gen(function* () {
          const lock = yield* freshName()
          assert.strictEqual(yield* Lock.holdCount(lock), 0)
          yield* Effect.gen(function* () {
            assert.strictEqual(yield* Lock.holdCount(lock), 1)
            const inner = Lock.holdCount(lock).pipe(Lock.withLock(lock))
            assert.strictEqual(yield* inner, 2)
            assert.strictEqual(yield* Effect.timeout(inner, "10 seconds"), 2)
            assert.strictEqual(yield* Effect.flatMap(Effect.forkChild(inner), Fiber.join), 2)
            assert.strictEqual(yield* inner.pipe(Lock.withLock(yield* freshName("other"))), 2)
            assert.strictEqual(yield* Lock.holdCount(lock), 1)
            assert.isTrue(yield* Lock.isHeldByCurrentOwner(lock))
          }).pipe(Lock.withLock(lock))
          assert.strictEqual(yield* Lock.holdCount(lock), 0)
          assert.isFalse(yield* Lock.isLocked(lock))
        })
      )

      it.effect("works for the same fiber and in the same scope", () =>
        Effect.gen(function* () {
          const lock = yield* freshName()
          yield* Effect.gen(function* () {
            const outer = yield* Lock.scoped(lock)
            assert.strictEqual(yield* Lock.holdCount(lock).pipe(Lock.withLock(lock)), 2)
            const inner = yield* Effect.timeout(Lock.scoped(lock), "10 seconds")
            assert.strictEqual(inner.owner, outer.owner)
            assert.strictEqual(yield* Lock.holdCount(lock), 2)
            yield* inner.release
            assert.strictEqual(yield* Lock.holdCount(lock), 1)
            assert.isTrue(yield* outer.isHeld)
          }).pipe(Effect.scoped)
          assert.isFalse(yield* Lock.isLocked(lock))
        })
      )

      it.effect("does not happen between sibling fibers, also inside a section of another lock", () =>
        Effect.gen(function* () {
          const lock = yield* freshName()
          const inside = yield* Deferred.make<void>()
          const goOn = yield* Deferred.make<void>()
          yield* Effect.gen(function* () {
            const first = yield* Effect.andThen(Deferred.succeed(inside, undefined), Deferred.await(goOn)).pipe(
              Lock.withLock(lock),
              Effect.forkChild
            )
            yield* Deferred.await(inside)
            assert.isTrue(Option.isNone(yield* Lock.withLockIfAvailable(Effect.void, lock)))
            yield* Deferred.succeed(goOn, undefined)
            yield* Fiber.join(first)
          }).pipe(Lock.withLock(yield* freshName("other")))
        })
      )

      it.effect("spans everything below withOwner", () =>
        Effect.gen(function* () {
          const lock = yield* freshName()
          yield* Effect.gen(function* () {
            yield* Lock.scoped(lock)
            const fiber = yield* Lock.holdCount(lock).pipe(Lock.withLock(lock), Effect.scoped, Effect.forkChild)
            assert.strictEqual(yield* Fiber.join(fiber), 2)
            const stranger = Lock.withOwner(Lock.withLockIfAvailable(Effect.void, lock))
            assert.isTrue(Option.isNone(yield* stranger))
          }).pipe(Effect.scoped, Lock.withOwner)
        })
      )

      it.effect("wakes a fiber that waits already when its owner gets the lock", () =>
        Effect.gen(function* () {
          const lock = yield* freshName()
          const other = yield* holdElsewhere(lock)
          const both = yield* Effect.forkChild(
            Effect.gen(function* () {
              const scope = yield* Effect.scope
              const acquire = Effect.provideService(Lock.scoped(lock), Scope.Scope, scope)
              return yield* Effect.all([acquire, acquire, acquire], { concurrency: "unbounded" })
            }).pipe(Effect.scoped, Lock.withOwner)
          )
          yield* pass(Duration.millis(50))
          yield* other.letGo
          const holdings = yield* succeeded(both)
          assert.strictEqual(new Set(holdings.map((holding) => holding.owner)).size, 1)
          assert.isFalse(yield* Lock.isLocked(lock))
        })
      )

      it.effect("never lowers the deadline, and an inner exit never frees the outer hold", () =>
        Effect.gen(function* () {
          const lock = yield* freshName()
          yield* Effect.gen(function* () {
            const { remaining } = yield* Lock.scoped(lock, { leaseTime: "1 hour" })
            const before = yield* remaining
            yield* Lock.withLock(Effect.void, lock, { leaseTime: 200 })
            yield* Lock.withLock(Effect.void, lock)
            const after = yield* remaining
            assert.isAbove(Duration.toMillis(after), Duration.toMillis(before) - 10_000)
            const inRedis = Option.getOrThrow(yield* Lock.remainingTime(lock))
            assert.isAbove(Duration.toMillis(inRedis), 3_590_000 - 10_000)
          }).pipe(Effect.scoped)
        })
      )
    })

    suite("asking without waiting", (it) => {
      it.effect("gives the lock, or nothing", () =>
        Effect.gen(function* () {
          const lock = yield* freshName()
          yield* Effect.scoped(
            Effect.gen(function* () {
              assert.isTrue(Option.isSome(yield* Lock.tryScoped(lock)))
              assert.isTrue(Option.isNone(yield* elsewhere(Effect.scoped(Lock.tryScoped(lock)))))
              assert.isTrue(Option.isNone(yield* elsewhere(Lock.withLockIfAvailable(Effect.void, lock))))
            })
          )
          assert.deepStrictEqual(yield* Lock.withLockIfAvailable(Effect.succeed(7), lock), Option.some(7))
          assert.isFalse(yield* Lock.isLocked(lock))
        })
      )
    })

    suite("waiting", (it) => {
      it.effect("ends with LockTimeout after waitTime, and says who holds the lock", () =>
        Effect.gen(function* () {
          const lock = yield* freshName()
          const other = yield* holdElsewhere(lock)
          const fiber = yield* Lock.withLock(Effect.void, lock, { waitTime: 300 }).pipe(Effect.forkChild)
          const error = failure(yield* outcome(fiber))
          assert.instanceOf(error, LockTimeout)
          assert.strictEqual(error.name, lock)
          assert.isAtLeast(Duration.toMillis(error.waited), 300)
          assert.strictEqual(error.holder?.owner, other.holding.owner)
          assert.include(error.message, other.holding.owner)
          yield* other.letGo
          assert.isFalse(yield* Lock.isLocked(lock))
        })
      )

      it.effect("asks once with waitTime zero", () =>
        Effect.gen(function* () {
          const lock = yield* freshName()
          assert.strictEqual(yield* Lock.withLock(Effect.succeed(1), lock, { waitTime: 0 }), 1)
          const other = yield* holdElsewhere(lock)
          const error = yield* Effect.flip(Lock.withLock(Effect.void, lock, { waitTime: 0 }))
          assert.strictEqual(error._tag, "LockTimeout")
          yield* other.letGo
        })
      )

      it.effect("times out in the line, too", () =>
        Effect.gen(function* () {
          const lock = yield* freshName()
          yield* Effect.gen(function* () {
            const waiters = yield* Effect.forEach([1, 2, 3], () =>
              Lock.withOwner(Lock.withLock(Effect.void, lock, { waitTime: 100 })).pipe(
                Effect.forkDetach({ startImmediately: true })
              )
            )
            const { owner } = yield* Lock.holding(lock)
            for (const waiter of waiters) {
              const error = failure(yield* outcome(waiter))
              assert.strictEqual((error as LockTimeout).holder?.owner, owner)
            }
          }).pipe(Lock.withLock(lock))
          assert.isFalse(yield* Lock.isLocked(lock))
        })
      )

      it.effect("can be interrupted, and the next in line gets its turn", () =>
        Effect.gen(function* () {
          const lock = yield* freshName()
          const other = yield* holdElsewhere(lock)
          const [first, second] = yield* Effect.forEach([1, 2], (n) =>
            Effect.succeed(n).pipe(Lock.withLock(lock), Effect.forkChild({ startImmediately: true }))
          )
          yield* pass(Duration.millis(50))
          yield* Fiber.interrupt(first!)
          yield* other.letGo
          assert.strictEqual(yield* succeeded(second!), 2)
          assert.isFalse(yield* Lock.isLocked(lock))
        })
      )
    })

    suite("a lease", (it) => {
      it.effect("of a fixed length is never renewed: the section is interrupted with LockLost", () =>
        Effect.gen(function* () {
          const lock = yield* freshName()
          let interrupted = false
          const fiber = yield* Effect.never.pipe(
            Effect.onInterrupt(() => Effect.sync(() => (interrupted = true))),
            Lock.withLock(lock, { leaseTime: shortLease }),
            Effect.forkChild
          )
          const error = failure(yield* outcome(fiber))
          assert.instanceOf(error, LockLost)
          assert.strictEqual(error.reason, "Expired")
          assert.isTrue(interrupted)
          assert.strictEqual(yield* Lock.withLock(Effect.succeed("next"), lock), "next")
        })
      )

      it.effect("that runs out is seen by the first check", () =>
        Effect.gen(function* () {
          const lock = yield* freshName()
          yield* Effect.gen(function* () {
            const holding = yield* Lock.scoped(lock, { leaseTime: shortLease })
            assert.isTrue(yield* holding.isHeld)
            yield* holding.ensureHeld
            assert.isAbove(Duration.toMillis(yield* holding.remaining), 0)
            const lost = yield* Effect.forkChild(Effect.exit(holding.awaitLost), { startImmediately: true })
            yield* pass(shortLease)
            assert.isFalse(yield* holding.isHeld)
            assert.strictEqual(Duration.toMillis(yield* holding.remaining), 0)
            const error = yield* Effect.flip(holding.ensureHeld)
            assert.strictEqual(error.reason, "Expired")
            assert.strictEqual(failure(yield* Fiber.join(lost)), error)
            assert.strictEqual(yield* Effect.flip(holding.release), error)
          }).pipe(Effect.scoped)
        })
      )

      it.effect("without a length is renewed by the watchdog for as long as it is held", () =>
        Effect.gen(function* () {
          const lock = yield* freshName()
          yield* Effect.gen(function* () {
            const holding = yield* Lock.holding(lock)
            for (let i = 0; i < 8; i++) {
              yield* pass(Duration.times(watchdogLease, 0.33))
              yield* holding.ensureHeld
              assert.isTrue(Option.isSome(yield* elsewhere(Lock.remainingTime(lock))))
            }
            assert.isTrue(Option.isNone(yield* elsewhere(Lock.withLockIfAvailable(Effect.void, lock))))
          }).pipe(Lock.withLock(lock))
          assert.isFalse(yield* Lock.isLocked(lock))
        })
      )

      it.effect("is renewed from a fixed outer hold's side only while an inner hold wants it", () =>
        Effect.gen(function* () {
          const lock = yield* freshName()
          yield* Effect.gen(function* () {
            const outer = yield* Lock.scoped(lock, { leaseTime: shortLease })
            yield* Lock.withLock(pass(Duration.times(watchdogLease, 1.5)), lock)
            yield* outer.ensureHeld
            yield* pass(Duration.times(watchdogLease, 1.1))
            assert.isFalse(yield* outer.isHeld)
          }).pipe(Effect.scoped)
        })
      )

      it.effect("can be renewed by hand, and is never shortened", () =>
        Effect.gen(function* () {
          const lock = yield* freshName()
          yield* Effect.gen(function* () {
            const holding = yield* Lock.scoped(lock, { leaseTime: "10 seconds" })
            yield* holding.renew("1 hour")
            assert.isAbove(Duration.toMinutes(yield* holding.remaining), 58)
            yield* holding.renew("1 second")
            assert.isAbove(Duration.toMinutes(yield* holding.remaining), 58)
            assert.isAbove(Duration.toMinutes(Option.getOrThrow(yield* Lock.remainingTime(lock))), 58)
            const error = yield* Effect.flip(holding.renew(0))
            assert.strictEqual(error._tag, "InvalidLockOptions")
          }).pipe(Effect.scoped)
        })
      )
    })

    suite("releasing", (it) => {
      it.effect("early is final and can be repeated", () =>
        Effect.gen(function* () {
          const lock = yield* freshName()
          yield* Effect.gen(function* () {
            const holding = yield* Lock.scoped(lock)
            yield* holding.release
            assert.isFalse(yield* Lock.isLocked(lock))
            assert.isFalse(yield* holding.isHeld)
            yield* holding.release
            assert.strictEqual((yield* Effect.flip(holding.ensureHeld))._tag, "LockLost")
            // what somebody else holds by then is left alone when the scope closes
            const other = yield* holdElsewhere(lock)
            yield* holding.release
            yield* other.holding.ensureHeld
            yield* other.letGo
          }).pipe(Effect.scoped)
        })
      )

      it.effect("by force frees the lock, and its section fails with LockLost even if it succeeded", () =>
        Effect.gen(function* () {
          const lock = yield* freshName()
          assert.isFalse(yield* Lock.forceRelease(lock))
          const section = yield* Effect.forkChild(
            Effect.uninterruptible(
              Effect.gen(function* () {
                assert.isTrue(yield* elsewhere(Lock.forceRelease(lock)))
                return "done"
              })
            ).pipe(Lock.withLock(lock))
          )
          const error = failure(yield* outcome(section))
          assert.instanceOf(error, LockLost)
          assert.strictEqual(error.reason, "NotOwner")
          assert.isFalse(yield* Lock.isLocked(lock))
        })
      )

      it.effect("by force interrupts a section of the same client at once, of another with its next renewal", () =>
        Effect.gen(function* () {
          const lock = yield* freshName()
          for (const who of [<A, E, R>(self: Effect.Effect<A, E, R>) => self, elsewhere]) {
            const inside = yield* Deferred.make<void>()
            const section = yield* Effect.andThen(Deferred.succeed(inside, undefined), Effect.never).pipe(
              Lock.withLock(lock),
              Effect.forkChild
            )
            yield* Deferred.await(inside)
            yield* who(Lock.forceRelease(lock)) as Effect.Effect<boolean>
            const error = failure(yield* outcome(section))
            assert.strictEqual((error as LockLost).reason, "NotOwner")
          }
        })
      )

      it.effect("lets the section's own failure win over the loss", () =>
        Effect.gen(function* () {
          const lock = yield* freshName()
          const error = yield* Effect.andThen(elsewhere(Lock.forceRelease(lock)), Effect.fail("mine")).pipe(
            Lock.withLock(lock),
            Effect.flip
          )
          assert.strictEqual(error, "mine")
        })
      )
    })

    suite("bad input", (it) => {
      it.effect("fails with a typed error", () =>
        Effect.gen(function* () {
          for (const lock of ["", "x".repeat(1025), "é".repeat(513), "a\0b"]) {
            for (const use of [
              Lock.withLock(Effect.void, lock),
              Effect.scoped(Lock.tryScoped(lock)),
              Lock.isLocked(lock),
              Lock.forceRelease(lock)
            ]) {
              assert.instanceOf(yield* Effect.flip(use as Effect.Effect<unknown, unknown>), InvalidLockName)
            }
          }
          const lock = yield* freshName()
          const bad: ReadonlyArray<Lock.AcquireOptions> = [
            { waitTime: -1 },
            { waitTime: Number.NaN },
            { waitTime: 2 ** 53 + 2 },
            { waitTime: "soon" as "1 second" },
            { leaseTime: 0 },
            { leaseTime: -1 },
            { leaseTime: Number.NaN },
            { leaseTime: Number.POSITIVE_INFINITY },
            { leaseTime: "Infinity" },
            { leaseTime: 2 ** 53 + 2 }
          ]
          for (const options of bad) {
            const error = yield* Effect.flip(Lock.withLock(Effect.void, Lock.make(lock, options)))
            assert.instanceOf(error, InvalidLockOptions, JSON.stringify(options))
            assert.instanceOf(yield* Effect.flip(Lock.withLock(Effect.void, lock, options)), InvalidLockOptions)
          }
          assert.isFalse(yield* Lock.isLocked(lock))
        })
      )

      it.effect("that is another type under the lock's key fails with LockStoreError", () =>
        Effect.gen(function* () {
          const lock = yield* freshName()
          yield* Lock.withLock(Effect.void, lock)
          const string = `redisson_lock_token:{${lock}}`
          const error = yield* Effect.flip(Lock.withLock(Effect.void, string))
          assert.strictEqual(error._tag === "LockStoreError" ? error.reason : error._tag, "WrongType")
          assert.include(error.message, string)
        })
      )
    })

    suite("looking", (it) => {
      it.effect("at all locks finds those that are held and match", () =>
        Effect.gen(function* () {
          const prefix = yield* freshName("list")
          const listed = Stream.runCollect(Stream.map(Lock.list(`${prefix}:*`), (lock) => lock.name))
          assert.deepStrictEqual(yield* listed, [])
          const found = yield* listed.pipe(Lock.withLock(`${prefix}:a`), Lock.withLock(`${prefix}:b`))
          assert.deepStrictEqual(found.toSorted(), [`${prefix}:a`, `${prefix}:b`])
        })
      )

      it.effect("for a holding outside of a section fails with NotLockOwner", () =>
        Effect.gen(function* () {
          const lock = yield* freshName()
          assert.strictEqual((yield* Effect.flip(Lock.holding(lock)))._tag, "NotLockOwner")
          assert.isFalse(yield* Lock.isHeldByCurrentOwner(lock))
          assert.deepStrictEqual(yield* Lock.remainingTime(lock), Option.none())
        })
      )

      it.effect("through a key prefix, or a lock bound to a service", () =>
        Effect.gen(function* () {
          const lock = yield* freshName()
          const service = yield* RedisLock.RedisLock
          const prefixed = clientsOf({ ...options, keyPrefix: "app[1]:" })
          yield* Effect.gen(function* () {
            assert.isTrue(yield* Lock.isLocked(lock))
            const names = yield* Stream.runCollect(Stream.map(Lock.list(`${lock}*`), ({ name }) => name))
            assert.deepStrictEqual(names, [lock])
            const bound = Lock.provide(Lock.make(lock), service)
            assert.isFalse(yield* Lock.isLocked(bound))
            assert.isTrue(Result.isSuccess(yield* Effect.result(Lock.withLock(Effect.void, bound))))
            assert.isTrue(yield* Lock.isLocked(Lock.provide(Lock.make(`app[1]:${lock}`), service)))
          }).pipe(Lock.withLock(lock), Effect.provide(Layer.fresh(prefixed)))
        })
      )
    })
  })
}
