import type { Arguments } from "../arguments.ts"
import type { Machine } from "../machine.ts"
import { drawPanels } from "../report/drawing.ts"
import { bareColour, ourColour } from "../report/svg.ts"
import { figure, type Table, tableOf, toMarkdown } from "../report/tables.ts"
import type { Results } from "../Results.ts"
import type { Workload } from "../Workload.ts"
import { reference, type System, systems } from "./catalog.ts"

const begin = "<!-- figures: written by pnpm bench --compare -->"
const end = "<!-- end of figures -->"

/** The page with its figures replaced; what is around them is written by hand. */
export const withFigures = (page: string, part: string): string => {
  const from = page.indexOf(begin)
  const to = page.indexOf(end)
  if (from === -1 || to < from) throw new Error(`docs/compared-systems.md has no place for figures: ${begin}`)
  return `${page.slice(0, from + begin.length)}\n\n${part}\n\n${page.slice(to)}`
}

/** The figure of a workload that is compared first. */
const mainColumn = (workload: Workload) => workload.columns[0]!

const inOrder = (workload: Workload, results: Results) => {
  const order = systems.map(({ name }) => name)
  return [...results.rows(workload)].sort((a, b) => order.indexOf(a.candidate) - order.indexOf(b.candidate))
}

/** The main figure of every workload, as a ratio to the reference. */
export const overview = (workloads: ReadonlyArray<Workload>, results: Results): Table => ({
  head: ["system", ...workloads.map(({ id }) => id)],
  rows: systems.flatMap(({ name }) => {
    const ratios = workloads.map(
      (workload) =>
        results.rows(workload).find(({ candidate }) => candidate === name)?.ratios[mainColumn(workload).metric]
    )
    if (ratios.every((ratio) => ratio === undefined)) return []
    return [[name, ...ratios.map((ratio) => figure(ratio, ratio !== undefined && ratio < 0.1 ? 3 : 2))]]
  })
})

const takeoverTable = (workload: Workload, results: Results, order: ReadonlyArray<string>): Table => {
  const table = tableOf(workload, results, order)
  return {
    head: [...table.head, "decided by"],
    rows: table.rows.map((row) => [...row, systems.find(({ name }) => name === row[0])!.decides]),
    text: [table.head.length]
  }
}

export const figures = ({
  load,
  machine,
  options,
  results,
  settings,
  startedAt,
  systems: measured,
  versions
}: {
  /** How many processes ran or wanted to run, on average, during the last quarter of an hour. */
  readonly load: number
  readonly machine: Machine
  readonly options: Pick<Arguments, "quick" | "rounds" | "workloads">
  readonly results: Results
  readonly settings: ReadonlyMap<string, string>
  readonly startedAt: Date
  readonly systems: ReadonlyArray<System>
  readonly versions: ReadonlyArray<string>
}): string => {
  const order = systems.map(({ name }) => name)
  const isMeasured = ({ name }: System) => options.workloads.some((workload) => !results.isLeftOut(workload.id, name))
  const parts = [
    `${startedAt.toISOString().slice(0, 10)}, ${machine.hardware}, Node ${machine.node}; ${versions.join(", ")}; ` +
      `${options.rounds} ${options.rounds === 1 ? "round" : "rounds"}, load average ${load.toFixed(1)}` +
      `${options.quick ? ", **quick run with small counts: not to be quoted**" : ""}.`,
    "### What was measured",
    toMarkdown({
      head: ["system", "what it is", "its server"],
      rows: measured.filter(isMeasured).map(({ about, name }) => [name, about, settings.get(name) ?? ""]),
      text: [1, 2]
    }),
    "### At a glance",
    `The first figure of each table below, divided by that of \`${reference}\`.`,
    toMarkdown(overview(options.workloads, results))
  ]
  for (const workload of options.workloads) {
    parts.push(`### ${workload.id}: ${workload.title}`)
    parts.push(
      toMarkdown(
        workload.id === "takeover" ? takeoverTable(workload, results, order) : tableOf(workload, results, order)
      )
    )
    const leftOut = results.leftOut(workload.id)
    if (leftOut.length > 0) {
      parts.push(`Left out: ${leftOut.map(([name, reason]) => `\`${name}\` (${reason})`).join("; ")}.`)
    }
  }
  return parts.join("\n\n")
}

const kinds = [
  { name: "effect-redis-lock", colour: ourColour },
  { name: reference, colour: bareColour },
  { name: "other systems and libraries", colour: "#54aeff" }
] as const

const colourOf = (name: string): string =>
  (name.startsWith(kinds[0].name) ? kinds[0] : name.startsWith(reference) ? kinds[1] : kinds[2]).colour

/** docs/compared-systems.svg: the main figure of every workload. */
export const plot = (workloads: ReadonlyArray<Workload>, results: Results): string =>
  drawPanels(
    workloads.map((workload) => {
      const { digits, metric, title } = mainColumn(workload)
      const rows = inOrder(workload, results).filter(({ figures }) => figures[metric] !== undefined)
      const bars = rows.map(({ candidate, figures }) => ({
        candidate,
        colour: colourOf(candidate),
        value: figures[metric]!,
        ...((figures["gaveUp"] ?? 0) > 0 ? { remark: ", gave up" } : undefined)
      }))
      return {
        title: `${workload.id}: ${title}`,
        subtitle: "lower is better, logarithmic scale",
        bars,
        digits,
        end: Math.max(1, ...bars.map(({ value }) => value)),
        scale: "logarithmic" as const
      }
    }),
    {
      title: "Locks on Redis, MariaDB, PostgreSQL, ZooKeeper and etcd, measured in one run",
      heading: "Locks on Redis, MariaDB, PostgreSQL, ZooKeeper and etcd",
      kinds
    }
  )
