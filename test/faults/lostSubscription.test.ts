import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { client, clientOver, untoldClient } from "../kit/clients.ts"
import { eventually } from "../kit/eventually.ts"
import { enter, queueUp } from "../kit/sections.ts"
import { bare } from "../kit/server/bareRedis.ts"
import { belongsTo, lockKey, subscribers, waiterSleeps } from "../kit/server/conditions.ts"
import { behindProxy, onServer } from "../kit/server/onServer.ts"
import { testLive } from "../kit/test.ts"
import { undisturbed } from "../kit/undisturbed.ts"
import { commandsRun } from "../kit/server/commandsOf.ts"

// Nobody falls back to asking within a test's time: who wakes up was told.
const patient = { fallbackInterval: "5 minutes", watchdogLeaseTime: "5 minutes" } as const

testLive("A subscription that breaks is made again, and wakes the waiter when the lock is released", function* () {
  const { redis, server } = yield* onServer()
  const holder = yield* enter(yield* client(server, patient), "report")
  const waiter = yield* queueUp(yield* client(server, patient), "report")
  yield* subscribers(redis, "report", 1)
  for (let i = 0; i < 3; i++) {
    // the holder may have one, too: it listens once it has held for a second
    assert.isAtLeast(Number(yield* Effect.promise(() => redis.client("KILL", "TYPE", "PUBSUB"))), 1)
    yield* subscribers(redis, "report", 1)
  }
  assert.isUndefined(waiter.fiber.pollUnsafe())
  yield* holder.end
  const next = yield* waiter.entered
  yield* next.finish
})

testLive("A subscription that is made again wakes the waiter, which may have missed the release", function* () {
  const { proxy, redis, server } = yield* behindProxy()
  const holder = yield* enter(yield* untoldClient(server, patient), "report")
  const waiting = yield* clientOver(yield* bare(server), { ...patient, label: "", subscriptions: proxy })
  const waiter = yield* queueUp(waiting, "report")
  yield* waiterSleeps(redis, "report")
  yield* proxy.cut
  yield* subscribers(redis, "report", 0)
  yield* holder.end
  yield* lockKey(redis, "report", "gone")
  yield* Effect.flatten(holder.exit)
  // time to be woken, which it must not be
  yield* Effect.sleep(300)
  assert.isUndefined(waiter.fiber.pollUnsafe(), "was woken without the subscription")
  yield* proxy.restore
  const next = yield* waiter.entered
  yield* next.finish
})

testLive(
  "A subscription that breaks on a network that loses everything is noticed by its silence and made again",
  function* () {
    const commandTimeout = 600
    yield* undisturbed(commandTimeout / 2, function* (watch) {
      const { proxy, redis, server } = yield* behindProxy()
      yield* watch(redis)
      const holder = yield* enter(yield* untoldClient(server, patient), "report")
      const options = { ...patient, label: "", subscriptions: proxy, commandTimeout }
      const waiter = yield* queueUp(yield* clientOver(yield* bare(server), options), "report")
      yield* waiterSleeps(redis, "report")
      yield* proxy.dropReplies
      yield* holder.end
      yield* Effect.flatten(holder.exit)
      // nobody else has closed the connection
      yield* subscribers(redis, "report", 0)
      assert.isUndefined(waiter.fiber.pollUnsafe(), "was woken without the subscription")
      yield* proxy.resume
      const next = yield* waiter.entered
      yield* next.finish
    })
  }
)

testLive("A subscription without messages is not taken for broken", function* () {
  const commandTimeout = 400
  yield* undisturbed(commandTimeout / 2, function* (watch) {
    const { proxy, redis, server } = yield* behindProxy()
    yield* watch(redis)
    const holder = yield* enter(yield* untoldClient(server, patient), "report")
    const waiter = yield* queueUp(yield* client(proxy, { ...patient, label: "", commandTimeout }), "report")
    yield* waiterSleeps(redis, "report")
    const connections = Effect.promise(async () => String(await redis.client("LIST")).match(/^id=\d+/gm) ?? [])
    const before = yield* connections
    const pings = commandsRun(redis, "ping")
    yield* eventually("both connections were asked twice for a sign of life", pings, (count) => count >= 4)
    // the holder may open one for messages meanwhile
    assert.includeMembers(yield* connections, before)
    yield* holder.end
    const next = yield* waiter.entered
    yield* next.finish
  })
})

testLive("Waiters ask by themselves when a message is lost on a connection that looks alive", function* () {
  const { proxy, redis, server } = yield* behindProxy()
  const holder = yield* enter(yield* client(server, { watchdogLeaseTime: "5 minutes" }), "report")
  const waiting = yield* clientOver(yield* bare(server), { fallbackInterval: 300, subscriptions: proxy })
  const first = yield* queueUp(waiting, "report")
  const second = yield* queueUp(waiting, "report")
  yield* subscribers(redis, "report", 1)
  yield* proxy.stallReplies
  yield* holder.end
  for (const waiter of [first, second]) {
    const section = yield* waiter.entered
    yield* belongsTo(redis, "report", section.holding)
    yield* section.finish
  }
  assert.strictEqual(yield* proxy.connections, 1)
})
