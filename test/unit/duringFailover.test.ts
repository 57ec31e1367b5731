import { assert, it } from "@effect/vitest"
import { duringFailover } from "../../packages/ioredis/dist/internal/ownDriver.js"

it("For 19 seconds of an outage sentinels are asked for the master ten times a second, up to 59 five times, and later every two seconds", () => {
  let elapsed = 0
  let times = 1
  for (; elapsed < 59_000; times++) {
    const pause = duringFailover(times)
    assert.isAtMost(pause, elapsed < 19_000 ? 100 : 200, `after ${elapsed} ms`)
    elapsed += pause
  }
  assert.strictEqual(duringFailover(times + 10), 2000)
})
