import { parseArgs } from "node:util"
import { catalog, type Entry, ours, redisson } from "./candidates/catalog.ts"
import type { Workload } from "./Workload.ts"
import { groups, workloads } from "./workloads/catalog.ts"

export const usage = `pnpm bench [options]

  --rounds N            how often everything is measured (default 3)
  --quick               one round with small counts: to see that it works
  --only W1,fair        these workloads or groups of them
  --candidates a,b      these candidates; the references are needed for ratios
  --json FILE           all figures of all rounds
  --plot FILE           draw how the figures of W12, W7 with W13, and W14 grow
  --write               write docs/benchmarks.md and .svg after a partial run as well
  --help

Workloads: ${workloads.map(({ id }) => id).join(", ")}
Groups: ${Object.entries(groups)
  .map(([name, members]) => `${name} (${members.map(({ id }) => id).join(", ")})`)
  .join(", ")}
Candidates: ${catalog.map(({ name }) => name).join(", ")} ("ours" for ${ours}, "redisson" for ${redisson})
`

export interface Arguments {
  readonly help: boolean
  readonly rounds: number
  readonly quick: boolean
  readonly workloads: ReadonlyArray<Workload>
  readonly candidates: ReadonlyArray<Entry>
  readonly json: string | undefined
  /** Where to draw how figures grow; in docs/ as well if the report is written. */
  readonly plot: string | undefined
  /** Whether to write the report. */
  readonly write: boolean
}

const shortNames: Readonly<Record<string, string>> = { ours, redisson }

const listOf = (text: string): ReadonlyArray<string> => text.split(",").map((part) => part.trim())

export const parseArguments = (args: ReadonlyArray<string>): Arguments => {
  const { values } = parseArgs({
    // npm needs a `--` before options that are not its own; pnpm passes it on
    args: args[0] === "--" ? args.slice(1) : [...args],
    options: {
      help: { type: "boolean", default: false },
      rounds: { type: "string" },
      quick: { type: "boolean", default: false },
      only: { type: "string" },
      candidates: { type: "string" },
      json: { type: "string" },
      plot: { type: "string" },
      write: { type: "boolean", default: false }
    }
  })
  const rounds = Number(values.rounds ?? (values.quick ? 1 : 3))
  if (!Number.isInteger(rounds) || rounds < 1) throw new Error("--rounds: a whole number, at least 1")
  const chosenWorkloads =
    values.only === undefined
      ? workloads
      : listOf(values.only).flatMap((id) => {
          // a group, or a workload with its variants
          const chosen = groups[id] ?? workloads.filter(({ id: own }) => own === id || own.startsWith(`${id}-`))
          if (chosen.length === 0) throw new Error(`--only: there is no workload ${id}`)
          return chosen
        })
  const chosenCandidates =
    values.candidates === undefined
      ? catalog
      : listOf(values.candidates).map((name) => {
          const chosen = catalog.find((entry) => entry.name === (shortNames[name] ?? name))
          if (chosen === undefined) throw new Error(`--candidates: there is no candidate ${name}`)
          return chosen
        })
  const complete = !values.quick && values.only === undefined && values.candidates === undefined && rounds >= 3
  return {
    help: values.help,
    rounds,
    quick: values.quick,
    workloads: chosenWorkloads,
    candidates: chosenCandidates,
    json: values.json,
    plot: values.plot,
    write: values.write || complete
  }
}
