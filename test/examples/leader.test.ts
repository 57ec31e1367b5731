/**
 * examples/leader, run as a user runs it.
 */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { freshName } from "../kit/names.ts"
import { runExample } from "./programs.ts"

it.live(
  "The leader's example is served by another instance when the leader is killed, and when it is told to end",
  () =>
    Effect.gen(function* () {
      const output = yield* runExample("leader/dist/main.js", { ELECTION: freshName("example") })
      const served = [...output.matchAll(/^the client is served by (instance \d)/gm)].map(([, name]) => name)
      assert.lengthOf(served, 3, output)
      assert.match(output, new RegExp(`^${served[0]} is killed$`, "m"))
      assert.match(output, new RegExp(`^${served[1]} is told to end$`, "m"))
      assert.lengthOf(new Set(served), 3, output)
    })
)
