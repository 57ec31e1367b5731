import { catalog, isLibrary, ours } from "../candidates/catalog.ts"
import type { Results } from "../Results.ts"
import type { Workload } from "../Workload.ts"
import { bareColour, faint, ink, ourColour, picture, text } from "./svg.ts"
import { figure } from "./tables.ts"

export interface Bar {
  readonly candidate: string
  readonly colour: string
  readonly value: number
  readonly remark?: string
}

export interface Panel {
  readonly title: string
  readonly subtitle: string
  readonly bars: ReadonlyArray<Bar>
  readonly digits: number
  /** The end of the scale: longer bars are cut off there. */
  readonly end: number
  /** Ratios have a line at one; counts that differ by orders of magnitude need a logarithmic scale. */
  readonly scale: "ratio" | "logarithmic"
}

const panelWidth = 486
const gap = 24
const margin = 24
const labelWidth = 206
const valueWidth = 56
const barsWidth = panelWidth - labelWidth - valueWidth
const rowHeight = 21
const barHeight = 13
const headHeight = 44
const panelGap = 22
const topHeight = 74

const kinds = [
  { name: "effect-redis-lock", colour: ourColour },
  { name: "bare scripts", colour: bareColour },
  { name: "other libraries", colour: "#54aeff" }
] as const

const colourOf = (candidate: string): string =>
  (candidate.startsWith(ours) ? kinds[0] : isLibrary(candidate) ? kinds[2] : kinds[1]).colour

/** The longest ratio that is drawn to scale. */
const longestRatio = 3

const panelsOf = (workload: Workload, results: Results): ReadonlyArray<Panel> => {
  const order = catalog.map(({ name }) => name)
  const rows = [...results.rows(workload)].sort((a, b) => order.indexOf(a.candidate) - order.indexOf(b.candidate))
  if (workload.reference === undefined) {
    const column = workload.columns[0]!
    const bars = rows.map(({ candidate, figures }) => ({
      candidate,
      colour: colourOf(candidate),
      value: figures[column.metric]!,
      ...((figures["failed"] ?? 0) > 0 ? { remark: ", gave up" } : undefined)
    }))
    return [
      {
        title: `${workload.id}: ${column.title}`,
        subtitle: "lower is better, logarithmic scale",
        bars,
        digits: column.digits,
        end: Math.max(1, ...bars.map(({ value }) => value)),
        scale: "logarithmic"
      }
    ]
  }
  // the figures with targets, else those that are compared
  const aimedAt = workload.targets.flatMap(({ metric, of }) => (of === "ratio" ? [metric] : []))
  return workload.columns.flatMap((column): ReadonlyArray<Panel> => {
    if (aimedAt.length > 0 ? !aimedAt.includes(column.metric) : column.ratio !== true) return []
    const bars = rows.flatMap(({ candidate, ratios }) =>
      Number.isFinite(ratios[column.metric])
        ? [{ candidate, colour: colourOf(candidate), value: ratios[column.metric]! }]
        : []
    )
    return [
      {
        title: `${workload.id}: ${column.title}`,
        subtitle: `× ${workload.reference}, ${column.better} is better`,
        bars,
        digits: 2,
        end: Math.min(longestRatio, Math.max(1.25, ...bars.map(({ value }) => value))),
        scale: "ratio"
      }
    ]
  })
}

const lengthOf = ({ end, scale }: Panel, value: number): number =>
  barsWidth * (scale === "ratio" ? Math.min(1, value / end) : Math.log10(1 + value) / Math.log10(1 + end))

const heightOf = (panel: Panel): number => headHeight + panel.bars.length * rowHeight

const drawPanel = (panel: Panel, x: number, y: number): string => {
  const left = x + labelWidth
  const parts = [
    text(x, y + 14, panel.title, `font-size="14" font-weight="600" fill="${ink}"`),
    text(x, y + 31, panel.subtitle, `font-size="11.5" fill="${faint}"`)
  ]
  panel.bars.forEach(({ candidate, colour, remark = "", value }, index) => {
    const top = y + headHeight + index * rowHeight
    const length = Math.max(1, lengthOf(panel, value))
    const isOurs = candidate.startsWith(ours)
    parts.push(
      text(
        left - 8,
        top + 11,
        candidate,
        `font-size="12" text-anchor="end" fill="${ink}"${isOurs ? ` font-weight="600"` : ""}`
      ),
      `<rect x="${left}" y="${top}" width="${length.toFixed(1)}" height="${barHeight}" rx="2" fill="${colour}"/>`
    )
    if (panel.scale === "ratio" && value > panel.end) {
      // cut off: two strokes across the bar
      const cut = left + length - 14
      parts.push(
        `<path d="M${cut} ${top + barHeight + 2}l5 -${barHeight + 4}m4 0l-5 ${barHeight + 4}" stroke="#fff" stroke-width="2"/>`
      )
    }
    parts.push(
      text(
        left + length + 6,
        top + 11,
        figure(value, panel.digits) + remark,
        `font-size="11.5" fill="${isOurs ? ink : faint}"${isOurs ? ` font-weight="600"` : ""}`
      )
    )
  })
  if (panel.scale === "ratio") {
    const one = (left + lengthOf(panel, 1)).toFixed(1)
    parts.push(
      `<path d="M${one} ${y + headHeight - 5}V${y + heightOf(panel) - 2}" stroke="${ink}" stroke-dasharray="3 3" opacity="0.55"/>`
    )
  }
  return parts.join("\n")
}

/** Two panels in a row, below a legend. */
export const drawPanels = (
  panels: ReadonlyArray<Panel>,
  {
    heading,
    kinds,
    title
  }: {
    readonly title: string
    readonly heading: string
    readonly kinds: ReadonlyArray<{ readonly name: string; readonly colour: string }>
  }
): string => {
  const width = 2 * margin + 2 * panelWidth + gap
  const parts: Array<string> = []
  let y = topHeight
  for (let i = 0; i < panels.length; i += 2) {
    const pair = panels.slice(i, i + 2)
    pair.forEach((panel, column) => parts.push(drawPanel(panel, margin + column * (panelWidth + gap), y)))
    y += Math.max(...pair.map(heightOf)) + panelGap
  }
  const height = y
  let legendX = margin
  const legend = kinds.map(({ colour, name }) => {
    const x = legendX
    legendX += 34 + name.length * 6.6
    return (
      `<rect x="${x.toFixed(1)}" y="42" width="12" height="12" rx="2" fill="${colour}"/>\n` +
      text(x + 18, 52, name, `font-size="12" fill="${ink}"`)
    )
  })
  return picture({
    width,
    height,
    margin,
    title,
    heading,
    parts: [
      ...legend,
      ...(panels.some(({ scale }) => scale === "ratio")
        ? [
            `<path d="M${legendX.toFixed(1)} 48h18" stroke="${ink}" stroke-dasharray="3 3" opacity="0.55"/>`,
            text(legendX + 24, 52, "as the bare scripts", `font-size="12" fill="${ink}"`)
          ]
        : []),
      ...parts
    ]
  })
}

/**
 * docs/benchmarks.svg: for every workload, how each candidate compares with the bare scripts.
 */
export const drawing = (workloads: ReadonlyArray<Workload>, results: Results): string =>
  drawPanels(
    workloads.flatMap((workload) => panelsOf(workload, results)),
    {
      title: "effect-redis-lock and other lock libraries, compared with bare scripts",
      heading: "Ratios to two bare scripts over the same client, in the same run",
      kinds
    }
  )
