/**
 * A lock on a majority of real servers, some of which die, hang, are slow, or come back without their data.
 */
import { TcpProxy } from "@effect-redis-lock/testing"
import { assert } from "@effect/vitest"
import { Effect, Fiber, Option, Schedule } from "effect"
import { Lock, LockStoreError, LockTimeout, QuorumNotReached } from "effect-redis-lock"
import { eventually, soon } from "../kit/eventually.ts"
import { failure, loss } from "../kit/exits.ts"
import { sectionUntilTold } from "../kit/sections.ts"
import { commandsRun } from "../kit/server/commandsOf.ts"
import { renewed } from "../kit/server/conditions.ts"
import { assertFreeAt, keyAt, keyEverywhere, onServers, type Place, process, redLock } from "./quorumSite.ts"
import { testLive } from "../kit/test.ts"

const kill = (places: ReadonlyArray<Place>) =>
  Effect.forEach(places, ({ server }) => server.kill, { concurrency: "unbounded", discard: true })

/** Holds a lock until told to let go. */
const hold = Effect.fnUntraced(function* (lock: Lock.Lock<never, any>, options?: Lock.AcquireOptions) {
  const holder = sectionUntilTold((body) => Lock.withLock(Effect.as(body, "done"), lock, options))
  const { end, fiber } = yield* soon("it is held", holder)
  return {
    exit: soon("the section ends", Fiber.await(fiber)),
    isRunning: () => fiber.pollUnsafe() === undefined,
    end: soon("the section ends", end)
  }
})

testLive(
  "A lock on five servers is refused soon with three of them killed, with the failure of each, and no key is left",
  function* () {
    const places = yield* onServers(5)
    const services = yield* process(places)
    yield* kill(places.slice(2))
    // who waited for members that are gone would wait for an hour
    const lock = redLock(services, "ledger", { memberTimeout: "1 hour" })
    const exit = Effect.exit(Lock.withLock(Effect.void, lock, { waitTime: 0 }))
    const error = failure(yield* soon("it is refused", exit))
    assert.instanceOf(error, QuorumNotReached)
    assert.strictEqual(error.required, 3)
    assert.strictEqual(error.acquired, 2)
    // by where they are, and what is wrong with several of them is said once
    assert.deepStrictEqual(
      error.failures.map(({ member }) => member),
      places.slice(2).map(({ server }) => new URL(server.url).host)
    )
    for (const { reason } of error.failures) {
      const hint = new LockStoreError({ operation: "", lock: "", reason }).message.slice('Lock "", : '.length)
      assert.strictEqual(error.message.split(hint).length, 2, error.message)
    }
    for (const { message, reason } of error.failures) {
      assert.include(["NotConnected", "ConnectionLost", "ConnectionRefused"], reason)
      assert.include(error.message, message)
    }
    yield* assertFreeAt(places.slice(0, 2), "ledger")
  }
)

testLive("A lock on five servers is granted while two of them hang, without waiting for them", function* () {
  const places = yield* onServers(5)
  // who waited for members that hang would wait for an hour
  const services = yield* process(places, { commandTimeout: "1 hour", watchdogLeaseTime: "1 hour" })
  const lock = redLock(services, "ledger", { memberTimeout: "1 hour" })
  for (const { server } of places.slice(0, 2)) yield* server.pause
  const holder = yield* hold(lock)
  for (const { server } of places.slice(0, 2)) yield* server.resume
  yield* holder.end
  yield* keyEverywhere(places, "ledger", "gone")
})

testLive(
  "A lock on five servers stays held while one of them restarts empty, is renewed, and excludes later requests",
  function* () {
    const places = yield* onServers(5)
    const [mine, others] = [
      yield* process(places, { watchdogLeaseTime: "6 seconds" }),
      yield* process(places, { watchdogLeaseTime: "6 seconds" })
    ]
    const holder = yield* hold(redLock(mine, "ledger"))
    yield* keyEverywhere(places, "ledger", "there")
    yield* places[4]!.server.restart
    const waiting = yield* Effect.forkChild(
      Effect.exit(Lock.withLock(Effect.void, redLock(others, "ledger"), { waitTime: "4 seconds" }))
    )
    const refused = failure(yield* Fiber.join(waiting))
    assert.instanceOf(refused, LockTimeout)
    assert.isTrue(holder.isRunning())
    assert.deepStrictEqual(yield* keyAt(places.slice(0, 4), "ledger"), [1, 1, 1, 1])
    assert.strictEqual(yield* holder.end, "done")
  }
)

testLive("A lock on five servers stays held while two of them are gone for good", function* () {
  const places = yield* onServers(5)
  const services = yield* process(places, { watchdogLeaseTime: "6 seconds" })
  const holder = yield* hold(redLock(services, "ledger"))
  yield* kill(places.slice(0, 2))
  yield* renewed(places[4]!.redis, "ledger", 3)
  assert.isTrue(holder.isRunning())
  assert.strictEqual(yield* holder.end, "done")
})

testLive("A lock on five servers is lost before its validity is over when three of them are gone", function* () {
  const places = yield* onServers(5)
  const services = yield* process(places, { watchdogLeaseTime: "6 seconds" })
  const holder = yield* hold(redLock(services, "ledger"))
  yield* kill(places.slice(0, 3))
  const lost = loss(yield* holder.exit)
  assert.strictEqual(lost.reason, "RenewalFailed")
  assert.strictEqual(lost.lock, "ledger")
})

testLive("A lock on five servers leaves nothing on a member that runs the acquisition late", function* () {
  const places = yield* onServers(3)
  const slow = yield* Effect.forEach(places.slice(1), ({ server }) => TcpProxy.make({ target: server }))
  const services = yield* process([places[0]!, ...slow.map((server) => ({ server }))], {
    watchdogLeaseTime: "1 hour"
  })
  const lock = redLock(services, "ledger", { memberTimeout: "200 millis" })
  yield* slow[1]!.delay("700 millis")
  yield* Lock.withLock(Effect.void, lock)
  yield* keyEverywhere(places, "ledger", "gone")
  // now two of three are late: nobody has it
  yield* slow[0]!.delay("700 millis")
  const error = failure(yield* Effect.exit(Lock.withLock(Effect.void, lock, { waitTime: 0 })))
  assert.instanceOf(error, QuorumNotReached)
  const late = error.failures.filter(({ member }) => member !== new URL(places[0]!.server.url).host)
  assert.deepStrictEqual(
    late.map(({ reason }) => reason),
    ["TimedOut", "TimedOut"]
  )
  yield* eventually("the late ones have run it", commandsRun(places[1]!.redis, "evalsha"), (calls) => calls >= 4)
  yield* keyEverywhere(places, "ledger", "gone")
  for (const proxy of slow) yield* proxy.delay(0)
  // what was delayed before may still be under way
  const next = Effect.retry(Lock.withLock(Effect.succeed("next"), lock), {
    while: (error) => error._tag === "QuorumNotReached",
    schedule: Schedule.spaced(50)
  })
  assert.strictEqual(yield* soon("it can be had again", next), "next")
  yield* keyEverywhere(places, "ledger", "gone")
})

testLive("A lock on five servers leaves nothing on a slow member that has to be sent the script first", function* () {
  const places = yield* onServers(3)
  const { redis, server } = places[2]!
  const proxy = yield* TcpProxy.make({ target: server })
  const services = yield* process([places[0]!, places[1]!, { server: proxy }], { watchdogLeaseTime: "1 hour" })
  const lock = redLock(services, "ledger", { memberTimeout: "5 seconds" })
  // flushed while the lock is held, it is sent the script that releases, and not yet the one that acquires
  yield* keyEverywhere(places, "ledger", "there").pipe(
    Effect.andThen(Effect.promise(() => redis.script("FLUSH"))),
    Lock.withLock(lock)
  )
  yield* keyEverywhere(places, "ledger", "gone")
  yield* Effect.promise(() => redis.config("RESETSTAT"))
  yield* proxy.delay("150 millis")
  yield* Lock.withLock(Effect.void, lock)
  yield* eventually("it was asked to acquire and to release", commandsRun(redis, "evalsha"), (calls) => calls >= 2)
  // time for a reply and for what it may lead to
  yield* Effect.sleep("1 second")
  yield* keyEverywhere(places, "ledger", "gone")
})

testLive(
  "A lock on five servers wakes its waiters by the message of any member, even with the first one gone",
  function* () {
    const places = yield* onServers(5)
    const options = { watchdogLeaseTime: "1 hour", fallbackInterval: "1 hour" } as const
    const [mine, others] = [yield* process(places, options), yield* process(places, options)]
    const alive = new Set(places)
    for (const dying of [undefined, places[0]!, places[4]!]) {
      if (dying !== undefined) {
        alive.delete(dying)
        yield* dying.server.kill
      }
      const holder = yield* hold(redLock(mine, "ledger"))
      const waiting = yield* Effect.forkChild(Lock.withLock(Effect.succeed("next"), redLock(others, "ledger")))
      for (const { redis } of alive) {
        yield* eventually(
          "the waiter listens",
          () => redis.pubsub("NUMSUB", "redisson_lock__channel:{ledger}") as Promise<Array<unknown>>,
          ([, listeners]) => Number(listeners) > 0
        )
      }
      yield* holder.end
      assert.strictEqual(yield* soon("the waiter has it", Fiber.join(waiting)), "next")
    }
  }
)

testLive("A lock on five servers may have another name on each server, as in Redisson's documentation", function* () {
  const places = yield* onServers(3)
  const names = ["lock1", "lock2", "lock3"]
  const [mine, others] = [yield* process(places), yield* process(places)]
  const holder = yield* hold(redLock(mine, names))
  for (const [i, { redis }] of places.entries()) {
    yield* eventually(
      "each server has its own name only",
      () => redis.keys("*"),
      (keys) => keys.toSorted().join() === [names[i], `redisson_lock_token:{${names[i]}}`].join()
    )
  }
  assert.isTrue(Option.isNone(yield* Lock.withLockIfAvailable(Effect.void, redLock(others, names))))
  // a single lock of the same name on one of the servers is excluded, too
  const single = Lock.provide(Lock.make("lock2"), others[1]!)
  assert.isTrue(yield* Lock.isLocked(single))
  assert.isTrue(Option.isNone(yield* Lock.withLockIfAvailable(Effect.void, single)))
  assert.strictEqual(yield* holder.end, "done")
  // and one that is held there does not matter, as long as a majority can be had
  const outcome = Lock.withLock(Effect.succeed("two of three"), redLock(mine, names))
  assert.strictEqual(yield* Lock.withLock(outcome, single), "two of three")
})
