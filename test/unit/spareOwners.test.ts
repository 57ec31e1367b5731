/**
 * The owner ids of fair waiters whose channels are heard before they ask.
 */
import { assert } from "@effect/vitest"
import { Effect, Exit, Fiber, Latch, Stream } from "effect"
import { FairLock, Lock } from "effect-redis-lock"
import { background } from "../kit/background.ts"
import { pass as passSeconds } from "../kit/passTime.ts"
import { as, clientOf, testStore } from "../kit/testStore.ts"
import { testQuietly as test } from "../kit/test.ts"
import { wrappedStore } from "../kit/wrappedStore.ts"

const lock = FairLock.make("a")
const patient = { watchdogLeaseTime: "10 minutes", fallbackInterval: "10 minutes" } as const

const pass = (millis: number) => passSeconds(millis / 1000, 10)

/** Two clients of one server; `observed` sees what the second asks, and which channels it hears. */
const twoClients = Effect.gen(function* () {
  const server = yield* testStore()
  const observed = {
    asked: 0,
    channels: new Set<string>(),
    reply: yield* Latch.make(true),
    connection: yield* Latch.make(false)
  }
  const store = wrappedStore(
    {
      ...server.store,
      subscribe: (channel) =>
        Stream.unwrap(
          Effect.acquireRelease(
            Effect.sync(() => void observed.channels.add(channel)),
            () => Effect.sync(() => void observed.channels.delete(channel))
          ).pipe(
            Effect.andThen(Effect.sleep(20)),
            Effect.as(Stream.interruptWhen(server.store.subscribe(channel), observed.connection.await))
          )
        )
    },
    (request) =>
      request.operation === "fair_lock/acquire"
        ? Effect.tap(request.run(), () => {
            observed.asked++
            return observed.reply.await
          })
        : request.run()
  )
  const holds = yield* background(as(yield* clientOf(server, patient))(Lock.withLock(Effect.never, lock)))
  yield* pass(50)
  const mine = yield* clientOf({ store }, patient)
  return {
    observed,
    waits: background(as(mine)(Lock.withLock(Effect.void, lock))),
    holds,
    holdsAgain: Effect.gen(function* () {
      const again = yield* background(as(yield* clientOf(server, patient))(Lock.withLock(Effect.never, lock)))
      yield* pass(50)
      return again
    })
  }
})

test("Who waits for a fair lock again asks once, for a place: its turn comes with the message", function* () {
  const { holds, holdsAgain, observed, waits } = yield* twoClients
  const asked: Array<number> = []
  let holder = holds
  for (let i = 0; i < 3; i++) {
    const before = observed.asked
    const waiting = yield* waits
    yield* pass(100)
    yield* Fiber.interrupt(holder)
    yield* pass(100)
    assert.deepStrictEqual<unknown>(waiting.pollUnsafe(), Exit.void)
    asked.push(observed.asked - before)
    holder = yield* holdsAgain
  }
  // the first one asks again once its channel is heard
  assert.deepStrictEqual(asked, [2, 1, 1])
})

for (const where of ["over the connection", "while the connection for messages is lost"]) {
  test(`A turn that is announced ${where} before the request for a place is answered is not missed`, function* () {
    const { holds, holdsAgain, observed, waits } = yield* twoClients
    const first = yield* waits
    yield* pass(100)
    yield* Fiber.interrupt(holds)
    yield* pass(100)
    assert.deepStrictEqual<unknown>(first.pollUnsafe(), Exit.void)
    const holder = yield* holdsAgain
    observed.reply.closeUnsafe()
    const waiting = yield* waits
    yield* pass(50)
    const isLost = where !== "over the connection"
    if (isLost) {
      yield* observed.connection.open
      yield* pass(10)
    }
    yield* Fiber.interrupt(holder)
    observed.connection.closeUnsafe()
    yield* pass(isLost ? 400 : 50)
    assert.isUndefined(waiting.pollUnsafe())
    yield* observed.reply.open
    yield* pass(50)
    assert.deepStrictEqual<unknown>(waiting.pollUnsafe(), Exit.void)
  })
}

test("It is heard no longer than subscriptions are kept when nobody waits any more", function* () {
  const { holds, observed, waits } = yield* twoClients
  const waiting = yield* waits
  yield* pass(100)
  const heard = () => [...observed.channels].filter((channel) => channel.includes("{a}"))
  assert.lengthOf(heard(), 2)
  yield* Fiber.interrupt(holds)
  yield* pass(100)
  assert.deepStrictEqual<unknown>(waiting.pollUnsafe(), Exit.void)
  yield* pass(21_000)
  assert.lengthOf(heard(), 0)
})
