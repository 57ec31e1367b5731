import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit } from "effect"
import type { Redis } from "ioredis"
import { client } from "../kit/clients.ts"
import { eventually } from "../kit/eventually.ts"
import { sectionUntilTold } from "../kit/sections.ts"
import { type KindName, sectionsOf } from "../kit/sectionsOf.ts"
import { onServer } from "../kit/server/onServer.ts"
import { start } from "./processes.ts"

const watchdogLeaseTime = 1500

/** On a busy machine a renewal may be on its way. */
const loses = (reason: string) => reason === "Expired" || reason === "RenewalFailed"

/** A semaphore stays when nobody holds a permit. */
const forgetPermits = (redis: Redis, kind: KindName) =>
  kind === "PermitSemaphore" ? Effect.promise(() => redis.del("a", "{a}:timeout")) : Effect.void

// all kinds: unit/notOneStep, in virtual time
const kinds: ReadonlyArray<KindName> = [
  "Lock",
  "FairLock",
  "read lock",
  "write lock",
  "PermitSemaphore",
  "MultiLock",
  "RedLock"
]

for (const kind of kinds) {
  describe(`a section under a ${kind} that never asks whether it holds it`, () => {
    it.live(
      `A section under a ${kind} whose process is stopped beyond the lease takes no step beside the rival that has it`,
      onServer(({ redis, server }) =>
        Effect.gen(function* () {
          const stopped = yield* start("stepper", { url: server.url, kind, watchdogLeaseTime })
          yield* stopped.told("inside")
          const { run } = yield* client(server, { watchdogLeaseTime: 30_000 })
          yield* stopped.signal("SIGSTOP")
          const stoppedAt = performance.now()
          const rival = yield* sectionUntilTold((body) =>
            run(sectionsOf[kind === "read lock" ? "write lock" : kind](body))
          )
          yield* eventually(
            "a whole lease has passed since the last step",
            () => performance.now() - stoppedAt,
            (millis) => millis > watchdogLeaseTime
          )
          yield* stopped.signal("SIGCONT")
          const { late, reason } = yield* stopped.told("ended")
          assert.deepStrictEqual([late, loses(reason)], [0, true])
          yield* stopped.ended
          assert.isTrue(Exit.isSuccess(yield* Effect.exit(rival.end)))
          yield* forgetPermits(redis, kind)
        })
      )
    )

    if (kind !== "Lock" && kind !== "PermitSemaphore" && kind !== "MultiLock") return
    it.live(
      `A section under a ${kind} takes no step after its event loop was blocked beyond the lease`,
      onServer(({ redis, server }) =>
        Effect.gen(function* () {
          const block = watchdogLeaseTime + 200
          const blocked = yield* start("stepper", { url: server.url, kind, watchdogLeaseTime, block })
          const { late, reason } = yield* blocked.told("ended")
          assert.deepStrictEqual([late, loses(reason)], [0, true])
          yield* blocked.ended
          yield* forgetPermits(redis, kind)
        })
      )
    )
  })
}
