/**
 * What `redis-lock watch` and `redis-lock ui` tell of locks after an outage of Redis.
 */
import { assert } from "@effect/vitest"
import { Duration, Effect, Stream } from "effect"
import { TestClock } from "effect/testing"
import { changesOf } from "../../packages/cli/dist/watch/changes.js"
import { background } from "../kit/background.ts"
import { clientId, runOperation } from "../kit/storeOperations.ts"
import { test } from "../kit/test.ts"
import { as, clientOf, testStore } from "../kit/testStore.ts"
import { type Store, wrappedStore } from "../kit/wrappedStore.ts"

test("A lock that is found again while the look for released ones is under way is not told as released", function* () {
  const server = yield* testStore()
  const take = (client: string) => {
    const keys = ["ledger", "redisson_lock_token:{ledger}"]
    return runOperation(server.store, "lock/acquire", keys, [`${clientId(client)}:1`, 3_600_000, 60_000])
  }
  yield* take("a")
  let isBack = false
  const inspected: Array<unknown> = []
  const slow: Store = {
    ...wrappedStore(server.store, ({ args, operation, run }) => {
      if (!isBack || operation !== "lock/look") return run()
      // the reply to the first one, which was free then, comes after that to the second
      return inspected.push(args) === 1 ? Effect.tap(run(), () => Effect.sleep("5 seconds")) : run()
    }),
    // a look that finds what is held takes longer than the pause before what was held is inspected
    scan: (pattern, type) =>
      Stream.unwrap(
        Effect.delay(
          Effect.sync(() => server.store.scan(pattern, type)),
          isBack ? "1500 millis" : 0
        )
      )
  }
  const told: Array<string> = []
  const looking = { pattern: "ledger", interval: Duration.seconds(1) }
  yield* Stream.runForEach(
    changesOf(looking, "waits", () => Effect.void),
    ({ _tag }) => Effect.sync(() => told.push(_tag))
  ).pipe(as(yield* clientOf({ store: slow })), background)
  while (told.length === 0) yield* TestClock.adjust("100 millis")
  server.isDown = true
  yield* TestClock.adjust("1 second")
  yield* server.delete("ledger")
  server.isDown = false
  isBack = true
  while (inspected.length === 0) yield* TestClock.adjust("100 millis")
  yield* take("b")
  for (let i = 0; i < 100; i++) yield* TestClock.adjust("100 millis")
  assert.deepStrictEqual(told, ["Found", "Found"])
})
