/**
 * `pnpm chaos`: a chaos run from a seed that it prints; its options are below. `pnpm chaos check FILE`: checks a history. Exits with 1 and prints what
 * happened where something did not hold.
 */
import { entryOf } from "@effect-redis-lock/bench/entries"
import { median } from "@effect-redis-lock/bench/statistics"
import { Effect } from "effect"
import { mkdtempSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { chaos } from "./chaos.ts"
import { buildChecker, checkHistory, type Verdict } from "./check.ts"
import { writeHistory } from "./history.ts"
import { describeFault, nemeses } from "./nemeses.ts"
import type { Figures } from "./plot.ts"
import { noPostgresql, type RegisterPlace } from "./register.ts"
import type { ServerKind } from "./sites.ts"
import { impossible as noClocks } from "./skewedServer.ts"

/** What is printed of the events around the first violation; all of them are in a file. */
const BEFORE_MILLIS = 5000
const AFTER_MILLIS = 1000
const MOST_LINES = 400

const servers = ["single", "sentinel", "cluster", "quorum"]

const usage =
  `usage: pnpm chaos [--minutes 1] [--seed n] [--server ${servers.join("|")}] [--library name]\n` +
  `         [--only ${Object.keys(nemeses).join(",")}]\n` +
  `         [--register redis|postgresql] [--unacknowledged] [--unfenced] [--apart] [--steady]\n` +
  `         [--history file] [--figures file]\n` +
  `       pnpm chaos check FILE`

const fail = (problem: string): never => {
  console.error(`${problem}\n${usage}`)
  process.exit(2)
}

const parse = () => {
  try {
    const text = { type: "string" } as const
    return parseArgs({
      args: process.argv.slice(2).filter((word) => word !== "--"),
      options: {
        minutes: text,
        seed: text,
        server: text,
        library: text,
        only: text,
        register: text,
        history: text,
        figures: text,
        unacknowledged: { type: "boolean" },
        unfenced: { type: "boolean" },
        apart: { type: "boolean" },
        steady: { type: "boolean" },
        help: { type: "boolean", short: "h" }
      },
      allowPositionals: true
    })
  } catch (error) {
    return fail((error as Error).message)
  }
}

const printVerdicts = (verdicts: ReadonlyArray<Verdict>) => {
  for (const { anomalies, holdings, lock, model, refused, undecided } of verdicts) {
    console.log(
      `${lock}, ${model}: ${holdings} holdings, ${anomalies} anomalies` +
        `${model === "fenced" ? `, ${refused} writes refused` : ""}${undecided > 0 ? `, ${undecided} undecided` : ""}`
    )
  }
}

/** Of each model the first anomaly. */
const printAnomalies = (verdicts: ReadonlyArray<Verdict>) => {
  for (const { first } of verdicts) {
    for (const operation of first?.flat() ?? []) console.log(`  ${JSON.stringify(operation)}`)
  }
}

const {
  positionals: [command, file, ...more],
  values: given
} = parse()
if (given.help === true) {
  console.log(usage)
  process.exit(0)
}
if (command !== undefined) {
  if (command !== "check" || file === undefined || more.length > 0) fail(`there is no ${command}`)
  const reason = await buildChecker()
  if (reason !== undefined) fail(`not checked: ${reason}`)
  const verdicts = await checkHistory(file!).catch((error: Error) => fail(error.message))
  printVerdicts(verdicts)
  printAnomalies(verdicts)
  process.exit(verdicts.some(({ anomalies, undecided }) => anomalies + undecided > 0) ? 1 : 0)
}

const minutes = Number(given.minutes ?? 1)
const seed = Number(given.seed ?? Date.now() % 1_000_000)
const { history, library, register = "redis", server = "single" } = given
const only = given.only?.split(",")
if (!(minutes > 0)) fail("--minutes is no number")
if (!Number.isInteger(seed)) fail("--seed is no number")
if (!servers.includes(server)) fail(`--server ${server} is unknown`)
if (only?.every((fault) => fault in nemeses) === false) fail(`--only ${given.only} has an unknown fault`)
// a permit without a lease stays with a process that is killed
if (given.steady === true && only?.includes("kill") !== false) fail("--steady needs --only, without kill")
if (!/^(redis|postgresql)$/.test(register)) fail(`--register ${register} is unknown`)
const missing =
  (register === "postgresql" ? await noPostgresql() : undefined) ??
  (library === undefined || library === "naive" ? undefined : await entryOf(library).prepare?.()) ??
  (only?.some((fault) => nemeses[fault]!.setsClocks === true) === true ? noClocks : undefined)
if (missing !== undefined) fail(missing)
if (library !== undefined && (server === "sentinel" || server === "cluster")) fail("other libraries: single or quorum")

const words = Object.entries({ ...given, minutes, seed }).flatMap(([name, value]) =>
  value === true ? [`--${name}`] : [`--${name}`, /^[\w.,/-]+$/.test(String(value)) ? String(value) : `"${value}"`]
)
console.log(`again with: pnpm chaos ${words.join(" ")}`)

const report = await Effect.runPromise(
  Effect.scoped(
    chaos({
      ...{ seed, millis: minutes * 60_000, server: server as ServerKind, library, only },
      register: register as RegisterPlace["system"],
      acknowledge: given.unacknowledged === true ? false : undefined,
      fenced: given.unfenced !== true,
      apart: given.apart === true,
      steady: given.steady === true
    })
  )
)

const count = new Map<string, number>()
for (const { fault } of report.faults) count.set(fault, (count.get(fault) ?? 0) + 1)
console.log(`faults: ${[...count].map(([fault, times]) => `${times} ${fault}`).join(", ")}`)
const { served } = report
console.log(
  `${report.sections.length} sections, ${report.lost} lost, ${report.failed} failed for lack of Redis, ` +
    `${report.uncaught} exceptions that nobody caught; served ` +
    `${median(served).toFixed(0)} ms after the last fault (median of ${served.length} fibers), ${served.at(-1)?.toFixed(0)} ms at most`
)
for (const lock of given.steady === true ? new Set(report.gaps.map(({ lock }) => lock)) : []) {
  const gaps = report.gaps.flatMap((gap) => (gap.lock === lock ? [gap.millis] : []))
  console.log(
    `${lock}: nobody inside for ${median(gaps).toFixed(0)} ms after a fault (median of ${gaps.length}), ` +
      `${Math.max(...gaps).toFixed(0)} ms at most`
  )
}
if (typeof report.verdicts === "string") console.log(`not checked by Porcupine: ${report.verdicts}`)
else printVerdicts(report.verdicts)
if (history !== undefined) writeHistory(history, report.operations)
if (given.figures !== undefined) {
  const { recoveries, verdicts } = report
  const figures: Figures = {
    library: library ?? "effect-redis-lock",
    server,
    ...(given.apart === true ? { recoveries } : typeof verdicts === "string" ? {} : { verdicts })
  }
  writeFileSync(given.figures, JSON.stringify(figures))
}

const time = (millis: number) => `${(millis / 1000).toFixed(3).padStart(8)} s`
const [first] = report.violations
if (first !== undefined) {
  const offset = report.began
  const lines = report.events.map(({ at, line }) => `${time(at)}  ${line}`)
  const directory = mkdtempSync(join(tmpdir(), "chaos-"))
  writeFileSync(join(directory, "events.txt"), `${lines.join("\n")}\n`)
  writeHistory(join(directory, "history.jsonl"), report.operations)
  console.log(`\n${report.violations.length} violations:`)
  for (const { at, what } of report.violations.slice(0, 30)) console.log(`${time(at - offset)}  ${what}`)
  if (typeof report.verdicts !== "string") printAnomalies(report.verdicts)
  if (library === undefined) {
    console.log("\nFaults:")
    for (const fault of report.faults) console.log(`${time(fault.at)}  ${describeFault(fault)}`)
    console.log("\nWhat happened around the first one:")
    const from = first.at - offset - BEFORE_MILLIS
    const to = first.at - offset + AFTER_MILLIS
    const around = report.events.filter(({ at }) => at >= from && at <= to)
    for (const { at, line } of around.slice(-MOST_LINES)) console.log(`${time(at)}  ${line}`)
  }
  console.log(`\nall of it: ${directory}`)
}
process.exit(first === undefined ? 0 : 1)
