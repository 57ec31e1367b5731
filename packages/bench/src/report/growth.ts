import { isLibrary, ours } from "../candidates/catalog.ts"
import type { Results } from "../Results.ts"
import type { Growth } from "../workloads/catalog.ts"
import { bareColour, faint, ink, ourColour, picture, text } from "./svg.ts"
import { figure } from "./tables.ts"

interface Point {
  readonly size: number
  readonly value: number
}

interface Line {
  readonly candidate: string
  readonly points: ReadonlyArray<Point>
}

interface Panel {
  readonly title: string
  readonly sizes: ReadonlyArray<number>
  readonly what: string
  readonly digits: number
  readonly lines: ReadonlyArray<Line>
}

const plotWidth = 300
const plotHeight = 220
const left = 52
const labelWidth = 190
const panelWidth = left + plotWidth + labelWidth
const panelHeight = plotHeight + 92
const margin = 24
const labelHeight = 14

const grid = "#d8dee4"
const bareColours = [bareColour, "#57606a"]
const otherColours = ["#0969da", "#1a7f37", "#bf3989", "#bc4c00", "#9a6700", "#0550ae"]

const coloursOf = (candidates: ReadonlyArray<string>): ReadonlyMap<string, string> => {
  const others = candidates.filter((candidate) => isLibrary(candidate) && !candidate.startsWith(ours))
  const bare = candidates.filter((candidate) => !isLibrary(candidate))
  return new Map(
    candidates.map((candidate) => [
      candidate,
      candidate.startsWith(ours)
        ? ourColour
        : isLibrary(candidate)
          ? otherColours[others.indexOf(candidate) % otherColours.length]!
          : bareColours[bare.indexOf(candidate) % bareColours.length]!
    ])
  )
}

const panelsOf = ({ metrics, steps, title, what }: Growth, results: Results): ReadonlyArray<Panel> =>
  metrics.flatMap((metric): ReadonlyArray<Panel> => {
    const lines = new Map<string, Array<Point>>()
    for (const { size, workload } of steps) {
      for (const { candidate, figures } of results.rows(workload)) {
        const value = figures[metric]
        if (value === undefined || !Number.isFinite(value) || value <= 0) continue
        lines.set(candidate, [...(lines.get(candidate) ?? []), { size, value }])
      }
    }
    const { columns } = steps[0]!.workload
    const column = columns.find((column) => column.metric === metric)!
    const drawn = [...lines].filter(([, points]) => points.length > 1)
    return drawn.length === 0
      ? []
      : [
          {
            title: `${title}: ${column.title}`,
            sizes: steps.map(({ size }) => size),
            what,
            digits: column.digits,
            lines: drawn.map(([candidate, points]) => ({ candidate, points }))
          }
        ]
  })

const powersOfTen = (least: number, most: number): ReadonlyArray<number> => {
  const powers: Array<number> = []
  for (let power = Math.floor(Math.log10(least)); power <= Math.ceil(Math.log10(most)); power++)
    powers.push(10 ** power)
  return powers
}

/** Moves labels apart that would lie on each other; from top to bottom. */
const apart = (tops: ReadonlyArray<number>): ReadonlyArray<number> => {
  const moved: Array<number> = []
  for (const top of tops) moved.push(Math.max(top, (moved.at(-1) ?? Number.NEGATIVE_INFINITY) + labelHeight))
  return moved
}

const drawPanel = (
  { digits, lines, sizes, title, what }: Panel,
  x: number,
  y: number,
  colours: ReadonlyMap<string, string>
) => {
  const values = lines.flatMap(({ points }) => points.map(({ value }) => value))
  const powers = powersOfTen(Math.min(...values), Math.max(...values))
  const [bottom, top] = [Math.log10(powers[0]!), Math.log10(powers.at(-1)!)]
  const [first, last] = [Math.log(sizes[0]!), Math.log(sizes.at(-1)!)]
  const xOf = (size: number) => x + left + ((Math.log(size) - first) / (last - first)) * plotWidth
  const yOf = (value: number) => y + 34 + (1 - (Math.log10(value) - bottom) / (top - bottom || 1)) * plotHeight
  const parts = [text(x, y + 14, title, `font-size="14" font-weight="600" fill="${ink}"`)]
  for (const power of powers) {
    parts.push(
      `<path d="M${x + left} ${yOf(power).toFixed(1)}h${plotWidth}" stroke="${grid}"/>`,
      text(
        x + left - 8,
        yOf(power) + 4,
        figure(power, power < 1 ? 2 : 0),
        `font-size="11" text-anchor="end" fill="${faint}"`
      )
    )
  }
  for (const size of sizes) {
    parts.push(
      text(xOf(size), y + plotHeight + 52, String(size), `font-size="11" text-anchor="middle" fill="${faint}"`)
    )
  }
  parts.push(
    text(x + left + plotWidth / 2, y + plotHeight + 68, what, `font-size="11.5" text-anchor="middle" fill="${faint}"`)
  )
  const ordered = [...lines].sort((a, b) => b.points.at(-1)!.value - a.points.at(-1)!.value)
  const labels = apart(ordered.map(({ points }) => yOf(points.at(-1)!.value) + 4))
  ordered.forEach(({ candidate, points }, index) => {
    const colour = colours.get(candidate)!
    const isOurs = candidate.startsWith(ours)
    const path = points.map(({ size, value }) => `${xOf(size).toFixed(1)} ${yOf(value).toFixed(1)}`).join("L")
    const end = points.at(-1)!
    parts.push(
      `<path d="M${path}" fill="none" stroke="${colour}" stroke-width="${isOurs ? 3 : 1.6}"/>`,
      ...points.map(
        ({ size, value }) =>
          `<circle cx="${xOf(size).toFixed(1)}" cy="${yOf(value).toFixed(1)}" r="${isOurs ? 3.4 : 2.4}" fill="${colour}"/>`
      ),
      text(
        xOf(end.size) + 8,
        labels[index]!,
        `${candidate} ${figure(end.value, digits)}`,
        `font-size="11.5" fill="${colour}"${isOurs ? ` font-weight="600"` : ""}`
      )
    )
  })
  return parts.join("\n")
}

/**
 * docs/contention.svg: how the cost of one lock grows with the number of contenders, one line per candidate.
 */
export const growth = (growths: ReadonlyArray<Growth>, results: Results): string => {
  const panels = growths.flatMap((growth) => panelsOf(growth, results))
  const colours = coloursOf([...new Set(panels.flatMap(({ lines }) => lines.map(({ candidate }) => candidate)))])
  const title = "What a lock costs as contention grows"
  return picture({
    width: 2 * margin + 2 * panelWidth,
    height: 72 + Math.ceil(panels.length / 2) * panelHeight,
    margin,
    title,
    heading: title,
    parts: [
      text(
        margin,
        48,
        "logarithmic scales; a line that ends early could not be measured further",
        `font-size="12" fill="${faint}"`
      ),
      ...panels.map((panel, i) =>
        drawPanel(panel, margin + (i % 2) * panelWidth, 72 + Math.floor(i / 2) * panelHeight, colours)
      )
    ]
  })
}
