/**
 * examples/cron, run as a user runs it, and its coordinator for node-cron between processes whose clocks differ.
 */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { eventually, until } from "../kit/eventually.ts"
import { freshName } from "../kit/names.ts"
import { runExample, startExample } from "./programs.ts"

it.live(
  "The schedules' example runs each tick once, with DistributedCron and with node-cron, and ends by itself",
  () =>
    Effect.gen(function* () {
      const output = yield* runExample("cron/dist/main.js", { SCHEDULE: freshName("example") })
      for (const kind of ["DistributedCron", "node-cron"]) {
        const ticks = [...output.matchAll(new RegExp(`^${kind}, (\\S+): instance \\d$`, "gm"))].map(([, tick]) => tick)
        assert.isAtLeast(ticks.length, 3, output)
        assert.lengthOf(new Set(ticks), ticks.length, output)
        assert.match(output, new RegExp(`^${ticks.length} ticks with ${kind}, of which 0 ran more than once$`, "m"))
      }
    }),
  { concurrent: true }
)

/** Node arguments that set a program's clock back. */
const clockBehind = (millis: number) => [
  "--import",
  `data:text/javascript,${encodeURIComponent(`
    const { Date: Real } = globalThis
    globalThis.Date = class extends Real {
      constructor(...args) {
        if (args.length === 0) super(Real.now() - ${millis})
        else super(...args)
      }
      static now() {
        return Real.now() - ${millis}
      }
    }
  `)}`
]

it.live(
  "With the coordinator for node-cron each tick runs once in two processes whose clocks are 1.5 seconds apart",
  () =>
    Effect.gen(function* () {
      const env = { SCHEDULE: freshName("example") }
      const program = "cron/dist/nodeCron.js"
      const behind = yield* startExample(program, ["behind"], env, clockBehind(1500))
      yield* eventually(
        "it runs ticks alone",
        () => behind.lines.length,
        (count) => count > 0
      )
      const ahead = yield* startExample(program, ["ahead"], env)
      yield* until("the one that is first runs them", () => ahead.lines.length >= 3)
      const seen = behind.lines.length
      yield* ahead.end
      yield* until("the other one goes on alone", () => behind.lines.length > seen)
      yield* behind.end
      const ticks = [...behind.lines, ...ahead.lines].map((line) => line.replace(/: \w+$/, ""))
      assert.deepStrictEqual(ticks.toSorted(), [...new Set(ticks)].toSorted())
    }).pipe(Effect.scoped),
  { concurrent: true }
)
