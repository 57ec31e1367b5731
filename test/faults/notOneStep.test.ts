import { assert } from "@effect/vitest"
import { Effect } from "effect"
import type { Redis } from "ioredis"
import { client } from "../kit/clients.ts"
import { until } from "../kit/eventually.ts"
import { sectionUntilTold } from "../kit/sections.ts"
import { type SectionKind, sectionsOf } from "../kit/sectionsOf.ts"
import { onServer } from "../kit/server/onServer.ts"
import { testLive } from "../kit/test.ts"
import { start } from "./processes.ts"

const watchdogLeaseTime = 3000
const kinds = Object.keys(sectionsOf) as ReadonlyArray<SectionKind>

/** A section of each kind, in a process of its own, which is inside all of them. */
const stepper = Effect.fnUntraced(function* (url: string, block?: number) {
  const process = yield* start("stepper", { url, watchdogLeaseTime, kinds, ...(block === undefined ? {} : { block }) })
  yield* process.told("inside")
  return process
})

const tookNoStepTooLate = Effect.fnUntraced(function* ({
  ended,
  events,
  told
}: Effect.Success<ReturnType<typeof stepper>>) {
  yield* told("over")
  yield* ended
  const sections = events.filter((event) => event.event === "ended")
  assert.sameMembers(
    sections.map(({ kind }) => kind),
    [...kinds]
  )
  for (const { kind, late, reason } of sections) {
    assert.strictEqual(late, 0, kind)
    // on a busy machine a renewal may be on its way
    assert.include(["Expired", "RenewalFailed"], reason, kind)
  }
})

/** How many there are outlasts what is held of them. */
const forgetPermits = (redis: Redis) => Effect.promise(() => redis.del("PermitSemaphore:a"))

// every way to hold something: unit/notOneStep, in virtual time
testLive(
  "Sections of every kind whose process is stopped beyond the lease take no step beside the rivals that have the locks",
  function* () {
    const { redis, server } = yield* onServer()
    const stopped = yield* stepper(server.url)
    yield* stopped.signal("SIGSTOP")
    const stoppedAt = performance.now()
    const rivals = yield* Effect.forEach(
      kinds,
      Effect.fnUntraced(function* (kind) {
        const { run } = yield* client(server, { keyPrefix: `${kind}:` })
        // readers let each other in
        const rival = sectionsOf[kind === "read lock" ? "write lock" : kind]
        return yield* sectionUntilTold((body) => run(rival(body)))
      }),
      { concurrency: "unbounded" }
    )
    yield* until(
      "a whole lease has passed since the last step",
      () => performance.now() - stoppedAt > watchdogLeaseTime
    )
    yield* stopped.signal("SIGCONT")
    yield* tookNoStepTooLate(stopped)
    for (const { end } of rivals) yield* end
    yield* forgetPermits(redis)
  }
)

testLive("Sections of every kind take no step after their event loop was blocked beyond the lease", function* () {
  const { redis, server } = yield* onServer()
  yield* tookNoStepTooLate(yield* stepper(server.url, watchdogLeaseTime + 200))
  yield* forgetPermits(redis)
})
