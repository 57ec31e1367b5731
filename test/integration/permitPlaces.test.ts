/**
 * What a section under permits costs, however many clients contend for them, and that nobody is forgotten who does not ask by the clock.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { PermitSemaphore, Semaphore } from "effect-redis-lock"
import type { Redis } from "ioredis"
import { client } from "../kit/clients.ts"
import { onServer } from "../kit/server/onServer.ts"

/** How many scripts were run since the last reset. */
const scriptsRun = (redis: Redis) =>
  Effect.promise(async () => {
    let scripts = 0
    const stats = await redis.info("commandstats")
    for (const [, calls] of stats.matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)/g)) scripts += Number(calls)
    return scripts
  })

// nobody asks by the clock
const patient = { fallbackInterval: "1 hour", watchdogLeaseTime: "1 hour" } as const

const kinds = {
  Semaphore: (permits: number, wanted: number) => {
    const semaphore = Semaphore.make("pool", { permits })
    return Semaphore.withPermits(Effect.sleep(2), semaphore, wanted)
  },
  PermitSemaphore: (permits: number, wanted: number) => {
    const semaphore = PermitSemaphore.make("pool", { permits })
    return PermitSemaphore.withPermits(Effect.sleep(2), semaphore, wanted)
  }
}

for (const [kind, section] of Object.entries(kinds)) {
  describe(`a ${kind} for which many clients contend`, () => {
    for (const [count, permits, wanted] of [
      [2, 1, 1],
      [8, 1, 1],
      [24, 1, 1],
      [24, 4, 1],
      [24, 4, 2]
    ] as const) {
      it.live(
        `${count} clients that want ${wanted} of ${permits} permits need about three scripts a section`,
        onServer(({ redis, server }) =>
          Effect.gen(function* () {
            const each = 20
            const clients = yield* Effect.forEach(Array.from({ length: count }), () => client(server, patient))
            const all = (times: number) =>
              Effect.forEach(clients, ({ run }) => run(Effect.repeat(section(permits, wanted), { times: times - 1 })), {
                concurrency: "unbounded",
                discard: true
              })
            // all have subscribed after these
            yield* all(2)
            yield* Effect.promise(() => redis.config("RESETSTAT"))
            yield* all(each)
            const scripts = (yield* scriptsRun(redis)) / (count * each)
            if (process.env["PRINT"] !== undefined) console.log(kind, count, permits, wanted, scripts)
            assert.isBelow(scripts, 3.6)
            // the counter stays
            yield* Effect.promise(() => redis.flushall())
          })
        )
      )
    }
  })
}
