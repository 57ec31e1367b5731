/**
 * Places in the queue of a fair lock while the store cannot be reached, or stands still.
 */
import { assert } from "@effect/vitest"
import { Effect, Exit, Fiber, Latch, Queue, Stream } from "effect"
import { CountDownLatch, FairLock, Lock, type LockStore, type RedisDriver } from "effect-redis-lock"
import type { LockClient } from "../../packages/core/dist/internal/client/LockClient.js"
import { as, clientOf, type Service, storeWith, testStore, type TestStore } from "../kit/testStore.ts"
import { runOperation, typeOfKeyIn } from "../kit/storeOperations.ts"
import { type Outcome, type Store, wrappedStore } from "../kit/wrappedStore.ts"
import { background } from "../kit/background.ts"
import { pass } from "../kit/passTime.ts"
import { testQuietly as test } from "../kit/test.ts"

const lock = FairLock.make("a")
const patient = { watchdogLeaseTime: "10 minutes" } as const
const queue = "redisson_lock_queue:{a}"
const timeouts = "redisson_lock_timeout:{a}"
const clients = "effect_redis_lock_clients:{a}"
const channel = "redisson_lock__channel:{a}"

const idOf = (service: Service) => (service as unknown as { readonly clientId: string }).clientId

/** A store whose messages grant nothing: whoever is told asks. */
const telling = (store: Store): Store => ({
  ...store,
  subscribe: (channel) =>
    Stream.map(store.subscribe(channel), (signal) =>
      signal._tag === "Message" ? { _tag: "Message", message: "0" } : signal
    )
})

/** A store that loses the connection over the next request for an operation, once told to: what was lost can act later. */
const losing = (store: Store, operation: LockStore.Operation) => {
  const self = {
    losesNext: false,
    lost: [] as Array<Outcome>,
    store: wrappedStore(store, (request): Outcome =>
      Effect.suspend(() => {
        if (!self.losesNext || request.operation !== operation) return request.run()
        self.losesNext = false
        self.lost.push(request.run())
        return request.fail("ConnectionLost")
      })
    )
  }
  return self
}

test("Waiters for fair locks that come and go while nobody can be reached leave nothing behind that is sent", function* () {
  const server = yield* testStore()
  server.isDown = true
  const run = as(yield* clientOf(server, patient))
  const waits = ["a", "a", "b", "c"].map((name) =>
    background(Effect.flip(run(Lock.withLock(Effect.void, FairLock.make(name), { waitTime: "2 seconds" }))))
  )
  const waiting = yield* Effect.all(waits)
  yield* pass(3)
  for (const waiter of waiting) assert.strictEqual((yield* Fiber.join(waiter))._tag, "LockStoreError")
  const { asked } = server
  yield* pass(10)
  assert.strictEqual(server.asked, asked)
})

for (const [what, happens] of [
  [
    "whose name is something else by now",
    (server: TestStore, other: Service) =>
      Effect.andThen(server.delete("a"), Effect.orDie(as(other)(CountDownLatch.trySetCount("a", 1))))
  ],
  [
    "that the client may use no longer",
    (server: TestStore) =>
      Effect.sync(() => {
        server.reason = "NoPermission"
        server.refuses = () => true
      })
  ]
] as const) {
  test(`A waiter for a fair lock ${what} leaves nothing behind that is sent again and again`, function* () {
    const [server, holder, mine] = yield* storeWith(patient, patient)
    const holding = yield* background(as(holder)(Lock.withLock(Effect.never, lock)))
    yield* pass(1)
    const waiting = yield* background(as(mine)(Lock.withLock(Effect.void, lock, { waitTime: "3 seconds" })))
    yield* pass(1)
    yield* happens(server, holder)
    yield* pass(9)
    assert.isTrue(Exit.isFailure(waiting.pollUnsafe()!))
    const { asked } = server
    yield* pass(10)
    assert.strictEqual(server.asked, asked)
    assert.strictEqual((mine as unknown as LockClient).lines.fairQueues.size, 0)
    yield* Fiber.interrupt(holding)
  })
}

test("Places in a fair queue keep their order while nobody can report for longer than places live", function* () {
  const server = yield* testStore()
  // each client reaches the store in its own way
  const ways = Array.from({ length: 4 }, () => ({ isDown: false }))
  const services = yield* Effect.forEach(ways, (way) => {
    const store = wrappedStore(server.store, ({ fail, run }) => Effect.suspend(() => (way.isDown ? fail() : run())))
    return clientOf({ store }, patient)
  })
  const holding = yield* background(as(services[0]!)(Lock.withLock(Effect.never, lock)))
  yield* pass(1)
  const order: Array<number> = []
  const waiting = []
  for (const i of [1, 2, 3]) {
    waiting.push(yield* Effect.sync(() => void order.push(i)).pipe(Lock.withLock(lock), as(services[i]!), background))
    yield* pass(0.1)
  }
  yield* pass(2)
  for (const way of ways) way.isDown = true
  yield* pass(20)
  // the last one is back first, the first one last
  for (const i of [3, 2, 1, 0]) {
    ways[i]!.isDown = false
    yield* pass(1)
  }
  yield* Fiber.interrupt(holding)
  yield* pass(5)
  assert.deepStrictEqual(order, [1, 2, 3])
})

test("A hundred fair waiters that were taken for dead get new places in their order", function* () {
  const server = yield* testStore()
  const way = { isDown: false }
  const holder = yield* clientOf(server, patient)
  const other = yield* clientOf(server, patient)
  const mine = yield* clientOf(
    { store: wrappedStore(server.store, ({ fail, run }) => Effect.suspend(() => (way.isDown ? fail() : run()))) },
    patient
  )
  const holding = yield* background(as(holder)(Lock.withLock(Effect.never, lock)))
  yield* pass(1)
  const order: Array<number> = []
  const wait = (service: Service, i: number) =>
    Effect.sync(() => void order.push(i)).pipe(Lock.withLock(lock), as(service), background)
  for (let i = 0; i < 100; i++) yield* wait(mine, i)
  yield* pass(2)
  yield* wait(other, 100)
  yield* pass(2)
  way.isDown = true
  yield* pass(20)
  way.isDown = false
  yield* pass(10)
  yield* Fiber.interrupt(holding)
  yield* pass(20)
  assert.deepStrictEqual(order, [100, ...Array.from({ length: 100 }, (_, i) => i)])
})

test("A place in a fair queue is reported at once when the store can be reached again", function* () {
  const server = yield* testStore()
  const holder = yield* clientOf({ store: server.store }, patient)
  let isDown = false
  let isBack = false
  let reports = 0
  const mine = yield* clientOf(
    {
      store: wrappedStore(server.store, ({ fail, operation, run }) =>
        Effect.suspend(() => {
          if (isDown) return fail("ConnectionLost")
          if (isBack && operation === "fair_lock/refresh") reports++
          return run()
        })
      )
    },
    patient
  )
  const holding = yield* background(as(holder)(Lock.withLock(Effect.never, lock)))
  yield* pass(1)
  yield* background(as(mine)(Lock.withLock(Effect.void, lock)))
  // its reports are due at 500 ms, 1000 ms and so on
  yield* pass(2)
  isDown = true
  yield* pass(0.6)
  isDown = false
  isBack = true
  yield* pass(0.1)
  assert.strictEqual(reports, 1)
  // and as often as before from then on
  yield* pass(2)
  assert.strictEqual(reports, 5)
  yield* Fiber.interrupt(holding)
})

test("A fair waiter reports soon after its channel is heard again, though commands fail at first", function* () {
  const server = yield* testStore()
  const holder = yield* clientOf({ store: server.store }, patient)
  let isDown = false
  let reports = 0
  const again = yield* Queue.unbounded<RedisDriver.Signal>()
  const heardAgain: Store = {
    ...server.store,
    subscribe: (channel) => Stream.merge(server.store.subscribe(channel), Stream.fromQueue(again))
  }
  const mine = yield* clientOf(
    {
      store: wrappedStore(heardAgain, ({ fail, operation, run }) =>
        Effect.suspend(() => {
          if (isDown) return fail()
          if (operation === "fair_lock/refresh") reports++
          return run()
        })
      )
    },
    patient
  )
  const holding = yield* background(as(holder)(Lock.withLock(Effect.never, lock)))
  yield* pass(1)
  yield* background(as(mine)(Lock.withLock(Effect.void, lock)))
  yield* pass(2)
  isDown = true
  yield* pass(5)
  yield* Queue.offer(again, { _tag: "Subscribed" })
  yield* pass(0.1)
  reports = 0
  isDown = false
  yield* pass(0.1)
  assert.strictEqual(reports, 1)
  yield* Fiber.interrupt(holding)
})

for (const [operation, what] of [
  ["fair_lock/refresh", "a report"],
  ["fair_lock/acquire", "a request"]
] as const) {
  test(`A fair waiter whose turn was announced while its channel was not heard comes at once, though ${what} was under way`, function* () {
    const [server, holder] = yield* storeWith(patient)
    const again = yield* Queue.unbounded<RedisDriver.Signal>()
    const way = { isMute: false, holdsReply: false, held: false, reply: yield* Latch.make() }
    let first: string | undefined
    const heard: Store = {
      ...server.store,
      subscribe: (channel) => {
        const signals = Stream.filter(server.store.subscribe(channel), () => !way.isMute)
        // the waiter's own; the next one is that of a spare owner
        first ??= channel
        return channel === first ? Stream.merge(signals, Stream.fromQueue(again)) : signals
      }
    }
    const mine = yield* clientOf(
      {
        store: wrappedStore(heard, (request) =>
          Effect.tap(request.run(), () => {
            if (request.operation !== operation || !way.holdsReply) return Effect.void
            way.holdsReply = false
            way.held = true
            return way.reply.await
          })
        )
      },
      patient
    )
    const holding = yield* background(as(holder)(Lock.withLock(Effect.never, lock)))
    yield* pass(1)
    const waiting = yield* background(as(mine)(Lock.withLock(Effect.void, lock)))
    yield* pass(0.3)
    way.holdsReply = true
    // it asks at each message
    if (operation === "fair_lock/acquire") yield* Queue.offer(again, { _tag: "Message", message: "0" })
    while (!way.held) yield* pass(0.1)
    way.isMute = true
    yield* Fiber.interrupt(holding)
    yield* pass(0.1)
    yield* Queue.offer(again, { _tag: "Subscribed" })
    yield* pass(0.1)
    yield* way.reply.open
    yield* pass(0.1)
    assert.deepStrictEqual<unknown>(waiting.pollUnsafe(), Exit.void)
  })
}

test("A place that a late report has queued again is removed once that report can act no more", function* () {
  const server = yield* testStore()
  const way = losing(server.store, "fair_lock/refresh")
  const holding = yield* background(as(yield* clientOf(server, patient))(Lock.withLock(Effect.never, lock)))
  yield* pass(1)
  const waiting = yield* background(as(yield* clientOf(way, patient))(Lock.withLock(Effect.void, lock)))
  yield* pass(1)
  way.losesNext = true
  while (way.lost.length === 0) yield* pass(0.1)
  yield* Fiber.interrupt(waiting)
  const places = Effect.map(typeOfKeyIn(server.store, queue), (type) => type === "list")
  yield* pass(0.6)
  assert.isFalse(yield* places)
  yield* way.lost[0]!
  assert.isTrue(yield* places, "the report has come after its waiter had left")
  yield* pass(3)
  assert.isFalse(yield* places)
  yield* Fiber.interrupt(holding)
})

for (const others of ["nobody waits", "others wait"]) {
  test(`A request of a fair waiter that acts after its release leaves nothing behind while ${others}`, function* () {
    const server = yield* testStore()
    const way = losing(telling(server.store), "fair_lock/acquire")
    const other = yield* clientOf(server, patient)
    const holding = yield* background(as(other)(Lock.withLock(Effect.never, lock)))
    yield* pass(1)
    const done = yield* background(as(yield* clientOf(way, patient))(Lock.withLock(Effect.void, lock)))
    yield* pass(1)
    way.losesNext = true
    yield* Fiber.interrupt(holding)
    while (done.pollUnsafe() === undefined) yield* pass(0.1)
    assert.strictEqual(way.lost.length, 1)
    const next = others === "others wait" ? yield* background(as(other)(Lock.withLock(Effect.never, lock))) : undefined
    const found = () =>
      Effect.map(typeOfKeyIn(server.store, next === undefined ? "a" : queue), (type) => type !== "none")
    assert.isFalse(yield* found())
    yield* way.lost[0]!
    assert.isTrue(yield* found(), "the request has acted after the release")
    yield* pass(3)
    assert.isFalse(yield* found())
  })
}

test("A holder of a fair lock one of whose requests was lost keeps the lock for longer than that request may act", function* () {
  const server = yield* testStore()
  const lossy = losing(server.store, "fair_lock/acquire")
  lossy.losesNext = true
  const section = yield* background(as(yield* clientOf(lossy, patient))(Lock.withLock(Effect.never, lock)))
  yield* pass(server.store.commandLifeMillis / 1000 + 5)
  assert.lengthOf(lossy.lost, 1)
  assert.isUndefined(section.pollUnsafe())
  assert.isFalse(yield* server.isFree("a"))
})

test("A fair waiter's place that was given up during an outage is removed, whoever else waits there", function* () {
  const server = yield* testStore()
  const near = { ...server.store }
  const mine = yield* clientOf(server)
  const other = yield* clientOf({ store: near }, patient)
  const holding = yield* background(as(other)(Lock.withLock(Effect.never, lock)))
  yield* pass(1)
  const givesUp = yield* background(as(mine)(Lock.withLock(Effect.void, lock, { waitTime: "10 seconds" })))
  yield* pass(0.2)
  const stays = yield* background(as(mine)(Lock.withLock(Effect.void, lock)))
  yield* pass(1)
  server.isDown = true
  // longer than the lease of what might have been granted
  yield* pass(40)
  assert.isTrue(Exit.isFailure(givesUp.pollUnsafe()!))
  server.isDown = false
  yield* pass(2)
  const theirs = yield* background(as(other)(Lock.withLock(Effect.void, lock)))
  yield* pass(1)
  yield* Fiber.interrupt(holding)
  yield* pass(5)
  assert.deepStrictEqual<unknown>([stays.pollUnsafe(), theirs.pollUnsafe()], [Exit.void, Exit.void])
})

test("A client keeps nothing of a fair lock whose last waiter has given up while the store was silent", function* () {
  const server = yield* testStore()
  const holding = yield* background(as(yield* clientOf(server, patient))(Lock.withLock(Effect.never, lock)))
  yield* pass(1)
  let isSilent = false
  const mine = yield* clientOf({
    store: wrappedStore(server.store, ({ fail, run }) => Effect.suspend(() => (isSilent ? fail("TimedOut") : run())))
  })
  const { fairQueues } = (mine as unknown as LockClient).lines
  const waiting = yield* background(as(mine)(Lock.withLock(Effect.void, lock, { waitTime: "2 seconds" })))
  yield* pass(1)
  isSilent = true
  yield* pass(4)
  assert.isTrue(Exit.isFailure(waiting.pollUnsafe()!))
  assert.strictEqual(fairQueues.size, 1, "its place is still to be removed")
  isSilent = false
  // longer than what was sent meanwhile may take effect
  yield* pass(10)
  assert.strictEqual(yield* typeOfKeyIn(server.store, queue), "none")
  assert.strictEqual(fairQueues.size, 0)
  yield* Fiber.interrupt(holding)
})

test("A place that a late command has made for a gone fair waiter is removed, though its process waits", function* () {
  const [server, holder, mine] = yield* storeWith(patient, {})
  const holding = yield* background(as(holder)(Lock.withLock(Effect.never, lock)))
  yield* pass(1)
  const gaveUp = `${idOf(mine)}:1`
  yield* Effect.orDie(
    runOperation(
      server.store,
      "fair_lock/acquire",
      ["a", "redisson_lock_token:{a}", queue, timeouts, clients, channel],
      [gaveUp, 30_000, 86_400_000, 300_000, idOf(mine), 1500, "PUBLISH"]
    )
  )
  const waiting = yield* background(as(mine)(Lock.withLock(Effect.void, lock)))
  yield* pass(2)
  yield* Fiber.interrupt(holding)
  yield* pass(3)
  assert.deepStrictEqual<unknown>(waiting.pollUnsafe(), Exit.void)
})

test("A fair waiter behind hundreds of dead ones is served as soon as the lock is free", function* () {
  const [server, holder] = yield* storeWith(patient)
  const holding = yield* background(as(holder)(Lock.withLock(Effect.never, lock)))
  yield* pass(1)
  const dead = crypto.randomUUID()
  for (let i = 1; i <= 450; i++) {
    yield* runOperation(
      server.store,
      "fair_lock/acquire",
      ["a", "redisson_lock_token:{a}", queue, timeouts, clients, channel],
      [`${dead}:${i}`, 30_000, 86_400_000, 300_000, dead, 60_000, "PUBLISH"]
    )
  }
  const waiting = yield* background(as(yield* clientOf(server))(Lock.withLock(Effect.void, lock)))
  yield* pass(59)
  yield* pass(0.9)
  yield* Fiber.interrupt(holding)
  assert.isUndefined(waiting.pollUnsafe(), "the dead may still be alive")
  yield* pass(1.5)
  assert.deepStrictEqual<unknown>(waiting.pollUnsafe(), Exit.void)
})

test("A fair waiter that was granted the lock without learning of it holds the lock as soon as it reaches the store again", function* () {
  const [server, holder] = yield* storeWith(patient)
  let loses = false
  const mine = yield* clientOf(
    {
      store: wrappedStore(telling(server.store), ({ keys, operation, run }) => {
        if (!loses || operation !== "fair_lock/acquire") return run()
        loses = false
        // it runs, and nobody hears
        return Effect.flatMap(run(), () => {
          server.refuses = () => true
          server.reason = "ConnectionLost"
          return runOperation(server.store, "lock/inspect", keys.slice(0, 2))
        })
      })
    },
    patient
  )
  const holding = yield* background(as(holder)(Lock.withLock(Effect.never, lock)))
  yield* pass(1)
  let entered = false
  const waiting = yield* Effect.sync(() => void (entered = true)).pipe(Lock.withLock(lock), as(mine), background)
  yield* pass(2)
  loses = true
  yield* Fiber.interrupt(holding)
  yield* pass(1)
  assert.isFalse(loses)
  assert.isFalse(entered)
  server.refuses = () => false
  yield* pass(3)
  assert.isTrue(entered)
  assert.deepStrictEqual<unknown>(waiting.pollUnsafe(), Exit.void)
})
