/**
 * Messages that lie for seconds on their way: what a release has reserved for a client goes to somebody else meanwhile, and the late
 * message lets nobody in.
 */
import { assert, describe } from "@effect/vitest"
import { Effect, Latch, Queue, Stream } from "effect"
import { FairLock, Lock, ReadWriteLock, type RedisDriver, type RedisLock, Semaphore } from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { background } from "../kit/background.ts"
import { runOperation } from "../kit/storeOperations.ts"
import { as, clientOf, testStore } from "../kit/testStore.ts"
import { type Store, wrappedStore } from "../kit/wrappedStore.ts"
import { test } from "../kit/test.ts"

const lateMillis = 5000

/** Its messages, seconds late. */
const lately =
  (store: Store): Store["subscribe"] =>
  (channel) =>
    Stream.mapEffect(
      store.subscribe(channel),
      (signal) => Effect.delay(Effect.succeed(signal), signal._tag === "Message" ? lateMillis : 0),
      { concurrency: "unbounded" }
    )

const sections: Record<string, (self: Effect.Effect<void>) => Effect.Effect<void, unknown, RedisLock.RedisLock>> = {
  "a plain lock": Lock.withLock("a"),
  "a write lock": Lock.withLock(ReadWriteLock.make("b").writeLock),
  "a permit": Semaphore.withPermits(Semaphore.make("c", { permits: 1 }), 1)
}

describe("a client whose messages come late", () => {
  for (const [what, within] of Object.entries(sections)) {
    test(`A client that hears too late that it was to have ${what} stays outside while another one is inside`, function* () {
      const server = yield* testStore()
      // a writer asks every three seconds, however long its fallbackInterval is
      const maySend = Latch.makeUnsafe(true)
      const late = {
        store: wrappedStore({ ...server.store, subscribe: lately(server.store) }, ({ operation, run }) =>
          operation === "write_lock/acquire" ? Effect.andThen(maySend.await, Effect.suspend(run)) : run()
        )
      }
      const history: Array<string> = []
      const enter = (name: string, takes: number) =>
        Effect.sync(() => history.push(`${name} enters`)).pipe(
          Effect.andThen(Effect.sleep(takes)),
          Effect.andThen(Effect.sync(() => history.push(`${name} leaves`))),
          within
        )
      const holder = yield* clientOf(server)
      // it asks only when it is told
      const waiter = yield* clientOf(late, { fallbackInterval: "1 hour" })
      const other = yield* clientOf(server, { fallbackInterval: "1 second" })
      yield* background(as(holder)(enter("holder", 1000)))
      yield* TestClock.adjust(100)
      yield* background(as(waiter)(enter("waiter", 1000)))
      yield* TestClock.adjust(100)
      maySend.closeUnsafe()
      yield* background(as(other)(enter("other", 10_000)))
      yield* TestClock.adjust(lateMillis)
      maySend.openUnsafe()
      assert.deepStrictEqual(history, ["holder enters", "holder leaves", "other enters"])
      // its message has come by now
      yield* TestClock.adjust(5000)
      assert.deepStrictEqual(history, ["holder enters", "holder leaves", "other enters"])
      yield* TestClock.adjust(15_000)
      assert.deepStrictEqual(history.slice(2), ["other enters", "other leaves", "waiter enters", "waiter leaves"])
    })
  }
})

test("A message that somebody else may have written keeps no waiter from a lock whose lease has ended", function* () {
  const server = yield* testStore()
  const said = yield* Queue.unbounded<RedisDriver.Signal>()
  const subscribe: Store["subscribe"] = (channel) =>
    channel.endsWith(":ours")
      ? Stream.merge(server.store.subscribe(channel), Stream.fromQueue(said))
      : server.store.subscribe(channel)
  const client = yield* clientOf({ store: { ...server.store, subscribe } })
  // its process has ended
  yield* runOperation(server.store, "lock/acquire", ["a", "redisson_lock_token:{a}"], ["x:1", 10_000, 60_000])
  const waiting = yield* Lock.withLock(Effect.void, "a").pipe(as(client), background)
  yield* TestClock.adjust("5 seconds")
  // so many milliseconds are to be the turn of others
  yield* Queue.offer(said, { _tag: "Message", message: "1e12" })
  yield* TestClock.adjust("6 seconds")
  assert.isDefined(waiting.pollUnsafe())
})

/** Its messages are lost. */
const silently =
  (store: Store): Store["subscribe"] =>
  (channel) =>
    Stream.filter(store.subscribe(channel), (signal) => signal._tag !== "Message")

describe("a client with short leases that hears nothing", () => {
  for (const [what, lock] of [
    ["a plain lock", Lock.make("a")],
    ["a fair lock", FairLock.make("b")]
  ] as const) {
    for (const watchdogLeaseTime of ["1 second", "3 seconds", "30 seconds"] as const) {
      test(`By default it asks for ${what} before what was handed over to it is over: leases of ${watchdogLeaseTime}`, function* () {
        const server = yield* testStore()
        const deaf = { store: { ...server.store, subscribe: silently(server.store) } }
        const history: Array<string> = []
        const enter = (name: string) =>
          Effect.sync(() => history.push(name))
            .pipe(Effect.andThen(Effect.sleep(10)))
            .pipe(Lock.withLock(lock))
        const holder = yield* clientOf(server, { watchdogLeaseTime })
        const waiter = yield* clientOf(deaf, { watchdogLeaseTime })
        const other = yield* clientOf(server, { watchdogLeaseTime, fallbackInterval: "20 millis" })
        yield* background(as(holder)(enter("holder")))
        yield* TestClock.adjust(1)
        yield* background(as(waiter)(enter("waiter")))
        yield* TestClock.adjust(1)
        yield* background(as(other)(enter("other")))
        yield* TestClock.adjust(10_000)
        assert.deepStrictEqual(history, ["holder", "waiter", "other"])
      })
    }
  }
})
