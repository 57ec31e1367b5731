import { rawPubSub } from "../candidates/catalog.ts"
import { crossHandOffMillis, expectExclusive, waitsOf, wallMillis } from "../sections.ts"
import { percentile } from "../statistics.ts"
import type { Run, Sample, Workload } from "../Workload.ts"
import { measureContenders, startContenders } from "./processes.ts"

const sectionMillis = 5
const sectionsInAll = 600
/** What a process sends once, to subscribe and to tell its label, is not to count as what a section costs. */
const leastSectionsEach = 60

/** One worker in each process, that asks again at once: everybody but the holder waits, all the time. */
export const measureCrowd = async (
  run: Run,
  {
    name,
    processes,
    sectionsEach
  }: { readonly name: string; readonly processes: number; readonly sectionsEach: number }
): Promise<Sample> => {
  const order = { name, parties: [{ kind: "lock", workers: 1 }], thinkMillis: 0 } as const
  const performers = await startContenders(run, processes, { ...order, warmUpMillis: run.quick ? 500 : 2000 })
  const { cost, sections } = await measureContenders(run, performers, {
    ...order,
    sectionsEach,
    limitMillis: 90_000,
    sectionMillis
  })
  expectExclusive(sections)
  const handOffs = crossHandOffMillis(sections)
  return {
    commands: cost.commands / sections.length,
    serverMicros: cost.serverMicros / sections.length,
    clientMicros: cost.clientMicros / sections.length,
    sectionsPerSecond: (sections.length / wallMillis(sections)) * 1000,
    handOffP50Millis: percentile(handOffs, 0.5),
    handOffP99Millis: percentile(handOffs, 0.99),
    ...waitsOf(sections)
  }
}

const crowd = (processes: number): Workload => ({
  id: `W12-${processes}`,
  title: `one lock, for which ${processes} processes compete without a pause, ${sectionMillis} ms sections`,
  kinds: ["lock"],
  reference: rawPubSub,
  columns: [
    { metric: "commands", title: "commands/section", digits: 2, better: "lower", ratio: true },
    { metric: "serverMicros", title: "server CPU µs/section", digits: 0, better: "lower", ratio: true },
    { metric: "clientMicros", title: "CPU µs/section, all processes", digits: 0, better: "lower" },
    { metric: "sectionsPerSecond", title: "sections/s", digits: 0, better: "higher", ratio: true },
    { metric: "handOffP50Millis", title: "cross hand-off p50 ms", digits: 2, better: "lower" },
    { metric: "handOffP99Millis", title: "p99 ms", digits: 1, better: "lower" },
    { metric: "longestWaitMillis", title: "longest wait ms", digits: 0, better: "lower" },
    { metric: "longestToMean", title: "longest : mean wait", digits: 1, better: "lower" }
  ],
  targets: [
    { metric: "commands", text: "≤ 3.1 commands per section", of: "figure", met: (commands) => commands <= 3.1 },
    { metric: "longestToMean", text: "longest wait ≤ 4 x the mean", of: "figure", met: (ratio) => ratio <= 4 }
  ],
  rounds: 1,
  limitMillis: 240_000,
  run: (run) =>
    measureCrowd(run, {
      name: "w12",
      processes,
      sectionsEach: run.quick ? 5 : Math.max(Math.ceil(sectionsInAll / processes), leastSectionsEach)
    })
})

export const crowdSizes = [2, 8, 24, 64]

/** What a section costs is not to grow with the number of processes. */
export const w12: ReadonlyArray<Workload> = crowdSizes.map(crowd)
