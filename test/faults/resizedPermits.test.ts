import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Option, Scope } from "effect"
import { PermitSemaphore } from "effect-redis-lock"
import type { Redis } from "ioredis"
import { client } from "../kit/clients.ts"
import { eventually, soon } from "../kit/eventually.ts"
import { onServer } from "../kit/server/onServer.ts"

const semaphore = "partner"

/** The permits that are held, at one moment of the server. */
const held = async (redis: Redis): Promise<ReadonlyArray<string>> =>
  (await redis.zrangeBuffer("{partner}:timeout", "0", "-1")).map((id) => id.toString("hex"))

describe("a permit semaphore that is made smaller while its permits are held", () => {
  it.live(
    "A semaphore of 5 that is set to 1 keeps its 4 holders, and admits nobody until the last of them is gone",
    onServer(({ redis, server }) =>
      Effect.gen(function* () {
        const { run } = yield* client(server)
        const other = yield* client(server)
        yield* run(PermitSemaphore.setPermits(semaphore, 5))
        const scope = yield* Effect.scope
        const permits = yield* Effect.forEach([1, 2, 3, 4], () =>
          run(Effect.provideService(PermitSemaphore.scoped(semaphore), Scope.Scope, scope))
        )
        yield* other.run(PermitSemaphore.setPermits(semaphore, 1))
        assert.strictEqual((yield* Effect.promise(() => held(redis))).length, 4)
        const waiting = yield* Effect.forkScoped(
          other.run(PermitSemaphore.withPermit(Effect.succeed("in"), semaphore)),
          {
            startImmediately: true
          }
        )
        for (const permit of permits) {
          assert.isTrue(yield* permit.isHeld)
          const attempt = PermitSemaphore.withPermitIfAvailable(Effect.void, semaphore)
          assert.isTrue(Option.isNone(yield* other.run(attempt)))
          assert.isUndefined(waiting.pollUnsafe())
          yield* permit.release
        }
        assert.strictEqual(yield* soon("the waiter is in", Fiber.join(waiting)), "in")
        yield* Effect.promise(() => redis.flushall())
      })
    )
  )

  it.live(
    "A semaphore that is set to 5 and to 1 by turns under load admits nobody new while more than one permit is held",
    onServer(({ redis, server }) =>
      Effect.gen(function* () {
        const clients = yield* Effect.all([client(server), client(server)])
        const resize = (permits: number) => clients[0].run(PermitSemaphore.setPermits(semaphore, permits))
        yield* resize(5)
        const section = PermitSemaphore.withPermit(
          Effect.suspend(() => Effect.sleep(20 * Math.random())),
          semaphore
        )
        const workers = yield* Effect.forEach(clients, ({ run }) =>
          Effect.forEach(Array.from({ length: 8 }), () =>
            Effect.forkScoped(run(Effect.forever(section)), { startImmediately: true })
          )
        )
        let most = 0
        for (let round = 0; round < 24; round++) {
          yield* resize(5)
          yield* eventually(
            "all are held",
            () => held(redis),
            (ids) => ids.length === 5
          )
          yield* resize(1)
          let before = yield* Effect.promise(() => held(redis))
          most = Math.max(most, before.length)
          const grants: Array<string> = []
          // until three more have been let in, one after the other
          while (grants.length < 3) {
            const now = yield* Effect.promise(() => held(redis))
            const known = before
            const added = now.filter((id) => !known.includes(id))
            if (added.length > 0) assert.isAtMost(now.length, 1, `${added.join()} beside ${before.join()}`)
            grants.push(...added)
            before = now
          }
        }
        // who was in before the resize
        assert.isAbove(most, 1)
        yield* Fiber.interruptAll(workers.flat())
        yield* Effect.promise(() => redis.flushall())
      })
    )
  )
})
