import type { Arguments } from "../arguments.ts"
import { catalog } from "../candidates/catalog.ts"
import type { Machine } from "../machine.ts"
import type { Results } from "../Results.ts"
import { duelTable, tableOf, targetTable, toMarkdown } from "./tables.ts"

/** Without the stack and the arguments that some errors have in their messages. */
const shortened = (reason: string): string => (reason.length <= 160 ? reason : `${reason.slice(0, 160)}…`)

/**
 * docs/benchmarks.md
 */
export const page = ({
  machine,
  options,
  order,
  results,
  startedAt
}: {
  readonly machine: Machine
  readonly options: Arguments
  readonly order: ReadonlyArray<string>
  readonly results: Results
  readonly startedAt: Date
}): string => {
  const parts = [
    "# Benchmarks",
    "<!-- written by `pnpm bench`; changes by hand are lost -->",
    `${startedAt.toISOString().slice(0, 10)}, ${machine.hardware}, Node ${machine.node}, Redis ${machine.redis} on the same machine, ` +
      `ioredis ${machine.ioredis}, Effect ${machine.effect}; ${options.rounds} ${options.rounds === 1 ? "round" : "rounds"}` +
      `${options.quick ? ", **quick run with small counts: not to be quoted**" : ""}.`,
    "[Compared with other systems](compared-systems.md) has figures of locks on MariaDB, PostgreSQL, ZooKeeper and etcd.",
    "![Ratios to the bare scripts](benchmarks.svg)",
    "## Method",
    "Absolute figures depend on the machine. Compare the ratios (columns `x`) to bare scripts that were measured in the same run.",
    [
      "In every round each candidate runs each workload in a process of its own, one candidate after another, in a different order " +
        "each time. Each process warms up before it is measured. A figure is the median over the rounds; a ratio is computed within " +
        "each round, and then the median is taken. W5 and W6 are measured in one round, since their command rates hardly vary.",
      "All use one Redis without persistence, which is emptied in between. W10 uses three or five servers, and adds up their " +
        "commands and their CPU time.",
      "Commands are those that clients sent, by Redis's own counters, without the ones inside scripts. CPU time is the user and " +
        "system time of the client process and of Redis.",
      "A hand-off lasts from the end of a section to the start of the next, if the next holder was already waiting in another process.",
      "If a library gives up an acquisition by itself, its worker asks again; W5 counts how often.",
      "In W4-fair a worker counts as overtaken if somebody who asked later was served before it. Requests less than one round trip " +
        "apart do not count: that margin is measured beforehand, with all processes sending at once.",
      "In W11, pairs of three locks and pairs of one alternate in the same process.",
      "Java processes do the same as Node processes, with a thread in place of each fiber, and warm up for longer because the JVM's " +
        "compiler needs longer."
    ]
      .map((text) => `- ${text}`)
      .join("\n"),
    "The candidates:",
    catalog
      .filter((entry) => options.candidates.includes(entry))
      .map(({ about, name }) => `- \`${name}\`: ${about}`)
      .join("\n"),
    "## Targets",
    toMarkdown(targetTable(options.workloads, results))
  ]
  const duels = duelTable(options.workloads, results)
  if (duels.rows.length > 0) {
    parts.push(
      "## Beside Redisson",
      "Every figure for which there is a better direction: ours, Redisson's, and ours divided by Redisson's (`x`). A " +
        "difference of up to one per cent counts as level. Redisson needs three commands per pair: a script to acquire, a script to " +
        "release, and a DEL of the release's latch.",
      toMarkdown(duels)
    )
  }
  for (const workload of options.workloads) {
    parts.push(`## ${workload.id}: ${workload.title}`)
    if (workload.reference !== undefined) parts.push(`Ratios to \`${workload.reference}\`.`)
    parts.push(toMarkdown(tableOf(workload, results, order)))
    const leftOut = results.leftOut(workload.id)
    if (leftOut.length > 0) {
      parts.push(
        `Left out: ${leftOut.map(([candidate, reason]) => `\`${candidate}\` (${shortened(reason)})`).join("; ")}.`
      )
    }
  }
  return `${parts.join("\n\n")}\n`
}
