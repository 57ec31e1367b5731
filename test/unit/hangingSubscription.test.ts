/**
 * Waiters whose subscription is not confirmed, or fails again and again: messages are hints, and all else goes on.
 */
import { assert } from "@effect/vitest"
import { Effect, Exit, Fiber, Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import { FairLock, FencedLock, Lock, ReadWriteLock } from "effect-redis-lock"
import { background } from "../kit/background.ts"
import { as, clientOf, testStore } from "../kit/testStore.ts"
import { unreachable } from "../kit/wrappedStore.ts"
import { expectWarning } from "../run/logs.ts"
import { test } from "../kit/test.ts"

const { readLock, writeLock } = ReadWriteLock.make("a")

for (const [kind, lock, rival] of [
  ["a lock", Lock.make("a"), Lock.make("a")],
  ["a fenced lock", FencedLock.make("a"), FencedLock.make("a")],
  ["a fair lock", FairLock.make("a"), FairLock.make("a")],
  ["a read lock", readLock, writeLock],
  ["a write lock", writeLock, readLock]
] as const) {
  test(`A waiter for ${kind} asks when the holder's lease is over, though its subscription is never confirmed`, function* () {
    const server = yield* testStore()
    const options = { fallbackInterval: "1 minute", releaseTimeout: 10 } as const
    const dead = yield* clientOf(server, options)
    const waiter = yield* clientOf({ store: { ...server.store, subscribe: () => Stream.never } }, options)
    yield* as(dead)(Scope.provide(Lock.scoped(rival, { leaseTime: "2 seconds" }), yield* Scope.make()))
    const waiting = yield* background(as(waiter)(Lock.withLock(Effect.void, lock)))
    yield* TestClock.adjust("1 second")
    assert.isUndefined(waiting.pollUnsafe())
    yield* TestClock.adjust("1500 millis")
    assert.deepStrictEqual(waiting.pollUnsafe(), Exit.void)
  })
}

test("A subscription that fails a while after each time it was established is soon renewed each time", function* () {
  expectWarning(/^No wake-up signals/)
  const server = yield* testStore()
  let subscribed = 0
  const subscribe = (channel: string) =>
    Stream.concat(
      Stream.take(server.store.subscribe(channel), 1),
      Stream.fromEffect(
        Effect.suspend(() => {
          subscribed++
          return Effect.sleep("1 second")
        }).pipe(Effect.andThen(Effect.fail(unreachable("subscribe", channel))))
      )
    )
  const service = yield* clientOf({ store: { ...server.store, subscribe } })
  const holding = yield* background(as(service)(Lock.withLock(Effect.never, "a")))
  const rival = yield* clientOf({ store: { ...server.store, subscribe } })
  yield* background(as(rival)(Lock.withLock(Effect.never, "a")))
  for (let i = 0; i < 600; i++) yield* TestClock.adjust(100)
  assert.isAtLeast(subscribed, 40, "times in a minute")
  yield* Fiber.interrupt(holding)
})
