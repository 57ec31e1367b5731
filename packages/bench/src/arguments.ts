import { parseArgs } from "node:util"
import { catalog, type Entry, ours, redisson } from "./candidates/catalog.ts"
import { systems } from "./compared/catalog.ts"
import { comparisons } from "./compared/workloads.ts"
import type { Workload } from "./Workload.ts"
import { groups, workloads } from "./workloads/catalog.ts"

export const usage = `pnpm bench [options]

  --rounds N            how often everything is measured (default 3)
  --quick               one round with small counts: to see that it works
  --only W1,fair        these workloads or groups of them
  --candidates a,b      these candidates; the references are needed for ratios
  --json FILE           all figures of all rounds
  --plot FILE           draw how the figures of W12, W7 with W13, and W14 grow
  --write               write the page in docs/ and its pictures after a partial run as well
  --compare             compare other systems instead, each on a server that is started for it
  --help

Workloads: ${workloads.map(({ id }) => id).join(", ")}
Groups: ${Object.entries(groups)
  .map(([name, members]) => `${name} (${members.map(({ id }) => id).join(", ")})`)
  .join(", ")}
Candidates: ${catalog.map(({ name }) => name).join(", ")} ("ours" for ${ours}, "redisson" for ${redisson})

With --compare, in one round by default, on Linux:
Workloads: ${comparisons.map(({ id }) => id).join(", ")}
Candidates: ${[...new Set(systems.map(({ name }) => name.split(",")[0]!))].join(", ")}; some are measured with several
settings: "etcd" for all of etcd's, "etcd/fast" for one
`

export interface Arguments {
  readonly help: boolean
  /** Whether other systems are compared. */
  readonly compare: boolean
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
      compare: { type: "boolean", default: false },
      rounds: { type: "string" },
      quick: { type: "boolean", default: false },
      only: { type: "string" },
      candidates: { type: "string" },
      json: { type: "string" },
      plot: { type: "string" },
      write: { type: "boolean", default: false }
    }
  })
  const { compare } = values
  const rounds = Number(values.rounds ?? (values.quick || compare ? 1 : 3))
  if (!Number.isInteger(rounds) || rounds < 1) throw new Error("--rounds: a whole number, at least 1")
  const allWorkloads = compare ? comparisons : workloads
  const chosenWorkloads =
    values.only === undefined
      ? allWorkloads
      : listOf(values.only).flatMap((id) => {
          // a group, or a workload with its variants
          const chosen =
            (compare ? undefined : groups[id]) ??
            allWorkloads.filter(({ id: own }) => own === id || own.startsWith(`${id}-`))
          if (chosen.length === 0) throw new Error(`--only: there is no workload ${id}`)
          return chosen
        })
  const allCandidates: ReadonlyArray<Entry> = compare ? systems : catalog
  const chosenCandidates =
    values.candidates === undefined
      ? allCandidates
      : listOf(values.candidates).flatMap((name) => {
          const [own, setting] = (shortNames[name] ?? name).split("/")
          const chosen = allCandidates.filter((entry) => {
            const [system, ownSetting] = entry.name.split(", ")
            return system === own && (setting === undefined || setting === ownSetting)
          })
          if (chosen.length === 0) throw new Error(`--candidates: there is no candidate ${name}`)
          return chosen
        })
  const complete =
    !values.quick && values.only === undefined && values.candidates === undefined && (compare || rounds >= 3)
  return {
    help: values.help,
    compare,
    rounds,
    quick: values.quick,
    workloads: chosenWorkloads,
    candidates: chosenCandidates,
    json: values.json,
    plot: values.plot,
    write: values.write || complete
  }
}
