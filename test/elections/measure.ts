/**
 * `pnpm elections:measure`: leaders in four processes resign, for half a minute, while others wait. Exits with 1 if one in a hundred hand-overs took
 * longer than 50 ms. Delays of the machine itself are allowed for.
 */
import { chaos } from "@effect-redis-lock/chaos/chaos"
import { Effect } from "effect"
import { percentile } from "../kit/percentile.ts"

const longestHandOverMillis = 50

/** How late a timer fired because the machine was busy, milliseconds. */
let lag = 0
let expected = performance.now() + 10
setInterval(() => {
  lag = Math.max(lag, performance.now() - expected)
  expected = performance.now() + 10
}, 10).unref()

const run = chaos({ seed: 1, millis: 30_000, kinds: ["leader"], steady: true, faults: [] })
const { sections, violations } = await Effect.runPromise(run)
/** From the end of each `resign`, or from when another process wanted to lead after it, until that knew that it was elected. */
const millis = sections.slice(1).flatMap(({ asked, entered, process }, i) => {
  const { ended, process: before } = sections[i]!
  return ended === undefined || process === before ? [] : [entered - Math.max(ended, asked)]
})
const [median, slow, slowest] = [50, 99, 100].map((percent) => percentile(millis, percent)) as [number, number, number]
console.log(
  `${millis.length} resignations; from \`resign\` returned to elected in another process: ${median.toFixed(1)} ms (median), ${slow.toFixed(1)} ms (p99), ${slowest.toFixed(1)} ms at most; timers of this machine were up to ${Math.round(lag)} ms late`
)
for (const { what } of violations) console.error(what)
process.exit(violations.length > 0 || millis.length === 0 || slow > longestHandOverMillis + lag ? 1 : 0)
