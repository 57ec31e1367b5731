/**
 * How long the turns of clients that take no places are (Redisson's in Java), by the time of the server alone.
 */
import { assert } from "@effect/vitest"
import { TestClock } from "effect/testing"
import { LockStore } from "effect-redis-lock"
import { listenTo, runOperation } from "../kit/storeOperations.ts"
import { test } from "../kit/test.ts"
import { storeOf } from "../kit/testStore.ts"

// a turn may also last over the end of a second
for (const offset of [0, 3])
  test(`Of the turns of clients without places one in ten seconds lasts 250 ms, one in each other second 50 ms, and all others 10 ms, from ${offset} ms on`, function* () {
    const start = Date.UTC(2026, 0) + offset
    yield* TestClock.setTime(start)
    // its clock begins now
    const store = yield* storeOf(LockStore.layerMemory)
    const channel = "redisson_lock__channel:{ledger}"
    const keys = ["ledger", channel, "effect_redis_lock_places:{ledger}", "redisson_lock_token:{ledger}"]
    // Java: it listens to that alone
    yield* listenTo(store, channel)
    yield* listenTo(store, channel)
    const { heard } = yield* listenTo(store, `${channel}:ours`)
    const turns: Array<{ readonly at: number; readonly lasts: number }> = []
    for (let at = 0; at < 30_000; at += 10) {
      yield* runOperation(store, "lock/acquire", ["ledger", "redisson_lock_token:{ledger}"], ["x:1", 60_000, 60_000])
      yield* runOperation(store, "lock/release", keys, ["x:1", store.publish, 2000, 60_000])
      const last = turns.at(-1)
      const lasts = Number(heard.splice(0).at(-1) ?? 0)
      if ([10, 50, 250].includes(lasts) && (last === undefined || at >= last.at + last.lasts)) turns.push({ at, lasts })
      yield* TestClock.adjust(10)
    }
    for (let second = 1; second < 30; second++) {
      const inThisSecond = turns.filter(({ at }) => Math.floor((at + offset) / 1000) === second)
      assert.strictEqual(inThisSecond[0]!.lasts, second % 10 === 0 ? 250 : 50, `second ${second}`)
      for (const { lasts } of inThisSecond.slice(1)) assert.strictEqual(lasts, 10, `second ${second}`)
    }
    for (const [i, { at }] of turns.slice(1).entries()) {
      const { at: before, lasts } = turns[i]!
      // by the next release after 90 ms
      assert.isTrue(at - before >= lasts + 90 && at - before <= lasts + 100, `from ${before} ms to ${at} ms`)
    }
    const lastTen = turns.filter(({ at }) => at >= 20_000).reduce((sum, { lasts }) => sum + lasts, 0)
    assert.isAtMost(lastTen, 1600)
  })
