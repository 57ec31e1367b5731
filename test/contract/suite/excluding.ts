/**
 * What a lock is for: one at a time, or readers together.
 */
import { assert } from "@effect/vitest"
import { Duration, Effect, Exit, Fiber, Ref } from "effect"
import { Lock, LockStore, type RedisLock } from "effect-redis-lock"
import type { Contract } from "./contract.ts"

export const excluding = ({
  untilDenied,
  kind,
  virtual,
  suite,
  isShared,
  freshName,
  freshLock,
  rival,
  elsewhere,
  pass,
  until,
  succeeded,
  holdElsewhere,
  make
}: Contract): void => {
  suite("a lock", (test) => {
    test("A lock is free, then held, then free again, and can be used again", function* () {
      const lock = yield* freshLock
      for (let i = 0; i < 2; i++) {
        assert.isFalse(yield* Lock.isLocked(lock))
        yield* Effect.gen(function* () {
          assert.isTrue(yield* Lock.isLocked(lock))
          assert.isTrue(yield* elsewhere(Lock.isLocked(lock)))
        }).pipe(Lock.withLock(lock))
      }
      assert.isFalse(yield* Lock.isLocked(lock))
    })

    test("withLock returns what the section returns, and fails with what it fails with", function* () {
      const lock = yield* freshLock
      assert.strictEqual(yield* Lock.withLock(Effect.succeed(1), lock), 1)
      assert.strictEqual(yield* Effect.fail("no").pipe(Lock.withLock(lock), Effect.flip), "no")
      const died = yield* Effect.die("bug").pipe(Lock.withLock(lock), Effect.exit)
      assert.isTrue(Exit.hasDies(died))
      assert.isFalse(yield* Lock.isLocked(lock))
    })

    if (!isShared) {
      test("A lock excludes the fibers of all clients from each other", function* () {
        const lock = yield* freshLock
        const counter = yield* Ref.make(0)
        let inside = 0
        const section = Effect.gen(function* () {
          assert.strictEqual(++inside, 1)
          const seen = yield* Ref.get(counter)
          yield* Effect.yieldNow
          yield* Ref.set(counter, seen + 1)
          inside--
        }).pipe(Lock.withLock(lock))
        const client = Effect.forEach(
          Array.from({ length: 6 }),
          () => Effect.forEach(Array.from({ length: 5 }), () => section),
          { concurrency: "unbounded", discard: true }
        )
        const all = Effect.all([client, elsewhere(client), elsewhere(client)], { concurrency: "unbounded" })
        yield* succeeded(yield* Effect.forkChild(all))
        assert.strictEqual(yield* Ref.get(counter), 90)
      })
    }

    test("A lock excludes other clients, and is handed over when it is released", function* () {
      const lock = yield* freshLock
      const other = yield* holdElsewhere(rival(lock))
      const mine = yield* Effect.succeed("in").pipe(Lock.withLock(lock), Effect.forkChild({ startImmediately: true }))
      yield* pass(Duration.millis(100))
      assert.isUndefined(mine.pollUnsafe())
      yield* other.letGo
      assert.strictEqual(yield* succeeded(mine), "in")
    })

    if (!isShared) {
      test("A lock lets the fibers of a client in first come, first served", function* () {
        const lock = yield* freshLock
        const order: Array<number> = []
        const other = yield* holdElsewhere(rival(lock))
        const fork = (i: number) =>
          Effect.sync(() => void order.push(i)).pipe(Lock.withLock(lock), Effect.forkChild({ startImmediately: true }))
        // once it is known that the lock is taken, the others stand behind the first as they come
        const fibers = [yield* untilDenied(lock, 1, fork(0))]
        for (const i of [1, 2, 3, 4]) fibers.push(yield* fork(i))
        yield* other.letGo
        for (const fiber of fibers) yield* succeeded(fiber)
        assert.deepStrictEqual(order, [0, 1, 2, 3, 4])
      })
    }

    // who asks by the clock cannot keep up where no time passes between two sections
    if (!isShared && !(kind.polls && virtual)) {
      test("A lock lets other clients in, though fibers of the holding client always wait", function* () {
        const lock = yield* freshLock
        const { handsOver } = yield* LockStore.LockStore
        const sections = { here: 0, there: 0 }
        // four fibers each, so that neither client need ever let the lock go
        const busy = (where: keyof typeof sections) => {
          const section = Effect.andThen(
            Effect.yieldNow,
            Effect.sync(() => sections[where]++)
          )
          return Effect.forEach([1, 2, 3, 4], () => Effect.forever(Lock.withLock(section, lock)), {
            concurrency: "unbounded"
          })
        }
        const here = yield* Effect.forkChild(busy("here"))
        const there = yield* Effect.forkChild(elsewhere(busy("there")))
        const least = () => Math.min(sections.here, sections.there)
        yield* until(Effect.sync(() => least() >= 20))
        // only a client that is handed the lock has a turn; one that polls, or merely hears of releases, gets in by chance
        if (handsOver && !kind.polls) assert.isBelow(Math.max(sections.here, sections.there), 50 * least())
        yield* Fiber.interruptAll([here, there])
      })
    }

    test("A lock takes any allowed name", function* () {
      const { slot } = yield* LockStore.LockStore
      const hasSlots = slot("a") !== slot("b")
      const names = [freshName("n"), freshName("n")]
      // the other keys of "a}…" are in the slot of "a", and by chance the lock could be, too
      const unique = names.find((name) => slot(`a}${name}`) !== slot("a")) ?? names[0]!
      const anywhere = [`{${unique}}:a`, `a{${unique}}`, `ü 锁 🔒 ${unique}`, unique.padEnd(1024, "x")]
      const untagged = [`a{${unique}`, `}${unique}{`, `{}${unique}`, `a}${unique}`]
      for (const name of hasSlots ? anywhere : [...anywhere, ...untagged]) {
        const lock = make(name)
        assert.isTrue(yield* Lock.isLocked(lock).pipe(Lock.withLock(lock)), name)
        assert.isFalse(yield* Lock.isLocked(lock), name)
      }
      for (const name of hasSlots ? untagged : []) {
        const lock = make(name)
        for (const use of [Lock.withLock(Effect.void, lock), Lock.isLocked(lock), Lock.forceRelease(lock)]) {
          const error: Error = yield* Effect.flip<unknown, Error, RedisLock.RedisLock>(use)
          assert.match(error.message, /hash tag.*different slots/, name)
        }
      }
    })
  })
}
