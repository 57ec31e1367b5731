/**
 * `node spec/traces.mjs`: writes spec/traces.json, runs of the specifications for test/contract/specification.test.ts to repeat on the real
 * scripts: what the server was told to do, when, by its clock in microseconds, and its state after that. Run it after a change of
 * a specification.
 */
import { execFileSync } from "node:child_process"
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"

const root = new URL(".", import.meta.url).pathname
const out = `${root}dist`
const [traces, seed] = [12, 1]
mkdirSync(out, { recursive: true })

/** A value of ITF as JSON: a map as its entries. */
const plain = (value) =>
  Array.isArray(value)
    ? value.map(plain)
    : typeof value !== "object"
      ? value
      : "#bigint" in value
        ? Number(value["#bigint"])
        : "#map" in value
          ? value["#map"].map(plain)
          : Object.fromEntries(Object.entries(value).map(([key, field]) => [key, plain(field)]))

/** What the scripts leave that a test cannot see, or need not. */
const unseen = {
  lock: ["nth", "places"],
  readWrite: ["nth", "places", "placesUntil"],
  permits: ["exists", "placesUntil"],
  fairQueue: ["nth", "alive", "seen", "secrets"]
}

const stepsOf = (specification, file) =>
  JSON.parse(readFileSync(file, "utf8")).states.flatMap((state) => {
    const of = (name) => plain(state[Object.keys(state).find((key) => key.endsWith(`::${name}`))])
    const [did, server] = [of("did"), of("server")]
    for (const unused of ["deadline", "lease", "token"]) delete did[unused]
    if (specification === "permits" || specification === "fairQueue") delete did.age
    for (const unused of unseen[specification]) delete server[unused]
    if (specification === "permits") server.places = server.places.map(({ owner }) => owner)
    // a command that is too late changes nothing, and here the store sets the deadline; it takes a microsecond
    return did.op === "" || did.reply === "late" ? [] : [{ clock: of("clock") - 1, did, server }]
  })

/** Runs from `step`; calm ones, in which locks are handed over more often, begin with `calmStep`. */
const runsOf = (specification, processes, step = "step") => {
  const module = `traces_${specification}_${step}`
  writeFileSync(
    `${out}/${module}.qnt`,
    `module ${module} {\n  import ${specification}(WITHOUT = Set(), FAULTS = Set("repeated"), ${processes}).* from "../${specification}"\n}\n`
  )
  execFileSync(
    `${root}node_modules/.bin/quint`,
    [
      "run",
      `${module}.qnt`,
      "--backend=typescript",
      "--verbosity=0",
      `--seed=${seed}`,
      "--max-steps=120",
      `--step=${step}`
    ].concat([`--max-samples=${traces}`, `--n-traces=${traces}`, `--out-itf=${module}_{seq}.itf.json`]),
    { cwd: out }
  )
  const runs = Array.from({ length: traces }, (_, seq) => stepsOf(specification, `${out}/${module}_${seq}.itf.json`))
  console.log(`${specification}: ${runs.length} traces, ${runs.flat().length} commands`)
  return runs
}

const textOf = (runs) =>
  `[\n${runs.map((run) => `[\n${run.map((step) => JSON.stringify(step)).join(",\n")}\n]`).join(",\n")}\n]`
const permits = "PERMITS = 2, ONE = Set(1, 2), ALL = Set(3)"
const sides = "READERS = Set(1, 2), WRITERS = Set(3, 4)"

const all = {
  lock: runsOf("lock", "PROCESSES = Set(1, 2, 3)"),
  readWrite: [...runsOf("readWrite", sides), ...runsOf("readWrite", sides, "calmStep")],
  permits: [...runsOf("permits", permits), ...runsOf("permits", permits, "calmStep")],
  fairQueue: runsOf("fairQueue", "PROCESSES = Set(1, 2, 3)")
}
writeFileSync(
  `${root}traces.json`,
  `{\n${Object.entries(all)
    .map(([name, runs]) => `"${name}": ${textOf(runs)}`)
    .join(",\n")}\n}\n`
)
