/**
 * `node packages/chaos/dist/plot.js FIGURES...`: draws docs/faults.svg from what runs with `--figures` have written.
 */
import { type Bar, drawPanels, type Panel } from "@effect-redis-lock/bench/report/drawing"
import { bareColour, ourColour } from "@effect-redis-lock/bench/report/svg"
import { readFileSync, writeFileSync } from "node:fs"
import type { Verdict } from "./check.ts"

/** What one run has come to: of a run of faults that are apart how soon the locks were served again, of any other the anomalies. */
export interface Figures {
  readonly library: string
  readonly server: string
  readonly recoveries?: Readonly<Record<string, ReadonlyArray<number>>>
  readonly verdicts?: ReadonlyArray<Pick<Verdict, "anomalies" | "model">>
}

const kinds = [
  { name: "effect-redis-lock", colour: ourColour },
  { name: "other libraries", colour: "#54aeff" },
  { name: "naive: SET NX and DEL", colour: bareColour }
] as const

const colourOf = (library: string) => kinds[library === kinds[0].name ? 0 : library === "naive" ? 2 : 1].colour

const panel = (title: string, subtitle: string, bars: ReadonlyArray<Bar>): Panel => ({
  ...{ title, subtitle: `${subtitle}, logarithmic scale`, bars, digits: 0 },
  end: Math.max(1, ...bars.map(({ value }) => value)),
  scale: "logarithmic"
})

const recoveryPanels = (server: string, runs: ReadonlyArray<Figures>): ReadonlyArray<Panel> => {
  const faults = [...new Set(runs.flatMap(({ recoveries = {} }) => Object.keys(recoveries)))]
  return [0.5, 1].map((quantile) =>
    panel(
      `${server}: until all are served, ${quantile === 1 ? "at most" : "median"}`,
      "milliseconds after the end of a fault, and how many there were",
      faults.map((fault) => {
        const millis = runs.flatMap(({ recoveries = {} }) => recoveries[fault] ?? []).sort((a, b) => a - b)
        return {
          candidate: `${fault} (${millis.length})`,
          colour: ourColour,
          value: millis[Math.ceil(millis.length * quantile) - 1]!
        }
      })
    )
  )
}

/** For each of the two models, the anomalies of all libraries that were run on that server. */
const anomalyPanels = (server: string, runs: ReadonlyArray<Figures>): ReadonlyArray<Panel> =>
  (["mutex", "set"] as const).map((model) =>
    panel(
      `${server}: ${model === "mutex" ? "two holders at once" : "writes that others undid"}`,
      "anomalies",
      runs.map(({ library, verdicts = [] }) => ({
        candidate: library,
        colour: colourOf(library),
        value: verdicts.reduce((sum, { anomalies, model: of }) => (of === model ? sum + anomalies : sum), 0)
      }))
    )
  )

const runs = process.argv.slice(2).map((file) => JSON.parse(readFileSync(file, "utf8")) as Figures)
const servers = [...new Set(runs.map(({ server }) => server))]
const panelsOf = (of: typeof recoveryPanels, which: "recoveries" | "verdicts") =>
  servers.flatMap((server) => {
    const some = runs.filter((run) => run.server === server && run[which] !== undefined)
    return some.length === 0 ? [] : of(server, some)
  })
const panels = [...panelsOf(recoveryPanels, "recoveries"), ...panelsOf(anomalyPanels, "verdicts")]
const title = "Locks under faults: how soon they are served again, and anomalies by library"
writeFileSync("docs/faults.svg", drawPanels(panels, { title, heading: title, kinds }))
