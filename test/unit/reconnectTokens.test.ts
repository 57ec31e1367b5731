/**
 * Fencing tokens after a reconnect, perhaps to a server that knows nothing of the last ones.
 */
import { assert } from "@effect/vitest"
import { Effect, Queue, Stream } from "effect"
import { Lock } from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { as, clientOf, memoryStore } from "../kit/testStore.ts"
import { test } from "../kit/test.ts"

test("After a reconnect to a server whose clock is behind, tokens are higher than any that the client was granted", function* () {
  const reconnects = yield* Queue.unbounded<void>()
  let server = yield* memoryStore(0)
  const store = {
    ...server,
    run: ((command) => server.run(command)) as typeof server.run,
    reconnects: Stream.fromQueue(reconnects)
  }
  const service = yield* clientOf({ store })
  const tokenOf = (name: string) => Effect.scoped(Effect.map(as(service)(Lock.scoped(name)), ({ token }) => token))
  const last = yield* tokenOf("a")
  server = yield* memoryStore(-3_600_000)
  assert.isTrue((yield* tokenOf("b")) < last)
  Queue.offerUnsafe(reconnects, undefined)
  yield* TestClock.adjust("1 second")
  assert.isTrue((yield* tokenOf("c")) > last)
})
