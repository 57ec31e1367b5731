import { rawPubSub } from "../candidates/catalog.ts"
import { changesOfProcess, crossHandOffMillis, expectExclusive, wallMillis } from "../sections.ts"
import { percentile } from "../statistics.ts"
import type { Column, Run, Sample, Workload } from "../Workload.ts"
import { measureContenders, roundTrip, startContenders } from "./processes.ts"

const processes = 4
const sectionMillis = 2
const thinkMillis = 4

/** No candidate takes this long: the workload's own limit leaves out one that would. */
const limitMillis = 60_000

export const w4Columns: ReadonlyArray<Column> = [
  { metric: "wallMillis", title: "wall ms", digits: 0, better: "lower", ratio: true },
  { metric: "commands", title: "commands/section", digits: 2, better: "lower" },
  { metric: "toAnother", title: "hand-offs to another process %", digits: 0 },
  { metric: "handOffP50Millis", title: "cross hand-off p50 ms", digits: 2, better: "lower", ratio: true },
  { metric: "handOffP99Millis", title: "p99 ms", digits: 1, better: "lower" },
  { metric: "clientMicros", title: "CPU µs/section, all processes", digits: 0, better: "lower" },
  { metric: "serverMicros", title: "server CPU µs/section", digits: 0, better: "lower" }
]

export const w4Shape = `${processes} processes, ${sectionMillis} ms sections, ${thinkMillis} ms of thinking, 200 sections each`

/** One worker per process, all on the same lock, of either kind. */
export const measureHandOffs = async (run: Run, kind: "lock" | "fair") => {
  const each = run.quick ? 50 : 200
  const order = { name: "w4", parties: [{ kind, workers: 1 }] }
  const performers = await startContenders(run, processes, { ...order, warmUpMillis: run.quick ? 500 : 2000 })
  const roundTripMillis = kind === "fair" ? await roundTrip(performers) : 0
  const { cost, sections } = await measureContenders(run, performers, {
    ...order,
    sectionsEach: each,
    limitMillis,
    sectionMillis,
    thinkMillis
  })
  expectExclusive(sections)
  const handOffs = crossHandOffMillis(sections)
  const total = processes * each
  const sample: Sample = {
    wallMillis: wallMillis(sections),
    commands: cost.commands / total,
    toAnother: (changesOfProcess(sections).length / (sections.length - 1)) * 100,
    handOffP50Millis: percentile(handOffs, 0.5),
    handOffP99Millis: percentile(handOffs, 0.99),
    clientMicros: cost.clientMicros / total,
    serverMicros: cost.serverMicros / total
  }
  return { roundTripMillis, sample, sections }
}

export const w4: Workload = {
  id: "W4",
  title: `one lock, ${w4Shape}`,
  kinds: ["lock"],
  reference: rawPubSub,
  columns: w4Columns,
  targets: [
    { metric: "wallMillis", text: "wall ≤ 1.05", of: "ratio", met: (ratio) => ratio <= 1.05 },
    {
      metric: "handOffP50Millis",
      text: "cross-process hand-off p50 ≤ 1.1",
      of: "ratio",
      met: (ratio) => ratio <= 1.1
    }
  ],
  limitMillis: 60_000,
  run: async (run) => (await measureHandOffs(run, "lock")).sample
}
