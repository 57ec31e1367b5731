/**
 * How long a request for several permits, or for one, can be overtaken, in virtual time.
 */
import { assert, describe } from "@effect/vitest"
import { Duration, Effect, Fiber } from "effect"
import { PermitSemaphore, RedisLock, Semaphore } from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { clientOf, memoryStore } from "../kit/testStore.ts"
import { test } from "../kit/test.ts"

const pool = {
  Semaphore: Semaphore.make("pool", { permits: 2 }),
  PermitSemaphore: PermitSemaphore.make("pool", { permits: 2 })
}

const kinds = {
  Semaphore: (permits: number) => Semaphore.withPermits(pool.Semaphore, permits),
  PermitSemaphore: (permits: number) => PermitSemaphore.withPermits(pool.PermitSemaphore, permits)
}

/** Clients of one store in memory. */
const twoClients = Effect.gen(function* () {
  const client = clientOf({ store: yield* memoryStore(0) }, { fallbackInterval: "1 second" })
  return [yield* client, yield* client] as const
})

const nowMillis = Effect.clockWith((clock) => clock.currentTimeMillis)

for (const [kind, withPermits] of Object.entries(kinds)) {
  describe(`a ${kind} of two permits`, () => {
    for (const isOwn of [true, false]) {
      const [its, whose] = [isOwn ? "its own" : "another", isOwn ? "of its own process" : "of another process"]
      // a semaphore whose permits have no ids does not know how long it has to wait for all of them
      for (const [seconds, most] of kind === "Semaphore"
        ? ([
            [3, 15],
            [15, 80]
          ] as const)
        : ([
            [3, 15],
            [40, 200]
          ] as const)) {
        test(`Somebody who wants both gets them though two fibers of ${its} process go on taking one each for ${seconds} seconds`, function* () {
          const [mine, others] = yield* twoClients
          const section = Effect.sleep(seconds * 1000).pipe(withPermits(1))
          const loop = Effect.forever(section).pipe(Effect.provideService(RedisLock.RedisLock, isOwn ? mine : others))
          const fibers = [yield* Effect.forkChild(loop)]
          yield* TestClock.adjust(seconds * 500)
          fibers.push(yield* Effect.forkChild(loop))
          yield* TestClock.adjust("100 millis")
          const both = yield* nowMillis.pipe(
            withPermits(2),
            Effect.provideService(RedisLock.RedisLock, mine),
            Effect.forkChild
          )
          const startedAt = yield* nowMillis
          for (let i = 0; i < 3000 && both.pollUnsafe() === undefined; i++) yield* TestClock.adjust("100 millis")
          const waited = Duration.millis((yield* Fiber.join(both)) - startedAt)
          assert.isAtMost(Duration.toSeconds(waited), most)
          for (const fiber of fibers) yield* Fiber.interrupt(fiber)
        })
      }

      /** The longest time without a section, and the number of sections in ten minutes, of four fibers that take one permit each while a fiber wants several. */
      const beside = Effect.fnUntraced(function* (
        wanted: number,
        before: Effect.Effect<unknown, unknown, RedisLock.RedisLock>
      ) {
        const [mine, others] = yield* twoClients
        yield* Effect.provideService(before, RedisLock.RedisLock, mine)
        let sections = 0
        let last = yield* nowMillis
        let longest = 0
        const section = Effect.gen(function* () {
          const now = yield* nowMillis
          longest = Math.max(longest, now - last)
          last = now
          sections++
          yield* Effect.sleep("500 millis")
        }).pipe(withPermits(1))
        const loop = Effect.forever(section).pipe(Effect.provideService(RedisLock.RedisLock, isOwn ? mine : others))
        const greedy = yield* Effect.void.pipe(
          withPermits(wanted),
          Effect.provideService(RedisLock.RedisLock, mine),
          Effect.forkChild
        )
        const fibers = [greedy, ...(yield* Effect.forEach([1, 2, 3, 4], () => Effect.forkChild(loop)))]
        for (let i = 0; i < 6000; i++) yield* TestClock.adjust("100 millis")
        for (const fiber of fibers) yield* Fiber.interrupt(fiber)
        return { sections, longest }
      }, Effect.scoped)

      test(`A request for more permits than there are holds up no other fiber ${whose}`, function* () {
        const { longest, sections } = yield* beside(3, Effect.void)
        // one command at the fallback interval may come between
        assert.isAtMost(longest, 2000)
        assert.isAtLeast(sections, 2000)
      })

      if (kind === "Semaphore") {
        test(`A request for permits that others have taken for good holds up other fibers ${whose} for 16 seconds at a time, and for less than half of the time`, function* () {
          const { longest, sections } = yield* beside(2, Semaphore.acquire(pool.Semaphore, 1))
          assert.isAtMost(longest, 18_000)
          assert.isAtLeast(sections, 600)
        })
      }
    }
  })
}

test("Somebody who wants more permits than a Semaphore had gets them once it has more, though others of the process go on taking one each", function* () {
  const client = yield* clientOf({ store: yield* memoryStore(0) }, { fallbackInterval: "5 seconds" })
  yield* Effect.gen(function* () {
    const loop = Effect.forever(Effect.sleep(500).pipe(kinds.Semaphore(1)))
    for (let fiber = 0; fiber < 3; fiber++) {
      yield* Effect.forkScoped(loop)
      yield* TestClock.adjust(167)
    }
    const many = yield* Effect.forkScoped(Effect.void.pipe(kinds.Semaphore(5)))
    yield* TestClock.adjust("4 seconds")
    yield* Semaphore.addPermits("pool", 4)
    yield* TestClock.adjust("5 seconds")
    assert.isDefined(many.pollUnsafe())
  }).pipe(Effect.provideService(RedisLock.RedisLock, client))
})
