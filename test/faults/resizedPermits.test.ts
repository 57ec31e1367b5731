import { assert } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { PermitSemaphore } from "effect-redis-lock"
import type { Redis } from "ioredis"
import { client } from "../kit/clients.ts"
import { eventually } from "../kit/eventually.ts"
import { onServer } from "../kit/server/onServer.ts"
import { testLive } from "../kit/test.ts"

const semaphore = "partner"

/** The permits that are held, at one moment of the server. */
const held = (redis: Redis) =>
  Effect.map(
    Effect.promise(() => redis.zrangeBuffer("{partner}:timeout", "0", "-1")),
    (ids) => ids.map((id) => id.toString("hex"))
  )

testLive(
  "A semaphore that is set to 5 and to 1 by turns under load admits nobody new while more than one permit is held",
  function* () {
    const { redis, server } = yield* onServer()
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
    for (let round = 0; round < 6; round++) {
      yield* resize(5)
      yield* eventually("all are held", held(redis), (ids) => ids.length === 5)
      yield* resize(1)
      let before = yield* held(redis)
      most = Math.max(most, before.length)
      let grants = 0
      // until three more have been let in, one after the other
      while (grants < 3) {
        const now = yield* held(redis)
        const added = now.filter((id) => !before.includes(id))
        if (added.length > 0) assert.isAtMost(now.length, 1, `${added.join()} beside ${before.join()}`)
        grants += added.length
        before = now
      }
    }
    // who was in before the resize
    assert.isAbove(most, 1)
    yield* Fiber.interruptAll(workers.flat())
    yield* Effect.promise(() => redis.flushall())
  }
)
