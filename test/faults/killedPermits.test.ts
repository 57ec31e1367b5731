import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { PermitSemaphore } from "effect-redis-lock"
import { client } from "../kit/clients.ts"
import { eventually } from "../kit/eventually.ts"
import { onServer } from "../kit/server/onServer.ts"
import { isLasting } from "../kit/server/lastingKeys.ts"
import { start } from "./processes.ts"

const permits = 5
const semaphore = "partner"

describe("SIGKILL of two out of three processes that share 5 permits among 30 fibers", () => {
  it.live(
    "When two of three processes with 5 permits are killed, never more than 5 are inside or held, and the killed processes' permits come back",
    onServer(({ redis, server }) =>
      Effect.gen(function* () {
        // not lost in a process that stands still for a second or two
        const lease = 6000
        const settings = { url: server.url, semaphore, permits, fibers: 10, watchdogLeaseTime: lease }
        const names = ["a", "b", "c"]
        const workers = yield* Effect.forEach(names, (worker) => start("permits", { ...settings, worker }))
        for (const worker of workers) yield* worker.told("working")

        const inside = async (worker: string) => (await redis.hvals("inside")).filter((name) => name === worker).length
        let left = 0
        for (const [i, name] of [...names.slice(0, 2).entries()]) {
          const worker = workers[i]!
          // stopped first, so that it is killed inside
          yield* eventually(
            `worker ${name} is stopped inside`,
            async () => {
              await Effect.runPromise(worker.signal("SIGSTOP"))
              // what it had sent has been run
              await redis.ping()
              const count = await inside(name)
              if (count === 0) await Effect.runPromise(worker.signal("SIGCONT"))
              return count
            },
            (count) => count > 0
          )
          yield* worker.signal("SIGKILL")
          yield* Effect.promise(() => redis.sadd("dead", name))
          left += yield* Effect.promise(() => inside(name))
        }
        assert.isAtLeast(left, 2)

        // by itself, while the third goes on: all five are had again
        yield* eventually(
          "the third has all permits",
          () => inside("c"),
          (count) => count === permits
        )
        yield* Effect.promise(() => redis.set("stop", "1"))
        const { mostHeld, mostInside, sections } = yield* workers[2]!.told("stopped")
        yield* workers[2]!.ended
        assert.isAtMost(mostInside, permits)
        assert.isAtMost(mostHeld, permits)
        assert.isAtLeast(sections, 10)

        const { run } = yield* client(server)
        assert.strictEqual(yield* run(PermitSemaphore.availablePermits(semaphore)), permits)
        assert.strictEqual(yield* run(PermitSemaphore.acquiredPermits(semaphore)), 0)
        assert.deepStrictEqual((yield* Effect.promise(() => redis.keys("*"))).filter((key) => !isLasting(key)).sort(), [
          "dead",
          "inside",
          semaphore,
          "stop"
        ])
        yield* Effect.promise(() => redis.flushall())
      })
    )
  )
})
