import { assert } from "@effect/vitest"
import { Effect, Exit } from "effect"
import { Lock } from "effect-redis-lock"
import { client } from "../kit/clients.ts"
import { until } from "../kit/eventually.ts"
import { sectionUntilTold } from "../kit/sections.ts"
import { onServer } from "../kit/server/onServer.ts"
import { testLive } from "../kit/test.ts"
import { start } from "./processes.ts"

const watchdogLeaseTime = 1500

/** On a busy machine a renewal may be on its way. */
const loses = (reason: string) => reason === "Expired" || reason === "RenewalFailed"

// every kind of lock: unit/notOneStep, in virtual time
testLive(
  "A section whose process is stopped beyond the lease takes no step beside the rival that has the lock",
  function* () {
    const { server } = yield* onServer()
    const stopped = yield* start("stepper", { url: server.url, watchdogLeaseTime })
    yield* stopped.told("inside")
    const { run } = yield* client(server, { watchdogLeaseTime: 30_000 })
    yield* stopped.signal("SIGSTOP")
    const stoppedAt = performance.now()
    const rival = yield* sectionUntilTold((body) => run(Lock.withLock(body, "a")))
    yield* until(
      "a whole lease has passed since the last step",
      () => performance.now() - stoppedAt > watchdogLeaseTime
    )
    yield* stopped.signal("SIGCONT")
    const { late, reason } = yield* stopped.told("ended")
    assert.deepStrictEqual([late, loses(reason)], [0, true])
    yield* stopped.ended
    assert.isTrue(Exit.isSuccess(yield* Effect.exit(rival.end)))
  }
)

testLive("A section takes no step after its event loop was blocked beyond the lease", function* () {
  const { server } = yield* onServer()
  const blocked = yield* start("stepper", { url: server.url, watchdogLeaseTime, block: watchdogLeaseTime + 200 })
  const { late, reason } = yield* blocked.told("ended")
  assert.deepStrictEqual([late, loses(reason)], [0, true])
  yield* blocked.ended
})
