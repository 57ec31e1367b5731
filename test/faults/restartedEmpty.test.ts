import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { client, untoldClient } from "../kit/clients.ts"
import { soon } from "../kit/eventually.ts"
import { loss } from "../kit/exits.ts"
import { enter, queueUp } from "../kit/sections.ts"
import { belongsTo, connected, waiterSleeps } from "../kit/server/conditions.ts"
import { onServer } from "../kit/server/onServer.ts"
import { testLive } from "../kit/test.ts"

testLive(
  "A server that restarts empty interrupts the section that had a lock there: the next renewal finds it gone",
  function* () {
    const { redis, server } = yield* onServer()
    const mine = yield* client(server)
    const old = yield* enter(mine, "report")
    yield* server.restart
    const lost = loss(yield* old.exit)
    assert.strictEqual(lost.reason, "NotOwner")
    assert.isTrue(old.wasInterrupted())
    assert.include(lost.message, "Redis lost its data")
    assert.strictEqual(yield* Effect.promise(() => redis.exists("report")), 0)
    // the server has forgotten the last token, and yet they rise
    const next = yield* enter(mine, "report")
    assert.isTrue(next.holding.token > old.holding.token)
    yield* next.finish
  }
)

testLive(
  "A server that restarts empty gives the lock to somebody else: a section learns it when its client has connected again, fails, and leaves the new holder alone",
  function* () {
    const { redis, server } = yield* onServer()
    const mine = yield* client(server)
    const old = yield* enter(mine, "report", { deaf: true })
    yield* server.restart
    const other = yield* client(server)
    const next = yield* enter(other, "report")
    assert.isTrue(next.holding.token > old.holding.token)
    yield* connected(mine)
    assert.strictEqual(loss(yield* soon("the loss is noticed", Effect.exit(old.holding.awaitLost))).reason, "NotOwner")
    yield* old.end
    assert.strictEqual(loss(yield* old.exit).reason, "NotOwner")
    yield* belongsTo(redis, "report", next.holding)
    yield* next.holding.ensureHeld
    yield* next.finish
  }
)

testLive("A server that restarts empty wakes its waiters", function* () {
  const { redis, server } = yield* onServer()
  const patient = { fallbackInterval: "5 minutes", watchdogLeaseTime: "5 minutes", label: "" } as const
  const old = yield* enter(yield* untoldClient(server, patient), "report", { leaseTime: "5 minutes" })
  const waiter = yield* queueUp(yield* client(server, patient), "report", { persistent: true })
  yield* waiterSleeps(redis, "report")
  yield* server.restart
  const next = yield* waiter.entered
  assert.isTrue(next.holding.token > old.holding.token)
  yield* old.end
  assert.strictEqual(loss(yield* old.exit).reason, "NotOwner")
  yield* belongsTo(redis, "report", next.holding)
  yield* next.finish
})
