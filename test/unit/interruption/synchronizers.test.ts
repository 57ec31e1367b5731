/**
 * Whatever operation an interruption hits, nothing of a semaphore or a latch stays behind: every permit is free again, no
 * marker is left, nobody waits.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { CountDownLatch, LockStore, PermitSemaphore, RedisLock, Semaphore } from "effect-redis-lock"
import { onRedis } from "../../kit/stores.ts"
import {
  assertIdle,
  elsewhere,
  holdElsewhere,
  repeatYield,
  sweepHandOver,
  testLeavesNothing,
  testsElsewhere
} from "./elsewhere.ts"
import { isWaiting, sweep } from "./sweep.ts"

const total = 5

type Body = Effect.Effect<unknown, unknown, RedisLock.RedisLock>

const kinds = {
  "a semaphore": (name: string) => {
    const semaphore = Semaphore.make(name, { permits: total })
    return {
      available: Semaphore.availablePermits(semaphore),
      section: (permits: number, body: Body): Body => Semaphore.withPermits(body, semaphore, permits),
      scenarios: {
        withPermits: Semaphore.withPermits(Effect.yieldNow, semaphore, 2),
        withPermitsIfAvailable: Semaphore.withPermitsIfAvailable(Effect.yieldNow, semaphore, 2),
        scoped: Effect.scoped(Effect.andThen(Semaphore.scoped(semaphore, 2), Effect.yieldNow)),
        "a section that fails": Semaphore.withPermits(Effect.fail("no"), semaphore, 2),
        "withPermits under a timeout": Effect.timeout(Semaphore.withPermits(Effect.yieldNow, semaphore, 2), "1 minute")
      } as Record<string, Body>
    }
  },
  "a permit semaphore": (name: string) => {
    const semaphore = PermitSemaphore.make(name, { permits: total })
    return {
      available: PermitSemaphore.availablePermits(semaphore),
      section: (permits: number, body: Body): Body => PermitSemaphore.withPermits(body, semaphore, permits),
      scenarios: {
        withPermits: PermitSemaphore.withPermits(Effect.yieldNow, semaphore, 2),
        withPermitIfAvailable: PermitSemaphore.withPermitIfAvailable(Effect.yieldNow, semaphore),
        "scoped, an early release and the scope's end": Effect.scoped(
          Effect.flatMap(PermitSemaphore.scoped(semaphore), (permit) => Effect.andThen(Effect.yieldNow, permit.release))
        ),
        tryScoped: Effect.scoped(Effect.andThen(PermitSemaphore.tryScoped(semaphore, { permits: 2 }), Effect.yieldNow)),
        "a section that fails": PermitSemaphore.withPermits(Effect.fail("no"), semaphore, 2),
        "withPermits under a timeout": Effect.timeout(
          PermitSemaphore.withPermits(Effect.yieldNow, semaphore, 2),
          "1 minute"
        )
      } as Record<string, Body>
    }
  }
}

const suite = <E>(name: string, store: Layer.Layer<LockStore.LockStore, E>) =>
  describe(`interruption on ${name}`, () => {
    for (const [kind, make] of Object.entries(kinds)) {
      it.layer(store, { excludeTestServices: true, concurrent: isWaiting(name) })(
        `of ${kind}, at every operation`,
        (it) => {
          const test = testsElsewhere(it)
          const assertFree = (available: Effect.Effect<number, unknown, RedisLock.RedisLock>, index: number) =>
            Effect.gen(function* () {
              yield* assertIdle(index)
              assert.strictEqual(yield* available, total, `permits are missing, or too many, after ${index}`)
            })

          for (const title of Object.keys(make("any").scenarios)) {
            test(`Interruption of ${title} leaves nothing behind: ${kind}`, function* () {
              const { available, scenarios } = make(`swept:${crypto.randomUUID()}`)
              const interruptions = yield* sweep({
                program: scenarios[title]!,
                check: (index) => assertFree(available, index)
              })
              assert.isAbove(interruptions, 10)
            })
          }

          test("Interrupting a waiter for permits while the holder gives back leaves nothing behind", function* () {
            const { available, section } = make(`swept:${crypto.randomUUID()}`)
            yield* sweepHandOver({
              hold: holdElsewhere((body) => section(total, body)),
              waiters: [section(3, Effect.yieldNow), section(1, Effect.yieldNow)],
              check: (index) => assertFree(available, index)
            })
          })
        }
      )
    }

    it.layer(store, { excludeTestServices: true, concurrent: isWaiting(name) })(
      "of a latch, at every operation",
      (it) => {
        const test = testsElsewhere(it)
        test("Interrupting a waiter for a latch while it is counted down leaves nothing behind", function* () {
          const latch = `swept:${crypto.randomUUID()}`
          yield* CountDownLatch.trySetCount(latch, 1)
          let index = 0
          const interruptions = yield* sweep({
            program: Effect.all(
              [
                CountDownLatch.await(latch),
                CountDownLatch.await(latch, { waitTime: "1 minute" }),
                Effect.suspend(() => Effect.andThen(repeatYield(index % 40), elsewhere(CountDownLatch.delete(latch))))
              ],
              { concurrency: "unbounded" }
            ),
            check: (at) =>
              Effect.gen(function* () {
                index = at
                yield* assertIdle(at)
                yield* CountDownLatch.trySetCount(latch, 1)
              })
          })
          assert.isAbove(interruptions, 50)
          yield* CountDownLatch.delete(latch)
        })
      }
    )
  })

suite("memory", LockStore.layerMemory)
suite("Redis", onRedis)

// of each semaphore that was swept on Redis, the counter
testLeavesNothing("Interrupted semaphores and latches leave no channel, and no key but the counters, on the server", {
  prefix: "swept",
  isLasting: (key) => key.startsWith("swept:"),
  valueOfLasting: String(total)
})
