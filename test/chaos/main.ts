/**
 * `pnpm chaos [minutes] [seed]`: a chaos run, one minute by default, from a seed that it prints. Exits with 1 and prints what
 * happened where something did not hold. `--broken` makes one of the clients ignore its losses, which must be found.
 */
import { Effect } from "effect"
import { mkdtempSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { watchLeftovers } from "../run/leftovers.ts"
import { chaos } from "./chaos.ts"
import { describeFault } from "./schedule.ts"

/** What is printed of the history around the first violation; all of it is in a file. */
const BEFORE_MILLIS = 5000
const AFTER_MILLIS = 1000
const MOST_LINES = 400

const words = process.argv.slice(2).filter((word) => word !== "--")
const broken = words.includes("--broken")
const [minutes = 1, seed = Date.now() % 1_000_000] = words.filter((word) => !word.startsWith("--")).map(Number)
if (!(minutes > 0) || !Number.isInteger(seed)) {
  console.error("usage: pnpm chaos [minutes] [seed] [--broken]")
  process.exit(2)
}

const time = (millis: number) => `${(millis / 1000).toFixed(3).padStart(8)} s`

const temporary = tmpdir()
const leftovers = watchLeftovers()
console.log(`chaos: ${minutes} min, seed ${seed} (again with: pnpm chaos ${minutes} ${seed})`)
const report = await Effect.runPromise(chaos({ seed, millis: minutes * 60_000, broken }))
await leftovers.close()

const count = new Map<string, number>()
for (const { fault } of report.faults) count.set(fault, (count.get(fault) ?? 0) + 1)
console.log(`faults: ${[...count].map(([fault, times]) => `${times} ${fault}`).join(", ")}`)
console.log(
  `${report.sections} sections, ${report.lost} lost, ${report.failed} failed for lack of Redis; all served ` +
    `${report.served.toFixed(0)} ms after the last fault; ${report.violations.length} violations`
)
const [first] = report.violations
if (first !== undefined) {
  const offset = report.began
  const lines = report.history.map(({ at, line }) => `${time(at)}  ${line}`)
  const file = join(mkdtempSync(join(temporary, "chaos-")), `history-${seed}.txt`)
  writeFileSync(file, `${lines.join("\n")}\n`)
  console.log("\nFaults:")
  for (const fault of report.faults) console.log(`${time(fault.at)}  ${describeFault(fault)}`)
  console.log("\nViolations:")
  for (const { at, what } of report.violations.slice(0, 30)) console.log(`${time(at - offset)}  ${what}`)
  if (report.violations.length > 30) console.log(`  and ${report.violations.length - 30} others`)
  console.log(`\nWhat happened around the first one (all of it: ${file}):`)
  const from = first.at - offset - BEFORE_MILLIS
  const to = first.at - offset + AFTER_MILLIS
  for (const { at, line } of report.history.filter(({ at }) => at >= from && at <= to).slice(-MOST_LINES)) {
    console.log(`${time(at)}  ${line}`)
  }
}
process.exit(first === undefined ? 0 : 1)
