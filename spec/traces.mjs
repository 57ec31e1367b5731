/**
 * `node spec/traces.mjs`: writes spec/traces.json, runs of the specification for test/contract/specification.test.ts to repeat on the real
 * scripts: what the server was told to do, when, by its clock in microseconds, and its state after that. Run it after a change of lock.qnt.
 */
import { execFileSync } from "node:child_process"
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"

const root = new URL(".", import.meta.url).pathname
const out = `${root}dist`
const [traces, seed] = [12, 1]
mkdirSync(out, { recursive: true })
writeFileSync(
  `${out}/traces.qnt`,
  `module traces {\n  import lock(WITHOUT = Set(), FAULTS = Set("repeated"), PROCESSES = Set(1, 2, 3)).* from "../lock"\n}\n`
)
execFileSync(
  `${root}node_modules/.bin/quint`,
  ["run", "traces.qnt", "--backend=typescript", "--verbosity=0", `--seed=${seed}`, "--max-steps=120"].concat([
    `--max-samples=${traces}`,
    `--n-traces=${traces}`,
    "--out-itf=trace_{seq}.itf.json"
  ]),
  { cwd: out }
)

/** A value of ITF as JSON; the specification has no sets or maps among what is used here. */
const plain = (value) =>
  Array.isArray(value)
    ? value.map(plain)
    : typeof value !== "object"
      ? value
      : "#bigint" in value
        ? Number(value["#bigint"])
        : Object.fromEntries(Object.entries(value).map(([key, field]) => [key, plain(field)]))

const stepsOf = (seq) =>
  JSON.parse(readFileSync(`${out}/trace_${seq}.itf.json`, "utf8")).states.flatMap((state) => {
    const of = (name) => plain(state[Object.keys(state).find((key) => key.endsWith(`::${name}`))])
    const { deadline: _, ...did } = of("did")
    const { nth: __, ...server } = of("server")
    // a command that is too late changes nothing, and here the store sets the deadline
    return did.op === "" || did.reply === "late" ? [] : [{ clock: of("clock"), did, server }]
  })

const runs = Array.from({ length: traces }, (_, seq) => stepsOf(seq))
writeFileSync(
  `${root}traces.json`,
  `[\n${runs.map((run) => `[\n${run.map((step) => JSON.stringify(step)).join(",\n")}\n]`).join(",\n")}\n]\n`
)
console.log(`${runs.length} traces, ${runs.flat().length} commands`)
