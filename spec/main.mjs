/**
 * `pnpm spec`: checks the specifications. It runs the scenarios, shows for each protection what breaks without it, and simulates the
 * locks as they are, with all faults; always with the same seeds. `pnpm spec --long [minutes]` simulates with new seeds, for two hours by default.
 * `--only readWrite` checks one of them. It also checks that each allows a run of the real library, as it was last built: `--run 7` only that, of
 * seed 7.
 * Fails if anything is violated that must hold, or if anything holds that must be violated.
 */
import { execFileSync, spawn } from "node:child_process"
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { availableParallelism } from "node:os"
import { parseArgs } from "node:util"

const root = new URL(".", import.meta.url).pathname
const out = `${root}dist`
mkdirSync(out, { recursive: true })

const guaranteed = ["repeated", "forged", "deaf", "clock back", "clock forward", "restart"]
const losing = ["repeated", "deaf", "empty", "failover", "writes"]

/**
 * The processes of each specification; where `served` is checked, others, and calm: what they do there is in processes.qnt.
 */
const specifications = {
  lock: { who: "PROCESSES = Set(1, 2)", calm: "PROCESSES = Set(1, 2, 3)" },
  readWrite: { who: "READERS = Set(1, 2), WRITERS = Set(3, 4)", calm: "READERS = Set(1, 2), WRITERS = Set(2, 3)" },
  permits: {
    who: "PERMITS = 2, ONE = Set(1, 2), ALL = Set(2, 3)",
    calm: "PERMITS = 2, ONE = Set(1, 2), ALL = Set(3)"
  },
  fairQueue: { who: "PROCESSES = Set(1, 2, 3)", calm: "PROCESSES = Set(1, 2, 3)" },
  quorum: { who: "PROCESSES = Set(1, 2)" }
}

/** What must hold: a lock with these faults, how much of it the short run simulates, and what some of its traces must reach. */
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
    isCalm: true,
    faults: ["lost messages"],
    holds: ["served"],
    samples: 20,
    steps: 200
  },
  {
    title: "the read-write lock, with every fault that it stands",
    spec: "readWrite",
    faults: guaranteed,
    holds: ["writerAlone", "heldOnServer", "tokensRise", "nothingLate"],
    samples: 30
  },
  {
    title: "tokens of writers, where the read-write lock is lost",
    spec: "readWrite",
    faults: losing,
    holds: ["tokensRise"],
    samples: 10
  },
  {
    title: "readers and writers are served",
    spec: "readWrite",
    isCalm: true,
    faults: ["lost messages"],
    holds: ["served"],
    samples: 15,
    steps: 200
  },
  {
    title: "permits, with every fault that they stand",
    spec: "permits",
    faults: [...guaranteed, "evicted"],
    holds: ["limited", "heldOnServer", "noneLost", "nothingLate"],
    samples: 30
  },
  {
    title: "permits, where grants are lost",
    spec: "permits",
    faults: losing,
    holds: ["noneLost"],
    samples: 10
  },
  {
    title: "whoever wants all permits is served, and so are the others",
    spec: "permits",
    isCalm: true,
    faults: ["lost messages"],
    holds: ["served"],
    samples: 10,
    steps: 250
  },
  {
    title: "the fair lock, with every fault that it stands",
    spec: "fairQueue",
    faults: guaranteed,
    holds: ["exclusive", "inOrder", "tokensRise", "nothingLate"],
    samples: 30
  },
  {
    title: "places of a fair lock",
    spec: "fairQueue",
    faults: ["forged", "deaf"],
    holds: ["inOrder", "noGhosts"],
    samples: 20
  },
  {
    title: "everybody is served by a fair lock, in order",
    spec: "fairQueue",
    isCalm: true,
    faults: ["lost messages"],
    holds: ["served", "inOrder"],
    samples: 10,
    steps: 200
  },
  {
    title: "the lock of a quorum, with every fault that it stands",
    spec: "quorum",
    faults: ["repeated", "writes", "away"],
    holds: ["exclusive", "tokensRise", "nothingLate", "writesInOrder"],
    reaches: ["conflict", "lateMajority", "grantedTwice", "lateHolder", "renewing", "heldAndForgotten", "lateWrite"],
    samples: 60,
    steps: 150
  }
]

/** Shown by a scenario, and by a random run as well. */
const onQuorum = { spec: "quorum", hasScenario: true, steps: 150 }

/** What must break: without a protection, or where the documentation says that a lock is lost. `seed` shows it in one trace, or else
 * its scenario in the specification; or both do. */
const breaking = [
  { without: "owner in message", faults: ["forged"], breaks: "exclusive", seed: "0x16f08" },
  { without: "time in message", breaks: "exclusive", seed: "0x1fda01" },
  { without: "extension confirmed", breaks: "exclusive" },
  { without: "command deadline", breaks: "nothingLate", seed: "0x615" },
  { without: "rollback repeated", breaks: "nothingLate", seed: 1 },
  { without: "compare on release", breaks: "exclusive", seed: "0x7ad3" },
  { without: "compare on renewal", breaks: "exclusive" },
  { without: "owner used once", breaks: "exclusive", seed: "0x28b63" },
  { without: "lease counted from sending", breaks: "exclusive", seed: "0x47ee0" },
  { without: "drift allowance", breaks: "exclusive", seed: "0x192322" },
  { without: "last token", faults: ["clock back"], breaks: "tokensRise", seed: 1 },
  { without: "time in tokens", faults: ["empty"], breaks: "tokensRise", seed: 1 },
  { without: "fencing", faults: ["writes"], breaks: "writesInOrder", seed: "0x1aa1e0" },
  { without: "places", isCalm: true, breaks: "served", seed: 1 },
  { without: "oldest place first", isCalm: true, breaks: "served", seed: 1 },
  { without: "fallback interval", isCalm: true, faults: ["lost messages"], breaks: "served", seed: 1 },
  { title: "a restart without data", faults: ["empty"], breaks: "exclusive", seed: "0x694b" },
  { title: "a failover to a replica that lags", faults: ["failover"], breaks: "exclusive", seed: "0x609a6" },
  { spec: "readWrite", without: "longest hold", breaks: "writerAlone" },
  { spec: "readWrite", without: "a writer waits for readers", breaks: "writerAlone" },
  { spec: "readWrite", without: "owner in message", breaks: "writerAlone" },
  { spec: "readWrite", without: "time in message", breaks: "writerAlone" },
  { spec: "readWrite", without: "extension confirmed", breaks: "writerAlone" },
  { spec: "readWrite", without: "command deadline", breaks: "nothingLate" },
  { spec: "readWrite", without: "rollback repeated", breaks: "nothingLate" },
  { spec: "readWrite", without: "compare on release", breaks: "writerAlone" },
  { spec: "readWrite", without: "owner used once", breaks: "heldOnServer" },
  { spec: "readWrite", without: "last token", breaks: "tokensRise" },
  { spec: "readWrite", without: "time in tokens", breaks: "tokensRise" },
  { spec: "readWrite", without: "end of a writer's silence", breaks: "the end of its wait" },
  { spec: "readWrite", without: "age of places", breaks: "its turn" },
  { spec: "readWrite", without: "readers behind a writer that left", breaks: "their message" },
  {
    spec: "readWrite",
    isCalm: true,
    who: "READERS = Set(1, 2), WRITERS = Set(3)",
    without: "older writers first",
    faults: ["lost messages"],
    breaks: "served",
    seed: "0xab3"
  },
  {
    spec: "readWrite",
    isCalm: true,
    who: "READERS = Set(1), WRITERS = Set(2, 3)",
    without: "places of readers",
    faults: ["lost messages"],
    breaks: "served",
    seed: 1
  },
  { spec: "permits", without: "counts what it removes", faults: ["repeated"], breaks: "noneLost", seed: 1 },
  { spec: "permits", without: "sent twice, taken once", breaks: "noneLost" },
  { spec: "permits", without: "end of leases", breaks: "the end of a wait" },
  { spec: "permits", without: "held permits count", breaks: "limited" },
  { spec: "permits", without: "command deadline", breaks: "nothingLate" },
  { spec: "permits", without: "rollback repeated", breaks: "nothingLate" },
  { spec: "permits", without: "owner used once", breaks: "limited" },
  { spec: "permits", without: "lease counted from sending", breaks: "limited" },
  { spec: "permits", without: "permits kept", breaks: "the end of its wait" },
  { spec: "permits", without: "end of a silence", breaks: "the end of a wait" },
  { spec: "fairQueue", without: "order of places", breaks: "inOrder" },
  { spec: "fairQueue", without: "death by silence", breaks: "the end of a wait" },
  { spec: "fairQueue", without: "a stall is no death", breaks: "the place of one that could not report" },
  { spec: "fairQueue", without: "secret", breaks: "exclusive" },
  { spec: "fairQueue", without: "time in message", breaks: "exclusive" },
  { spec: "fairQueue", without: "extension confirmed", breaks: "exclusive" },
  { spec: "fairQueue", without: "urgent refresh", breaks: "noGhosts" },
  { spec: "fairQueue", isCalm: true, without: "reports", faults: ["lost messages"], breaks: "served", seed: 1 },
  { spec: "quorum", without: "rollback", breaks: "the freedom of both servers" },
  { ...onQuorum, without: "majority", breaks: "exclusive", seed: "0x1664" },
  { ...onQuorum, without: "command deadline", breaks: "nothingLate", seed: "0x368d" },
  { ...onQuorum, without: "lease counted from sending", breaks: "exclusive", seed: "0x196c8" },
  { ...onQuorum, without: "drift allowance", breaks: "exclusive", seed: "0x64185" },
  { ...onQuorum, without: "token on record", breaks: "tokensRise", seed: "0x426cc" },
  { ...onQuorum, without: "fencing", faults: ["writes"], breaks: "writesInOrder", seed: "0x4428" },
  {
    ...{ spec: "quorum", steps: 150 },
    title: "a member that is back at once without its data",
    faults: ["empty"],
    breaks: "exclusive",
    seed: "0x56054"
  }
]

const isInScenario = ({ hasScenario = false, seed }) => hasScenario || seed === undefined

const setOf = (words) => `Set(${words.map((word) => `"${word}"`).join(", ")})`

/** The instance of the specification for a case. */
const instanceOf = ({ faults = [], isCalm, spec = "lock", who, without }) => {
  const processes = who ?? specifications[spec][isCalm ? "calm" : "who"]
  const removed = setOf(without === undefined ? [] : [without])
  return `import ${spec}(WITHOUT = ${removed}, FAULTS = ${setOf(faults)}, ${processes}).* from "../${spec}"`
}

const quint = (...args) =>
  new Promise((resolve) => {
    const child = spawn(`${root}node_modules/.bin/quint`, args, { cwd: out, stdio: ["ignore", "pipe", "pipe"] })
    let output = ""
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (text) => (output += text))
    child.on("close", (code) => resolve({ code, output }))
  })

/** Simulates one case. `found` is the seed of a trace that ends in a violation, if there is one; `reached` in how many traces each witness was true. */
const simulate = async (test, invariants, { reaches = [], samples, seed, steps = 80 }) => {
  const module = `case_${test.index}`
  write(test, module)
  const { code, output } = await quint(
    ...["run", `${module}.qnt`, "--backend=typescript", "--verbosity=1", `--seed=${seed}`],
    ...(test.isCalm ? ["--step=calmStep"] : []),
    ...["--invariants", ...invariants],
    ...(reaches.length > 0 ? ["--witnesses", ...reaches] : []),
    ...[`--max-samples=${samples}`, `--max-steps=${steps}`]
  )
  const found = /\[violation\][^]*--seed=(\w+)/.exec(output)
  if (found === null && (code !== 0 || !output.includes("[ok]"))) throw new Error(`quint failed:\n${output}`)
  const reached = reaches.map((witness) =>
    Number(new RegExp(`^${witness} was witnessed in (\\d+)`, "m").exec(output)?.[1] ?? 0)
  )
  return { found: found?.[1], reached }
}

const write = (test, module) => writeFileSync(`${out}/${module}.qnt`, `module ${module} {\n  ${instanceOf(test)}\n}\n`)

const titleOf = ({ spec = "lock", title, without }) => title ?? `${spec} without "${without}"`
const traceOf = ({ index, isCalm, steps = 80 }, seed) =>
  `cd spec/dist && ../node_modules/.bin/quint run case_${index}.qnt --backend=typescript${isCalm ? " --step=calmStep" : ""} --max-steps=${steps} --seed=${seed} --verbosity=3`

const failures = []
const fail = (test, problem) => {
  failures.push(test)
  console.log(`FAIL  ${titleOf(test)}: ${problem}`)
}

/** Simulates what must hold, from a seed. */
const mustHold = async (test, seed) => {
  const startedAt = performance.now()
  const { found, reached } = await simulate(test, test.holds, { ...test, seed })
  const what = `${titleOf(test)}: ${test.holds.join(", ")}`
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(0)
  const counts = (test.reaches ?? []).map((witness, i) => `${witness} ${reached[i]}`)
  if (found !== undefined) fail(test, `one of ${test.holds.join(", ")} is violated\n      ${traceOf(test, found)}`)
  else if (reached.includes(0)) fail(test, `no trace comes to one of ${counts.join(", ")}`)
  else {
    console.log(`ok    ${what}: ${test.samples} traces of ${test.steps ?? 80} steps from seed ${seed}, ${seconds} s`)
    if (counts.length > 0) console.log(`      of these came to ${counts.join(", ")}`)
  }
}

/**
 * Runs the scenarios of a specification: as it is, and without each protection that has one. All end well; without a protection, its own
 * must break, and no other: each says which one it needs.
 */
const mustShow = async (spec) => {
  const whole = { spec, title: `${spec}: all scenarios end well` }
  const cases = [whole, ...breaking.filter((test) => (test.spec ?? "lock") === spec && isInScenario(test))]
  const module = `scenarios_${spec}`
  const instances = cases.map((test, index) => `  ${instanceOf(test).replace(".*", ` as case_${index}`)}\n`)
  writeFileSync(`${out}/${module}.qnt`, `module ${module} {\n${instances.join("")}}\n`)
  const { output } = await quint("test", `${module}.qnt`, "--backend=typescript", "--max-samples=1", "--seed=1")
  for (const [index, test] of cases.entries()) {
    const of = output.split("\n").filter((line) => line.includes(`case_${index}::`))
    const failed = of.filter((line) => line.includes("failed"))
    if (failed.length > 0 || of.length === 0) fail(test, failed.length > 0 ? failed.join("\n") : output)
    else if (test === whole) console.log(`ok    ${titleOf(test)}`)
    else console.log(`ok    ${titleOf(test)}: ${test.breaks} is violated by its scenario, and by no other`)
  }
}

/** Repeats the counterexample that is known; if the specification has changed since, looks for another. */
const mustBreak = async (test) => {
  const { found: known } = await simulate(test, [test.breaks], {
    steps: test.isCalm ? 200 : 80,
    ...test,
    samples: 1,
    seed: test.seed
  })
  const found = known ?? (await simulate(test, [test.breaks], { ...test, samples: 2000, seed: 1 })).found
  if (found === undefined) fail(test, `${test.breaks} is not violated`)
  else
    console.log(
      `ok    ${titleOf(test)}: ${test.breaks} is violated, seed ${found}${known === undefined ? ", a new one: note it in spec/main.mjs" : ""}`
    )
}

/** The words of a run, which are written as their place here: Quint reads rows of numbers faster than records. */
const words = [
  ...["", "sends", "arrives", "reads", "fails", "acquire", "release", "renew", "leave", "refresh"],
  ...["granted", "denied", "late", "released", "not held", "extended", "left", "no place", "turn", "wait", "error"],
  ...["read", "write", "one", "all"]
]
const rowOf = ({ told, ...event }) => {
  const [is, op, wants, reply] = [event.is, event.op, event.wants, event.reply].map((text) => words.indexOf(text))
  const { age, at, command, deadline, deaf, gone, hasAsked, owner, process, server, waited } = event
  return [
    ...[is, at, process, command, op, owner, wants, reply, Number(hasAsked), waited, age, deadline],
    ...[deaf.length, ...deaf, gone.length, ...gone],
    ...[told.length, ...told.flatMap(({ owner, time, token }) => [owner, token, time])],
    ...server
  ]
}

/** Makes a run of the real library (test/simulation/trace.ts), and has the specification follow it to its end. */
const mustAllow = async (spec, seed) => {
  const test = { title: `${spec}: a run of the real library, seed ${seed}` }
  const run = [`${root}../test/dist/simulation/trace.js`, spec, `${seed}`]
  const events = JSON.parse(execFileSync(process.execPath, run, { maxBuffer: 2 ** 26 }))
  const rows = events.map((event) => `    [${rowOf(event).join(", ")}]`)
  const [trace, common] = [`${spec}Trace`, "trace"].map((name) => readFileSync(`${root}${name}.qnt`, "utf8"))
  const listed = `  pure val words = ${JSON.stringify(words)}\n  pure val rows = [\n${rows.join(",\n")}\n  ]\n`
  writeFileSync(
    `${out}/${spec}Trace.qnt`,
    trace.replace("  //@include trace\n", () => common + listed)
  )
  const itf = `${out}/${spec}Trace.itf.json`
  const { code, output } = await quint(
    ...["run", `${spec}Trace.qnt`, "--backend=typescript", "--verbosity=1", "--init=starts", "--step=follows"],
    ...["--invariants", "fits", "ends", "unharmed"],
    ...["--max-samples=1", `--max-steps=${2 * events.length}`, `--out-itf=${itf}`]
  )
  if (!/\[(ok|violation)\]/.test(output)) throw new Error(`quint failed:\n${output}`)
  const last = JSON.parse(readFileSync(itf, "utf8")).states.at(-1)
  const { isReady, next } = last[Object.keys(last).find((key) => key.endsWith("trace"))]
  const at = Number(next["#bigint"] ?? next)
  if (code === 0 && at === events.length) console.log(`ok    ${titleOf(test)}: ${spec}.qnt allows its ${at} events`)
  else {
    const problem = isReady ? `event ${at + 1} is not allowed` : `after event ${at} the specification says otherwise`
    fail(test, `${problem}: ${JSON.stringify(events[isReady ? at : at - 1])}`)
  }
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
  options: { long: { type: "boolean", default: false }, only: { type: "string" }, run: { type: "string" } }
})
for (const [index, test] of [...holding, ...breaking].entries()) test.index = index
const isWanted = ({ spec = "lock" }) => (values.only ?? spec) === spec
const specs = Object.keys(specifications).filter((spec) => isWanted({ spec }))
/** Those of which the library can make a run. */
const runnable = specs.filter((spec) => spec !== "quorum")
if (values.run !== undefined) {
  for (const spec of runnable) await mustAllow(spec, Number(values.run))
} else if (values.long) {
  const until = performance.now() + Number(positionals[0] ?? 120) * 60_000
  const untilOver = holding.filter(isWanted).map((test) => async () => {
    while (performance.now() < until && failures.length === 0) {
      await mustHold({ ...test, samples: 10 * test.samples }, Math.floor(Math.random() * 2 ** 32))
    }
  })
  const traced = runnable.map(async (spec) => {
    while (performance.now() < until && failures.length === 0)
      await mustAllow(spec, Math.floor(Math.random() * 2 ** 31))
  })
  await Promise.all([...untilOver.map((run) => run()), ...traced])
} else {
  await inParallel([
    ...specs.map((spec) => () => mustShow(spec)),
    ...runnable.map((spec) => () => mustAllow(spec, 1)),
    ...holding.filter(isWanted).map((test) => () => mustHold(test, 1)),
    ...breaking.filter((test) => isWanted(test) && test.seed !== undefined).map((test) => () => mustBreak(test))
  ])
}
process.exitCode = failures.length === 0 ? 0 : 1
