/**
 * Whatever operation an interruption hits, nothing of a semaphore or a latch stays behind: every permit is free again, no
 * marker is left, nobody waits.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { CountDownLatch, LockStore, PermitSemaphore, RedisLock, Semaphore } from "effect-redis-lock"
import type { LockClient } from "../../../packages/core/dist/internal/client/LockClient.js"
import { redisUrl } from "../../kit/server/redisUrl.ts"
import { onRedis } from "../../kit/stores.ts"
import { elsewhere, holdElsewhere, repeatYield, sweepHandOver } from "./elsewhere.ts"
import { isWaiting, sweep } from "./sweep.ts"
import { bare } from "../../kit/server/bareRedis.ts"
import { eventually, until } from "../../kit/eventually.ts"

const total = 5

/** Nobody of this client asks, waits, holds or is watched. */
const assertIdle = (index: number) =>
  Effect.gen(function* () {
    const client = (yield* RedisLock.RedisLock) as unknown as LockClient
    // closing would wait for a request that is counted and was never sent
    yield* until("nothing is under way", () => client.underWay === 0)
    assert.strictEqual(client.lines.size, 0, `a waiter is left after ${index}`)
    assert.strictEqual(client.watchdog.size, 0, `a holding is left after ${index}`)
  })

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
          const assertFree = (available: Effect.Effect<number, unknown, RedisLock.RedisLock>, index: number) =>
            Effect.gen(function* () {
              yield* assertIdle(index)
              assert.strictEqual(yield* available, total, `permits are missing, or too many, after ${index}`)
            })

          for (const title of Object.keys(make("any").scenarios)) {
            it.effect(`Interruption of ${title} leaves nothing behind: ${kind}`, () =>
              Effect.gen(function* () {
                const { available, scenarios } = make(`swept:${crypto.randomUUID()}`)
                const interruptions = yield* sweep({
                  program: scenarios[title]!,
                  check: (index) => assertFree(available, index)
                })
                assert.isAbove(interruptions, 10)
              }).pipe(elsewhere)
            )
          }

          it.effect("Interrupting a waiter for permits while the holder gives back leaves nothing behind", () =>
            Effect.gen(function* () {
              const { available, section } = make(`swept:${crypto.randomUUID()}`)
              yield* sweepHandOver({
                hold: holdElsewhere((body) => section(total, body)),
                waiters: [section(3, Effect.yieldNow), section(1, Effect.yieldNow)],
                check: (index) => assertFree(available, index)
              })
            }).pipe(elsewhere)
          )
        }
      )
    }

    it.layer(store, { excludeTestServices: true, concurrent: isWaiting(name) })(
      "of a latch, at every operation",
      (it) => {
        it.effect("Interrupting a waiter for a latch while it is counted down leaves nothing behind", () =>
          Effect.gen(function* () {
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
          }).pipe(elsewhere)
        )
      }
    )
  })

suite("memory", LockStore.layerMemory)
suite("Redis", onRedis)

it.live("Interrupted semaphores and latches leave no channel, and no key but the counters, on the server", () =>
  Effect.gen(function* () {
    const observer = yield* bare({ url: redisUrl })
    const channels = () => observer.pubsub("CHANNELS", "redisson_[sc]*{swept:*") as Promise<Array<string>>
    yield* eventually("no channel is left", channels, (left) => left.length === 0)
    // the time of the last turn of clients without places lives a tenth of a second longer than the last place
    const keys = yield* eventually(
      "no key but the counters is left",
      () => observer.keys("*swept:*"),
      (left) => left.every((key) => key.startsWith("swept:")),
      // a place that was left behind would live for a minute
      "20 seconds"
    )
    // of each semaphore that was swept on Redis, the counter
    for (const key of keys) assert.strictEqual(yield* Effect.promise(() => observer.get(key)), String(total))
  }).pipe(Effect.scoped)
)
