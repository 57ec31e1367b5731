import type { Arguments } from "../arguments.ts"
import { catalog } from "../candidates/catalog.ts"
import type { Machine } from "../machine.ts"
import type { Results } from "../Results.ts"
import { duelTable, tableOf, targetTable, toMarkdown } from "./tables.ts"

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
    "![Ratios to the bare scripts](benchmarks.svg)",
    "## Method",
    "Absolute figures differ from machine to machine; what counts are the ratios (columns `x`) to two bare scripts of the same run. " +
      "In every round each candidate runs each workload in a process of its own, one right after the other and in another order each " +
      "time, against one Redis without persistence that is emptied in between; W10 takes three or five of them, whose commands and CPU time are added up. Each process warms up before it is measured. A figure " +
      "is the median over the rounds; a ratio is taken to the reference of the same round, and then the median. Commands are what " +
      "clients sent according to Redis's own counters, those within scripts left out; CPU time is user and system time of the client's " +
      "process and of Redis. A hand-off is from the end of a section to the start of the next, where the next holder already waited in " +
      "another process. Where a library gives up an acquisition by itself, its worker asks again; in W5 it is counted. " +
      "In W11, pairs of three locks and pairs of one take turns in the same process. " +
      "W5 and W6 are measured in one round: what is sent over a stretch of time hardly differs. In W4-fair somebody counts as " +
      "overtaken who asked earlier than one who was let in before, by more than a request takes to the server and back, which is " +
      "measured beforehand with all processes sending at once. Processes of Java do what those of Node do, with a thread where " +
      "those have a fiber, and warm up for longer, since their compiler takes longer.",
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
      "Every figure that has a better and a worse, ours and that of Redisson itself; `x` is ours divided by Redisson's. Redisson's " +
        "commands are what its protocol takes: a script to acquire, a script to release, and a DEL of the release's latch. " +
        "Within one per cent nobody is ahead.",
      toMarkdown(duels)
    )
  }
  for (const workload of options.workloads) {
    parts.push(`## ${workload.id}: ${workload.title}`)
    if (workload.reference !== undefined) parts.push(`Ratios to \`${workload.reference}\`.`)
    parts.push(toMarkdown(tableOf(workload, results, order)))
    const leftOut = results.leftOut(workload.id)
    if (leftOut.length > 0) {
      parts.push(`Left out: ${leftOut.map(([candidate, reason]) => `\`${candidate}\` (${reason})`).join("; ")}.`)
    }
  }
  return `${parts.join("\n\n")}\n`
}
