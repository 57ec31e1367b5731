import { rawPubSub } from "../candidates/catalog.ts"
import type { Section } from "../Performer.ts"
import { wallMillis } from "../sections.ts"
import { percentile } from "../statistics.ts"
import type { Run, Sample, Workload } from "../Workload.ts"
import { measureContenders, startContenders } from "./processes.ts"

const processes = 4
/** Long enough for nearly all to read at once. */
const sectionMillis = 1000

/** The most readers that were inside at once. */
const mostAtOnce = (sections: ReadonlyArray<Section>): number => {
  const steps = sections
    .flatMap(({ enteredAt, leftAt }) => [
      { at: enteredAt, by: 1 },
      { at: leftAt, by: -1 }
    ])
    .sort((a, b) => a.at - b.at || a.by - b.by)
  let inside = 0
  let most = 0
  for (const { by } of steps) most = Math.max(most, (inside += by))
  return most
}

const measureReaders = async (run: Run, readersEach: number): Promise<Sample> => {
  const order = { name: "w14", parties: [{ kind: "read", workers: readersEach }] } as const
  const performers = await startContenders(run, processes, { ...order, warmUpMillis: run.quick ? 500 : 2000 })
  const { cost, sections } = await measureContenders(run, performers, {
    ...order,
    sectionsEach: run.quick ? 1 : Math.max(3, Math.ceil(250 / readersEach)),
    limitMillis: 60_000,
    sectionMillis
  })
  const waits = Float64Array.from(sections, ({ askedAt, enteredAt }) => enteredAt - askedAt)
  return {
    serverMicros: cost.serverMicros / sections.length,
    readsPerSecond: (sections.length / wallMillis(sections)) * 1000,
    atOnce: mostAtOnce(sections),
    commands: cost.commands / sections.length,
    waitP50Millis: percentile(waits, 0.5),
    waitP99Millis: percentile(waits, 0.99),
    longestWaitMillis: Math.max(...waits),
    clientMicros: cost.clientMicros / sections.length
  }
}

const readers = (readers: number): Workload => ({
  id: `W14-${readers}`,
  title: `${readers} readers in ${processes} processes share one read-write lock, ${sectionMillis} ms sections`,
  kinds: ["read"],
  reference: rawPubSub,
  columns: [
    { metric: "serverMicros", title: "server CPU µs/section", digits: 0, better: "lower", ratio: true },
    { metric: "readsPerSecond", title: "reads/s", digits: 0, better: "higher", ratio: true },
    { metric: "atOnce", title: "most readers at once", digits: 0 },
    { metric: "commands", title: "commands/section", digits: 2, better: "lower" },
    { metric: "waitP50Millis", title: "entry p50 ms", digits: 2, better: "lower" },
    { metric: "waitP99Millis", title: "p99 ms", digits: 1, better: "lower" },
    { metric: "longestWaitMillis", title: "longest ms", digits: 0, better: "lower" },
    { metric: "clientMicros", title: "CPU µs/section, all processes", digits: 0, better: "lower" }
  ],
  targets: [],
  limitMillis: 120_000,
  run: (run) => measureReaders(run, (run.quick ? Math.min(200, readers) : readers) / processes)
})

export const readerCounts = [100, 1000, 4000]

export const w14: ReadonlyArray<Workload> = readerCounts.map(readers)
