/**
 * `pnpm spec`: checks the specification. It runs the scenarios, shows for each protection how the lock breaks without it, and simulates the
 * lock as it is, with all faults; always with the same seeds. `pnpm spec --long [minutes]` simulates with new seeds, for two hours by default.
 * Fails if anything is violated that must hold, or if anything holds that must be violated.
 */
import { spawn } from "node:child_process"
import { mkdirSync, writeFileSync } from "node:fs"
import { availableParallelism } from "node:os"
import { parseArgs } from "node:util"

const root = new URL(".", import.meta.url).pathname
const out = `${root}dist`
mkdirSync(out, { recursive: true })

const guaranteed = ["repeated", "forged", "deaf", "clock back", "clock forward", "restart"]
const losing = ["repeated", "deaf", "empty", "failover", "writes"]

/** What must hold: a lock with these faults, and how much of it the short run simulates. */
const holding = [
  {
    title: "the lock, with every fault that it stands",
    faults: guaranteed,
    holds: ["exclusive", "tokensRise", "nothingLate"],
    samples: 60
  },
  {
    title: "tokens, and writes that carry them, where the lock is lost",
    faults: losing,
    holds: ["tokensRise", "writesInOrder"],
    samples: 30
  },
  {
    title: "everybody is served",
    spec: "liveness",
    faults: ["lost messages"],
    holds: ["served"],
    samples: 20,
    steps: 200
  }
]

/** What must break: without a protection, or where the documentation says that a lock is lost. `seed` shows it in one trace, or else
 * its scenario in lock.qnt. */
const breaking = [
  { without: "owner in message", faults: ["forged"], breaks: "exclusive", seed: "0x16f08" },
  { without: "time in message", breaks: "exclusive", seed: "0x1fda01" },
  { without: "extension confirmed", breaks: "exclusive" },
  { without: "command deadline", breaks: "nothingLate", seed: 1 },
  { without: "rollback repeated", breaks: "nothingLate", seed: 1 },
  { without: "compare on release", breaks: "exclusive", seed: "0x7ad3" },
  { without: "compare on renewal", breaks: "exclusive" },
  { without: "owner used once", breaks: "exclusive", seed: "0x28b63" },
  { without: "lease counted from sending", breaks: "exclusive", seed: "0x47ee0" },
  { without: "drift allowance", breaks: "exclusive", seed: "0x192322" },
  { without: "last token", faults: ["clock back"], breaks: "tokensRise", seed: 1 },
  { without: "time in tokens", faults: ["empty"], breaks: "tokensRise", seed: 1 },
  { without: "fencing", faults: ["writes"], breaks: "writesInOrder", seed: "0x1aa1e0" },
  { without: "places", spec: "liveness", breaks: "served", seed: 1 },
  { without: "oldest place first", spec: "liveness", breaks: "served", seed: 1 },
  { without: "fallback interval", spec: "liveness", faults: ["lost messages"], breaks: "served", seed: 1 },
  { title: "a restart without data", faults: ["empty"], breaks: "exclusive", seed: "0x694b" },
  { title: "a failover to a replica that lags", faults: ["failover"], breaks: "exclusive", seed: "0x609a6" }
]

const setOf = (words) => `Set(${words.map((word) => `"${word}"`).join(", ")})`

/** The instance of the specification for a case. */
const instanceOf = ({ faults = [], spec = "lock", without }) => {
  const removed = setOf(without === undefined ? [] : [without])
  return spec === "liveness"
    ? `import liveness(REMOVED = ${removed}, OCCURS = ${setOf(faults)}, WAITERS = Set(1, 2, 3)).* from "../liveness"`
    : `import lock(WITHOUT = ${removed}, FAULTS = ${setOf(faults)}, PROCESSES = Set(1, 2)).* from "../lock"`
}

const quint = (...args) =>
  new Promise((resolve) => {
    const child = spawn(`${root}node_modules/.bin/quint`, args, { cwd: out, stdio: ["ignore", "pipe", "pipe"] })
    let output = ""
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (text) => (output += text))
    child.on("close", (code) => resolve({ code, output }))
  })

/** Simulates one case. The violation, if there is one, with the seed of its trace. */
const simulate = async (test, invariants, { samples, seed, steps = 80 }) => {
  const module = `case_${test.index}`
  write(test, module)
  const { code, output } = await quint(
    ...["run", `${module}.qnt`, "--backend=typescript", "--verbosity=1", `--seed=${seed}`],
    ...(test.spec === "liveness" ? ["--init=calmInit", "--step=calmStep"] : []),
    ...["--invariants", ...invariants],
    ...[`--max-samples=${samples}`, `--max-steps=${steps}`]
  )
  const found = /\[violation\][^]*--seed=(\w+)/.exec(output)
  if (found === null && (code !== 0 || !output.includes("[ok]"))) throw new Error(`quint failed:\n${output}`)
  return found?.[1]
}

const write = (test, module) => writeFileSync(`${out}/${module}.qnt`, `module ${module} {\n  ${instanceOf(test)}\n}\n`)

/** Runs the scenarios of lock.qnt. Without a protection, its own must break, and no other: each says which one it needs. */
const scenarios = async (test) => {
  const module = `scenarios_${test.index ?? "all"}`
  write(test, module)
  const { code, output } = await quint("test", `${module}.qnt`, "--backend=typescript", "--max-samples=1", "--seed=1")
  return { isAsExpected: code === 0, output }
}

const titleOf = ({ title, without }) => title ?? `without "${without}"`
const traceOf = ({ index, steps = 80 }, seed) =>
  `cd spec/dist && ../node_modules/.bin/quint run case_${index}.qnt --backend=typescript --max-steps=${steps} --seed=${seed} --verbosity=3`

const failures = []
const fail = (test, problem) => {
  failures.push(test)
  console.log(`FAIL  ${titleOf(test)}: ${problem}`)
}

/** Simulates what must hold, from a seed. */
const mustHold = async (test, seed) => {
  const startedAt = performance.now()
  const found = await simulate(test, test.holds, { ...test, seed })
  const what = `${titleOf(test)}: ${test.holds.join(", ")}`
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(0)
  if (found === undefined)
    console.log(`ok    ${what}: ${test.samples} traces of ${test.steps ?? 80} steps from seed ${seed}, ${seconds} s`)
  else fail(test, `one of ${test.holds.join(", ")} is violated\n      ${traceOf(test, found)}`)
}

/** All scenarios end well with every protection. */
const mustEndWell = async () => {
  const test = { title: "all scenarios end well" }
  const { isAsExpected, output } = await scenarios(test)
  if (isAsExpected) console.log(`ok    ${test.title}`)
  else fail(test, output)
}

/** Repeats the counterexample that is known; if the specification has changed since, looks for another. */
const mustBreak = async (test) => {
  if (test.seed === undefined) {
    const { isAsExpected, output } = await scenarios(test)
    if (isAsExpected) console.log(`ok    ${titleOf(test)}: ${test.breaks} is violated by its scenario, and by no other`)
    else fail(test, output)
    return
  }
  const known = await simulate(test, [test.breaks], { ...test, samples: 1, seed: test.seed })
  const found = known ?? (await simulate(test, [test.breaks], { ...test, samples: 2000, seed: 1 }))
  if (found === undefined) fail(test, `${test.breaks} is not violated`)
  else
    console.log(
      `ok    ${titleOf(test)}: ${test.breaks} is violated, seed ${found}${known === undefined ? ", a new one: note it in spec/main.mjs" : ""}`
    )
}

const inParallel = async (tasks) => {
  const left = [...tasks]
  const worker = async () => {
    for (let task = left.shift(); task !== undefined; task = left.shift()) await task()
  }
  await Promise.all(Array.from({ length: availableParallelism() }, worker))
}

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { long: { type: "boolean", default: false } }
})
const tests = [...holding, ...breaking]
for (const [index, test] of tests.entries()) test.index = index
if (values.long) {
  const until = performance.now() + Number(positionals[0] ?? 120) * 60_000
  const untilOver = holding.map((test) => async () => {
    while (performance.now() < until && failures.length === 0) {
      await mustHold({ ...test, samples: 10 * test.samples }, Math.floor(Math.random() * 2 ** 32))
    }
  })
  await Promise.all(untilOver.map((run) => run()))
} else {
  await inParallel([
    mustEndWell,
    ...holding.map((test) => () => mustHold(test, 1)),
    ...breaking.map((test) => () => mustBreak(test))
  ])
}
process.exitCode = failures.length === 0 ? 0 : 1
