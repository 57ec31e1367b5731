/**
 * A cluster for real: three runner processes that talk over sockets, 300 shards, entities, a singleton and a cron job; runners are killed,
 * stopped and told to end. `pnpm runners` does the same for longer, at random.
 */
import { assert } from "@effect/vitest"
import { testLiveQuietly } from "../kit/test.ts"
import { play } from "./play.ts"

testLiveQuietly(
  "Runners that are killed, stopped and told to end lose their shards to others within a lease and two seconds, and nothing runs twice at once",
  function* () {
    const faults = [
      ["kill", 0],
      ["stop", 1],
      ["end", 2]
    ] as const
    const { problems } = yield* play(faults, () => 500)
    assert.deepStrictEqual(problems, [])
  }
)
