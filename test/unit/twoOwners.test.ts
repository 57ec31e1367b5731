/**
 * A grant proves that an earlier holder of this process has lost the lock: its section is interrupted before the new one begins.
 */
import { assert } from "@effect/vitest"
import { Effect, Exit, Fiber } from "effect"
import { Lock, MultiLock } from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { kinds } from "../contract/suite/kinds.ts"
import { background } from "../kit/background.ts"
import { pass } from "../kit/passTime.ts"
import { loss } from "../kit/exits.ts"
import { as, clientOf, memoryStore } from "../kit/testStore.ts"
import { test } from "../kit/test.ts"

const ways = [
  ...kinds.flatMap(({ make, name, rival = make }) => [
    {
      name: `asks once for ${name}`,
      first: Lock.withLock(rival("a")),
      second: Lock.withLock(make("a"), { waitTime: 0 })
    },
    { name: `waits for ${name}`, first: Lock.withLock(rival("a")), second: Lock.withLock(make("a")) }
  ]),
  {
    name: "asks once for a MultiLock",
    first: Lock.withLock("a"),
    second: Lock.withLock(MultiLock.make(["a", "b"]), { waitTime: 0 })
  }
]

for (const { first, name, second } of ways) {
  test(`Another fiber of that process, which ${name}, is let in when the section of the first has ended`, function* () {
    let server = yield* memoryStore(0)
    const empty = yield* memoryStore(0)
    const store = { ...server, run: ((command) => server.run(command)) as typeof server.run }
    const client = yield* clientOf({ store }, { label: "" })
    let inside = 0
    let most = 0
    const section = Effect.acquireUseRelease(
      Effect.sync(() => (most = Math.max(most, ++inside))),
      () => Effect.sleep("1 minute"),
      () => Effect.sync(() => inside--)
    )
    const one = yield* background(as(client)(first(section)))
    yield* TestClock.adjust(1)
    const waiting = name.startsWith("waits")
    let other = waiting ? yield* background(as(client)(second(section))) : undefined
    yield* TestClock.adjust(1)
    server = empty
    other ??= yield* background(as(client)(second(section)))
    yield* pass(130, 1000)
    assert.strictEqual(loss(yield* Fiber.await(one)).reason, "NotOwner")
    assert.isTrue(Exit.isSuccess(yield* Fiber.await(other)))
    assert.strictEqual(most, 1)
  })
}
