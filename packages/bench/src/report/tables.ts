import { ours, redisson } from "../candidates/catalog.ts"
import type { Results } from "../Results.ts"
import type { Workload } from "../Workload.ts"

/** A table: the first column is text, the others are figures unless listed in `text`. */
export interface Table {
  readonly head: ReadonlyArray<string>
  readonly rows: ReadonlyArray<ReadonlyArray<string>>
  /** Further columns that are text. */
  readonly text?: ReadonlyArray<number>
}

export const figure = (value: number | undefined, digits: number): string =>
  value === undefined || !Number.isFinite(value)
    ? "–"
    : value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits })

export const tableOf = (workload: Workload, results: Results, order: ReadonlyArray<string>): Table => {
  const rows = [...results.rows(workload)].sort((a, b) => order.indexOf(a.candidate) - order.indexOf(b.candidate))
  const hasRatios = workload.reference !== undefined && rows.some(({ candidate }) => candidate === workload.reference)
  return {
    head: [
      "candidate",
      ...workload.columns.flatMap(({ ratio, title }) => (ratio && hasRatios ? [title, "x"] : [title]))
    ],
    rows: rows.map(({ candidate, figures, ratios }) => [
      candidate,
      ...workload.columns.flatMap(({ digits, metric, ratio }) => {
        const value = figure(figures[metric], digits)
        return ratio && hasRatios ? [value, figure(ratios[metric], 2)] : [value]
      })
    ])
  }
}

export const targetTable = (workloads: ReadonlyArray<Workload>, results: Results): Table => ({
  head: ["workload", "target", "measured", ""],
  rows: workloads.flatMap((workload) => {
    const own = results
      .verdicts(workload, ours)
      .map(({ met, target, value }) => [
        workload.id,
        target.of === "ratio" ? `${target.text} x ${workload.reference}` : target.text,
        figure(value, value >= 100 ? 0 : 2),
        met ? "met" : "missed"
      ])
    const duels = results.duels(workload, ours, redisson)
    if (duels.length === 0) return own
    const notBehind = duels.filter(({ outcome }) => outcome !== "behind").length
    const target = `level with ${redisson} or ahead on each figure`
    const measured = `${notBehind} of ${duels.length}`
    return [...own, [workload.id, target, measured, notBehind === duels.length ? "met" : "missed"]]
  }),
  text: [1, 3]
})

/** Our figures beside Redisson's. */
export const duelTable = (workloads: ReadonlyArray<Workload>, results: Results): Table => ({
  head: ["workload", "figure", ours, redisson, "x", ""],
  rows: workloads.flatMap((workload) =>
    results
      .duels(workload, ours, redisson)
      .map(({ column, other, outcome, ratio, value }) => [
        workload.id,
        column.title,
        figure(value, column.digits),
        figure(other, column.digits),
        Number.isFinite(ratio) ? figure(ratio, 2) : "–",
        outcome
      ])
  ),
  text: [1, 5]
})

const isText = (table: Table, column: number): boolean => column === 0 || table.text?.includes(column) === true

/** For a terminal. */
export const toText = (table: Table): string => {
  const lines = [table.head, ...table.rows]
  const widths = table.head.map((_, column) => Math.max(...lines.map((line) => line[column]!.length)))
  return lines
    .map((line) =>
      line
        .map((cell, column) => (isText(table, column) ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!)))
        .join("  ")
        .trimEnd()
    )
    .join("\n")
}

/** For a page; our own rows are bold. */
export const toMarkdown = (table: Table): string => {
  const line = (cells: ReadonlyArray<string>) => `| ${cells.join(" | ")} |`
  return [
    line(table.head),
    line(table.head.map((_, column) => (isText(table, column) ? "---" : "---:"))),
    ...table.rows.map((cells) => line(cells[0]!.startsWith(ours) ? cells.map((cell) => `**${cell}**`) : cells))
  ].join("\n")
}
