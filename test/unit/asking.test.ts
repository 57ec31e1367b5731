/**
 * How often those who wait ask the store.
 */
import { assert } from "@effect/vitest"
import { Effect, Fiber, Stream } from "effect"
import {
  type AcquireError,
  FairLock,
  Lock,
  type LockLost,
  type LockReentered,
  PermitSemaphore,
  ReadWriteLock,
  type RedisLock,
  Semaphore
} from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { as, clientOf, storeWith, testStore } from "../kit/testStore.ts"
import { test } from "../kit/test.ts"
import { background } from "../kit/background.ts"

const { readLock, writeLock } = ReadWriteLock.make("a")

// nobody asks by the clock
const patient = { fallbackInterval: "1 hour", watchdogLeaseTime: "1 hour" } as const

type Section = (
  body: Effect.Effect<void>
) => Effect.Effect<void, AcquireError | LockReentered | LockLost, RedisLock.RedisLock>

interface Case {
  readonly operation: string
  readonly section: Section
  /** What keeps it waiting, where that is not another of the same. */
  readonly rival?: Section
  /** What it sends at a message, where it does not ask: the message is the grant. */
  readonly extension?: string
}

const sections = {
  "a lock": { operation: "lock/acquire", section: Lock.withLock("a"), extension: "lock/renew" },
  "a fair lock": {
    operation: "fair_lock/acquire",
    section: Lock.withLock(FairLock.make("a")),
    extension: "lock/renew"
  },
  "a read lock": {
    operation: "read_lock/acquire",
    section: Lock.withLock(readLock),
    rival: Lock.withLock(writeLock),
    extension: "read_lock/renew"
  },
  "a write lock": { operation: "write_lock/acquire", section: Lock.withLock(writeLock), extension: "lock/renew" },
  "a leased permit": {
    operation: "permit_semaphore/acquire",
    section: PermitSemaphore.withPermit(PermitSemaphore.make("a", { permits: 1 }))
  },
  "a semaphore": {
    operation: "semaphore/acquire",
    section: (body) => Semaphore.withPermits(body, Semaphore.make("a", { permits: 1 }), 1)
  }
} satisfies Record<string, Case>

for (const [what, { extension, operation, section, rival = section }] of Object.entries<Case>(sections)) {
  const atMessage = extension === undefined ? "and at each message" : "and begins with the message"
  test(`A waiter for ${what} asks when it arrives, when it is subscribed, ${atMessage}`, function* () {
    const server = yield* testStore()
    const { subscribe } = server.store
    const store = {
      ...server.store,
      subscribe: (channel: string) => Stream.unwrap(Effect.as(Effect.sleep(5), subscribe(channel)))
    }
    const [holder, waiter] = [yield* clientOf({ store }, patient), yield* clientOf({ store }, patient)]
    const held = yield* rival(Effect.sleep(1000)).pipe(as(holder), Effect.forkChild)
    yield* TestClock.adjust(1)
    server.operations.length = 0
    const sent = (operation: string) => server.operations.filter((each) => each === operation).length
    const asked = () => sent(operation)
    const waiting = yield* section(Effect.void).pipe(as(waiter), Effect.forkChild)
    yield* TestClock.adjust(1)
    assert.strictEqual(asked(), 1)
    yield* TestClock.adjust(500)
    assert.strictEqual(asked(), 2)
    yield* TestClock.adjust(500)
    yield* Fiber.join(waiting)
    assert.strictEqual(asked() + (extension === undefined ? 0 : sent(extension)), 3)
    assert.strictEqual(asked(), extension === undefined ? 3 : 2)
    yield* Fiber.join(held)
  })
}

test("Of readers that ask at the same time one takes their place; another takes it where that one's request is late", function* () {
  const [server, writer, readers] = yield* storeWith(patient, patient)
  const write = Effect.sleep(1000).pipe(Lock.withLock(writeLock), as(writer))
  const read = Effect.void.pipe(Lock.withLock(readLock), as(readers))
  // for a second, so that they are subscribed from now on
  const first = yield* Effect.forkChild(write)
  yield* TestClock.adjust(1)
  const subscribes = yield* Effect.forkChild(read)
  yield* TestClock.adjust(1000)
  yield* Fiber.joinAll([first, subscribes])
  const second = yield* Effect.forkChild(write)
  yield* TestClock.adjust(1)

  server.operations.length = server.args.length = 0
  let isLate = true
  server.delay = (operation) => {
    const delay = isLate && operation === "read_lock/acquire" ? 100 : 0
    isLate = false
    return delay
  }
  const reading = yield* Effect.forEach([1, 2], () => Effect.forkChild(read))
  yield* TestClock.adjust(50)
  assert.deepStrictEqual(server.operations, ["read_lock/acquire", "read_lock/acquire"])
  // whether it has asked before; nothing for a reader that takes no place
  assert.deepStrictEqual(
    server.args.map((args) => args[5]),
    ["", 0]
  )
  yield* TestClock.adjust(50)
  assert.deepStrictEqual(server.operations.slice(2), ["read_lock/acquire", "read_lock/release"])
  yield* TestClock.adjust(1000)
  yield* Fiber.joinAll([...reading, second])
})

for (const what of ["a lock", "a write lock"] as const) {
  const { operation, section } = sections[what]
  test(`A waiter for ${what} that another fiber of its process holds asks when that is released`, function* () {
    const [server, service] = yield* storeWith(patient)
    server.delay = () => 5
    const fibers = yield* Effect.forEach([1, 2, 3], () => background(as(service)(section(Effect.sleep(100)))))
    yield* TestClock.adjust(1000)
    yield* Fiber.joinAll(fibers)
    assert.strictEqual(server.operations.filter((each) => each === operation).length, 3)
  })
}
