/**
 * What read-write locks add: readers together, writers alone.
 */
import { assert } from "@effect/vitest"
import { Deferred, Duration, Effect, Fiber, Option } from "effect"
import { Lock, LockReentered, LockStore, ReadWriteLock } from "effect-redis-lock"
import type { Contract } from "./contract.ts"
import { background } from "../../kit/background.ts"
import { runOperation } from "../../kit/storeOperations.ts"

export const sharing = ({
  denials,
  elsewhere,
  freshName,
  hold,
  holdElsewhere,
  isQuorum,
  pass,
  shortLease,
  succeeded,
  suite,
  typeOf,
  untilDenied,
  virtual
}: Contract): void => {
  const fresh = (options?: ReadWriteLock.ReadWriteOptions) =>
    Effect.sync(() => ReadWriteLock.make(freshName(), options))
  const can = <E>(lock: Lock.Lock<never, E> | Lock.Lock<any, E>) =>
    Effect.map(Lock.withLockIfAvailable(Effect.void, lock), Option.isSome)
  /** What is woken needs no time to pass. */
  const atOnce = <A, E>(fiber: Fiber.Fiber<A, E>) => (virtual ? Fiber.join(fiber) : succeeded(fiber))
  suite("readers and writers", (test) => {
    test("Readers share a lock, in one client and across clients, and keep writers out", function* () {
      const { readLock, writeLock } = yield* fresh()
      const first = yield* hold(readLock)
      const second = yield* hold(readLock)
      const third = yield* holdElsewhere(readLock)
      assert.isTrue(yield* can(readLock))
      assert.isFalse(yield* can(writeLock))
      assert.isFalse(yield* elsewhere(can(writeLock)))
      const state = yield* Lock.inspect(readLock)
      assert.deepStrictEqual(
        state.holders.map(({ owner }) => owner).toSorted(),
        [first, second, third].map(({ holding }) => holding.owner).toSorted()
      )
      assert.isTrue(state.holders.every(({ mode }) => mode === "read"))
      for (const reader of [first, third]) {
        yield* reader.letGo
        assert.isTrue(yield* Lock.isLocked(readLock))
        assert.isFalse(yield* can(writeLock))
      }
      yield* second.letGo
      assert.isTrue(yield* can(writeLock))
    })

    test("A writer keeps readers and writers out, everywhere", function* () {
      const { readLock, writeLock } = yield* fresh()
      const writer = yield* hold(writeLock)
      for (const lock of [readLock, writeLock]) {
        assert.isFalse(yield* can(lock))
        assert.isFalse(yield* elsewhere(can(lock)))
      }
      yield* writer.letGo
      for (const lock of [readLock, writeLock]) assert.isTrue(yield* can(lock))
    })

    test("Readers that wait for a writer are let in together when it ends", function* () {
      const { readLock, writeLock } = yield* fresh()
      const writer = yield* holdElsewhere(writeLock)
      let inside = 0
      const all = yield* Deferred.make<void>()
      const section = Effect.suspend(() =>
        ++inside === 6 ? Effect.andThen(Deferred.succeed(all, undefined), Effect.void) : Deferred.await(all)
      ).pipe(Lock.withLock(readLock))
      const readers = yield* untilDenied(
        readLock,
        2,
        background(
          Effect.all(
            [section, section, section, elsewhere(Effect.all([section, section, section], { concurrency: 3 }))],
            { concurrency: "unbounded" }
          )
        )
      )
      yield* pass(Duration.millis(50))
      assert.strictEqual(inside, 0)
      yield* writer.letGo
      yield* atOnce(readers)
    })

    test("A writer may read, and each side sees its own holds", function* () {
      const { readLock, writeLock } = yield* fresh()
      yield* Effect.gen(function* () {
        const write = yield* Lock.currentHolding(writeLock)
        assert.isFalse(yield* Lock.isLocked(readLock))
        assert.isFalse(yield* Lock.forceRelease(readLock))
        yield* Effect.gen(function* () {
          const read = yield* Lock.currentHolding(readLock)
          assert.isTrue(yield* Lock.isLocked(readLock))
          assert.notStrictEqual(read.owner, write.owner)
          assert.strictEqual(read.token, write.token)
          assert.strictEqual(yield* Lock.holdCount(readLock), 1)
          assert.strictEqual(yield* Lock.holdCount(writeLock), 1)
          assert.strictEqual(yield* Lock.withLock(Lock.holdCount(readLock), readLock), 2)
          assert.strictEqual(yield* Lock.withLock(Lock.holdCount(writeLock), writeLock), 2)
          const { holders } = yield* Lock.inspect(readLock)
          assert.deepStrictEqual(holders.map(({ mode, owner }) => [mode, owner]).toSorted(), [
            ["read", read.owner],
            ["write", write.owner]
          ])
          assert.isFalse(yield* Lock.withOwner(can(readLock)))
          assert.isFalse(yield* elsewhere(can(readLock)))
        }).pipe(Lock.withLock(readLock), Effect.timeout("1 hour"))
        assert.isFalse(yield* Lock.isLocked(readLock))
        assert.isTrue(yield* Lock.isLocked(writeLock))
      }).pipe(Lock.withLock(writeLock))
      assert.isFalse(yield* Lock.isLocked(writeLock))
    })

    test("A writer that goes on reading lets other readers in at once, and no writer", function* () {
      const { readLock, writeLock } = yield* fresh()
      yield* Effect.gen(function* () {
        const write = yield* Lock.scoped(writeLock)
        const read = yield* Lock.scoped(readLock)
        const readers = yield* untilDenied(
          readLock,
          1,
          background(
            Effect.all([Lock.withOwner(Lock.withLock(Effect.void, readLock)), elsewhere(can(readLock))], {
              concurrency: "unbounded"
            })
          )
        )
        const waiting = yield* untilDenied(readLock, 1, background(elsewhere(Lock.withLock(Effect.void, readLock))))
        yield* pass(Duration.millis(50))
        assert.isUndefined(waiting.pollUnsafe())
        yield* write.release
        yield* atOnce(waiting)
        yield* atOnce(readers)
        yield* read.ensureHeld
        assert.isFalse(yield* Lock.isLocked(writeLock))
        assert.isFalse(yield* elsewhere(can(writeLock)))
      }).pipe(Effect.scoped)
      assert.isTrue(yield* can(writeLock))
    })

    test("A writer that goes on reading lets other readers in at once, though a writer of its client waits", function* () {
      const { readLock, writeLock } = yield* fresh()
      const next = yield* Effect.gen(function* () {
        const write = yield* Lock.scoped(writeLock)
        yield* Lock.scoped(readLock)
        const waiting = yield* untilDenied(readLock, 1, background(elsewhere(Lock.withLock(Effect.void, readLock))))
        const next = yield* background(Lock.withOwner(Lock.withLock(Effect.void, writeLock)))
        yield* pass(Duration.millis(50))
        yield* write.release
        yield* atOnce(waiting)
        assert.isUndefined(next.pollUnsafe())
        return next
      }).pipe(Effect.scoped)
      yield* succeeded(next)
    })

    test("A reader that has waited longer than a writer enters before it when a holder in Java goes on reading", function* () {
      const { readLock, writeLock } = yield* fresh()
      const store = yield* LockStore.LockStore
      const { name } = readLock
      const java = `${crypto.randomUUID()}:1`
      const of = (what: string) => `${what}:{${name}}`
      const [token, readers, places] = [
        of("redisson_lock_token"),
        of("effect_redis_lock_readers"),
        of("effect_redis_lock_places")
      ]
      const releaseKeys = [name, of("redisson_rwlock"), `{${name}}`, readers]
      const hold = `{${name}}:${java}:rwlock_timeout:1`
      yield* runOperation(
        store,
        "write_lock/acquire",
        [name, token, readers, places],
        [java, 3_600_000, 3_600_000, "", "", 0]
      )
      yield* runOperation(
        store,
        "read_lock/acquire",
        [name, token, hold, readers, places],
        [java, 3_600_000, java, 7, "", ""]
      )
      const reader = yield* untilDenied(
        readLock,
        1,
        background(elsewhere(Lock.withLock(Effect.void, readLock, { waitTime: "10 seconds" })))
      )
      yield* pass(Duration.millis(50))
      const writer = yield* untilDenied(writeLock, 1, background(Lock.withLock(Effect.void, writeLock)))
      // Redisson sends no message
      yield* runOperation(store, "write_lock/release", [...releaseKeys, places], [java, "", "", ""])
      yield* succeeded(reader)
      assert.isUndefined(writer.pollUnsafe())
      yield* runOperation(store, "read_lock/release", releaseKeys, [java, store.publish])
      yield* succeeded(writer)
    })

    test("A reader that asks to write is refused at once, and keeps reading", function* () {
      const { readLock, writeLock } = yield* fresh()
      yield* Effect.gen(function* () {
        for (const upgrade of [
          Lock.withLock(Effect.void, writeLock),
          Lock.withLock(Effect.void, writeLock, { waitTime: 0 }),
          Lock.withLockIfAvailable(Effect.void, writeLock),
          Effect.scoped(Lock.scoped(writeLock)),
          Effect.scoped(Lock.tryScoped(writeLock)),
          Effect.timeout(Effect.timeout(Lock.withLock(Effect.void, writeLock), "1 hour"), "1 hour"),
          Effect.flatMap(Effect.forkChild(Lock.withLock(Effect.void, writeLock)), Fiber.join)
        ]) {
          const error = yield* Effect.flip(upgrade as Effect.Effect<unknown, Effect.Error<typeof upgrade>>)
          assert.instanceOf(error, LockReentered)
          assert.strictEqual(error.attempt, "upgrade")
        }
        yield* (yield* Lock.currentHolding(readLock)).ensureHeld
        assert.isTrue(yield* elsewhere(can(readLock)))
      }).pipe(Lock.withLock(readLock))
      assert.isTrue(yield* can(writeLock))
    })

    for (const where of ["in another client", "in the same client"] as const) {
      test(`A waiting writer ${where} holds off new readers, but no re-entry`, function* () {
        const { readLock, writeLock } = yield* fresh()
        const there = (where === "in another client" ? elsewhere : <A>(self: A) => self) as typeof elsewhere
        yield* Effect.gen(function* () {
          const order: Array<string> = []
          const reading = yield* Lock.scoped(readLock)
          const before = denials(writeLock.name)
          const writer = yield* Effect.sync(() => order.push("writer")).pipe(
            Lock.withLock(writeLock),
            Lock.withOwner,
            there,
            background
          )
          while (denials(writeLock.name) === before) yield* pass(Duration.millis(5))
          assert.isFalse(yield* Lock.withOwner(can(readLock)), "a reader of this client")
          assert.isFalse(yield* elsewhere(can(readLock)), "a reader of another client")
          const denied = elsewhere(Lock.withLock(Effect.void, readLock, { waitTime: 0 }))
          assert.deepInclude(yield* Effect.flip(denied), { _tag: "LockTimeout", holder: undefined })
          assert.strictEqual(yield* Lock.withLock(Lock.holdCount(readLock), readLock), 2)
          // virtual time may stand still: places of the same microsecond have no order
          yield* pass(Duration.millis(5))
          const reader = yield* Effect.sync(() => order.push("reader")).pipe(
            Lock.withLock(readLock),
            elsewhere,
            background
          )
          yield* pass(Duration.millis(50))
          yield* reading.release
          yield* succeeded(writer)
          yield* succeeded(reader)
          assert.deepStrictEqual(order, ["writer", "reader"])
        }).pipe(Effect.scoped)
      })

      for (const how of ["gives up", "is interrupted"] as const) {
        test(`A writer ${where} that ${how} lets readers in at once`, function* () {
          const { readLock, writeLock } = yield* fresh()
          const there = (where === "in another client" ? elsewhere : <A>(self: A) => self) as typeof elsewhere
          const reading = yield* hold(readLock)
          const writer = yield* untilDenied(
            writeLock,
            1,
            Lock.withLock(Effect.void, writeLock, how === "gives up" ? { waitTime: 300 } : {}).pipe(
              Effect.exit,
              there,
              background
            )
          )
          const asking = background(elsewhere(Lock.withLock(Effect.succeed(1), readLock)))
          // a writer that gives up may have done so before the reader has asked
          const reader = yield* how === "gives up" ? asking : untilDenied(readLock, 1, asking)
          if (how === "gives up") {
            yield* succeeded(writer)
          } else {
            yield* pass(Duration.millis(50))
            assert.isUndefined(reader.pollUnsafe())
            yield* Fiber.interrupt(writer)
          }
          assert.strictEqual(yield* atOnce(reader), 1)
          yield* reading.letGo
        })
      }
    }

    test("A writer may read though other writers wait", function* () {
      const { readLock, writeLock } = yield* fresh()
      yield* Effect.gen(function* () {
        const writing = yield* Lock.scoped(writeLock)
        const waiting = yield* untilDenied(writeLock, 1, background(elsewhere(Lock.withLock(Effect.void, writeLock))))
        assert.strictEqual(yield* Lock.withLock(Effect.succeed(1), readLock), 1)
        yield* writing.release
        yield* succeeded(waiting)
      }).pipe(Effect.scoped)
    })

    test("Readers enter while a writer waits if readers are preferred", function* () {
      const { readLock, writeLock } = yield* fresh({ preference: "reader" })
      const reading = yield* hold(readLock)
      const writer = yield* untilDenied(writeLock, 1, background(elsewhere(Lock.withLock(Effect.void, writeLock))))
      assert.isTrue(yield* can(readLock))
      assert.isTrue(yield* elsewhere(can(readLock)))
      yield* reading.letGo
      yield* succeeded(writer)
    })

    test("The token of readers is that of the last writer", function* () {
      const { readLock, writeLock } = yield* fresh()
      const token = (lock: typeof writeLock) =>
        Effect.map(Lock.currentHolding(lock), (holding) => holding.token).pipe(Lock.withLock(lock))
      // never zero, or a resource that compares would let a stale reader pass
      const unwritten = yield* token(readLock)
      assert.isTrue(unwritten > 0n)
      const written = yield* token(writeLock)
      assert.isTrue(written > unwritten)
      const read = yield* token(readLock)
      // a server that has granted it late may know a higher one
      if (isQuorum) assert.isTrue(read >= written)
      else assert.strictEqual(read, written)
      assert.isTrue((yield* elsewhere(token(writeLock))) > read)
    })

    test("Readers whose lease has run out do not keep a writer out, and other readers keep theirs", function* () {
      const { readLock, writeLock } = yield* fresh()
      yield* Effect.gen(function* () {
        const store = yield* LockStore.LockStore
        const { name } = readLock
        // a process that dies gives nothing back
        const dead = `${crypto.randomUUID()}:1`
        yield* runOperation(
          store,
          "read_lock/acquire",
          [
            name,
            `redisson_lock_token:{${name}}`,
            `{${name}}:${dead}:rwlock_timeout:1`,
            `effect_redis_lock_readers:{${name}}`,
            `effect_redis_lock_places:{${name}}`
          ],
          [dead, Duration.toMillis(shortLease), "", "", "", ""]
        )
        yield* Lock.scoped(readLock, { leaseTime: shortLease })
        const other = yield* holdElsewhere(readLock)
        yield* other.holding.renew("1 hour")
        yield* pass(Duration.times(shortLease, 1.5))
        yield* other.holding.renew("2 hours")
        assert.isFalse(yield* Lock.withOwner(can(writeLock)))
        yield* other.letGo
        assert.isTrue(yield* Lock.withOwner(can(writeLock)))
      }).pipe(Effect.scoped)
    })

    test("A forced release of each side frees its own holders", function* () {
      const { readLock, writeLock } = yield* fresh()
      const readers = [yield* hold(readLock), yield* holdElsewhere(readLock)]
      assert.isFalse(yield* Lock.forceRelease(writeLock))
      assert.isTrue(yield* Lock.forceRelease(readLock))
      assert.isFalse(yield* readers[0]!.holding.isHeld)
      for (const { holding } of readers) {
        const key = `{${readLock.name}}:${holding.owner}:rwlock_timeout:1`
        assert.strictEqual(yield* typeOf(key), "none")
      }
      const writer = yield* hold(writeLock)
      yield* readers[0]!.letGo
      yield* readers[1]!.letGo
      yield* writer.holding.ensureHeld
      assert.isTrue(yield* Lock.isLocked(writeLock))
      assert.isFalse(yield* Lock.forceRelease(readLock))
      assert.isTrue(yield* Lock.forceRelease(writeLock))
      assert.isFalse(yield* writer.holding.isHeld)
      yield* writer.letGo
    })
  })

  suite("readers of whom some are freed by force", (test) => {
    test("A forced release from given readers leaves the others their holds, and keeps writers out until they end", function* () {
      const { readLock, writeLock } = yield* fresh()
      const [seen, other] = [yield* hold(readLock), yield* holdElsewhere(readLock)]
      assert.isTrue(yield* Lock.forceRelease(readLock, { owners: [seen.holding.owner] }))
      assert.isFalse(yield* seen.holding.isHeld)
      assert.isFalse(yield* Lock.forceRelease(readLock, { owners: [seen.holding.owner, "mode"] }))
      assert.strictEqual(yield* typeOf(`{${readLock.name}}:${seen.holding.owner}:rwlock_timeout:1`), "none")
      assert.isTrue(yield* other.holding.isHeld)
      assert.isFalse(yield* can(writeLock))
      yield* other.letGo
      assert.isTrue(yield* can(writeLock))
      yield* seen.letGo
    })
  })

  suite("holds of one reader", (test) => {
    test("A renewal of one hold of a reader serves the others as well", function* () {
      const { readLock, writeLock } = yield* fresh()
      yield* Effect.gen(function* () {
        const outer = yield* Lock.scoped(readLock, { leaseTime: shortLease })
        yield* Effect.gen(function* () {
          const inner = yield* Lock.scoped(readLock, { leaseTime: "1 hour" })
          yield* pass(Duration.times(shortLease, 1.5))
          yield* inner.renew("1 hour")
        }).pipe(Effect.scoped)
        yield* outer.ensureHeld
        assert.isFalse(yield* elsewhere(can(writeLock)))
      }).pipe(Effect.scoped)
      assert.isTrue(yield* elsewhere(can(writeLock)))
    })

    test("A reader's lease stays as long as the longest that one of its holds has asked for", function* () {
      const { readLock, writeLock } = yield* fresh()
      yield* Effect.gen(function* () {
        const outer = yield* Lock.scoped(readLock, { leaseTime: shortLease })
        yield* Lock.withLock(Effect.void, readLock, { leaseTime: "1 hour" })
        yield* pass(Duration.times(shortLease, 1.5))
        assert.isAbove(Duration.toMinutes(yield* outer.remaining), 50)
        assert.isAbove(Duration.toMinutes(Option.getOrThrow(yield* Lock.remainingTime(readLock))), 50)
        assert.isFalse(yield* elsewhere(can(writeLock)))
      }).pipe(Effect.scoped)
      assert.isTrue(yield* elsewhere(can(writeLock)))
    })

    test("The holds of a reader can end in any order", function* () {
      const { readLock, writeLock } = yield* fresh()
      yield* Effect.gen(function* () {
        const outer = yield* Lock.scoped(readLock, { leaseTime: shortLease })
        const inner = yield* Lock.scoped(readLock, { leaseTime: "1 hour" })
        yield* outer.release
        yield* pass(Duration.times(shortLease, 1.5))
        yield* inner.ensureHeld
        assert.isFalse(yield* elsewhere(can(writeLock)))
      }).pipe(Effect.scoped)
      assert.isTrue(yield* can(writeLock))
    })
  })
}
