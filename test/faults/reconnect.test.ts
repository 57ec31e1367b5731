import { RedisSentinel } from "@effect-redis-lock/testing"
import { IoRedis } from "@effect-redis-lock/ioredis"
import { assert } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { Lock, PermitSemaphore, ReadWriteLock } from "effect-redis-lock"
import { Redis } from "ioredis"
import { client, clientOf, clientOver, locksOver } from "../kit/clients.ts"
import { eventually, until } from "../kit/eventually.ts"
import { loss, storeError } from "../kit/exits.ts"
import { enter } from "../kit/sections.ts"
import { bare, reconnectsAtOnce } from "../kit/server/bareRedis.ts"
import { connected, lockKey } from "../kit/server/conditions.ts"
import { behindProxy, onServer } from "../kit/server/onServer.ts"
import { testLive } from "../kit/test.ts"

testLive(
  "A connection of an application's client on which nothing comes back is replaced by its socketTimeout",
  function* () {
    const { proxy, redis: observer } = yield* behindProxy()
    const settings = { ...reconnectsAtOnce, socketTimeout: 300, maxRetriesPerRequest: null }
    const theirs = yield* Effect.acquireRelease(
      Effect.sync(() => new Redis(proxy.url, settings).on("error", () => {})),
      (redis) => Effect.sync(() => redis.disconnect())
    )
    const mine = yield* clientOver(theirs, { commandTimeout: 300 })
    yield* connected(mine)
    const received = async () => Number(/total_connections_received:(\d+)/.exec(await observer.info("stats"))![1])
    const before = yield* Effect.promise(received)
    yield* proxy.dropReplies
    const error = yield* Effect.flip(mine.run(Lock.isLocked("report")))
    assert.isTrue(error._tag === "LockStoreError" && error.isTransient)
    yield* eventually("another connection has come", received, (now) => now > before, "1 minute")
    yield* proxy.resume
    yield* connected(mine)
  }
)

testLive(
  "A client that is connected again learns at once what it no longer holds, long before the next renewal",
  function* () {
    const { redis, server } = yield* onServer()
    const far = yield* client(server, { watchdogLeaseTime: "3 hours" })
    const stays = yield* enter(far, "stays")
    const sections = {
      renewed: Lock.withLock("renewed"),
      fixed: Lock.withLock("fixed", { leaseTime: "1 hour" }),
      read: Lock.withLock(ReadWriteLock.make("read").readLock),
      write: Lock.withLock(ReadWriteLock.make("write").writeLock),
      permits: PermitSemaphore.withPermits(PermitSemaphore.make("permits", { permits: 3 }), 2)
    }
    const fibers = yield* Effect.forEach(Object.values(sections), (around) =>
      Effect.forkScoped(far.run(around(Effect.never)), { startImmediately: true })
    )
    for (const name of Object.keys(sections)) yield* lockKey(redis, name, "there")
    const left = yield* Effect.promise(() => redis.pttl("stays"))
    // as on a replica that had not heard of them and takes over
    const keys = (yield* Effect.promise(() => redis.keys("*"))).filter((key) => !/stays|token/.test(key))
    yield* Effect.promise(() => redis.del(...keys))
    yield* Effect.promise(() => redis.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"))
    for (const fiber of fibers) assert.strictEqual(loss(yield* Fiber.await(fiber)).reason, "NotOwner")
    // what is still held stays so, and its lease was not extended
    assert.isTrue(yield* stays.holding.isHeld)
    assert.isAtMost(yield* Effect.promise(() => redis.pttl("stays")), left)
    yield* stays.finish
  }
)

testLive("Who held on a dead master learns it as soon as its successor answers, where locks work again", function* () {
  const redis = yield* RedisSentinel.start({ sentinels: 3, downAfter: "500 millis" })
  const driver = IoRedis.layerSentinel({
    sentinels: redis.sentinels.map(({ url }) => url),
    commandTimeout: "1 second"
  })
  const far = yield* clientOf(locksOver(driver, { watchdogLeaseTime: "3 hours" }))
  const [master, replica] = redis.servers as readonly [(typeof redis.servers)[0], (typeof redis.servers)[0]]
  const onReplica = yield* bare(replica)
  const known = yield* enter(far, "known")
  yield* lockKey(onReplica, "known", "there")
  // what the master grants from now on does not get there: the replica cannot connect to it again
  const onMaster = yield* bare(master)
  yield* Effect.promise(() => onReplica.config("SET", "masterauth", "wrong"))
  yield* Effect.promise(() => onMaster.call("CLIENT", "KILL", "TYPE", "replica"))
  yield* eventually(
    "the replica is cut off",
    () => onReplica.info("replication"),
    (info) => info.includes("master_link_status:down")
  )
  const unknown = yield* enter(far, "unknown")
  yield* master.kill
  const error = storeError(yield* Effect.exit(far.run(Lock.withLock(Effect.void, "report", { waitTime: 0 }))))
  assert.isTrue(error.isTransient, error.message)
  assert.strictEqual(loss(yield* unknown.exit).reason, "NotOwner")
  yield* until("the other lock is held", known.holding.isHeld)
  yield* known.finish
  const section = yield* enter(far, "report", { persistent: true })
  yield* lockKey(onReplica, "report", "there")
  yield* section.finish
})
