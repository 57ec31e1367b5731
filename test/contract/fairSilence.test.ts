/**
 * How long a silent client keeps its place in a fair queue, asked of the stores directly.
 */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { LockStore } from "effect-redis-lock"
import { TestClock } from "effect/testing"
import { freshName } from "../kit/names.ts"
import { clientId, runOperation } from "../kit/storeOperations.ts"
import { testsWith } from "../kit/test.ts"

const [silent, asking] = ["a", "b"].map(clientId) as [string, string]

/** Asks for a fair lock, and takes a place that lives for `life` milliseconds. */
const askerOf = (store: LockStore.LockStore["Service"]) => {
  const name = freshName("fair")
  const keys = [name, ...["token", "queue", "timeout", "alive", "channel"].map((key) => `${key}:{${name}}`)]
  const ask = (client: string, owner: string, life = 1500) =>
    runOperation(store, "fair_lock/acquire", keys, [owner, 60_000, 60_000, 300_000, client, life, store.publish])
  const free = runOperation(store, "lock/force_release", [name, keys[5]!], [store.publish])
  return { ask, free }
}

testsWith(LockStore.layerMemory, it.effect)(
  "A client that stays silent while the server stands still for less than a second keeps its place",
  function* () {
    const { ask, free } = askerOf(yield* LockStore.LockStore)
    yield* ask("x", "x:1")
    yield* ask(silent, `${silent}:1`)
    yield* ask(asking, `${asking}:1`)
    yield* free
    const head = Effect.map(ask(asking, `${asking}:1`), (reply) => (reply as ReadonlyArray<unknown>)[1])
    yield* TestClock.adjust(430)
    assert.strictEqual(yield* head, `${silent}:1`)
    // the server stands still; then others reach it before the silent one does
    yield* TestClock.adjust(850)
    // for three times as long, 2550 ms
    for (let i = 0; i <= 50; i++) {
      assert.strictEqual(yield* head, `${silent}:1`, `${50 * i} ms after the server went on`)
      yield* TestClock.adjust(50)
    }
    yield* TestClock.adjust(1)
    assert.isNumber(yield* ask(asking, `${asking}:1`))
  }
)
