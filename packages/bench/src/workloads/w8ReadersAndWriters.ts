import { rawPubSub } from "../candidates/catalog.ts"
import { expectAtMost, type SectionOf } from "../sections.ts"
import { percentile } from "../statistics.ts"
import type { Run, Sample, Workload } from "../Workload.ts"
import { measureContenders, startContenders } from "./processes.ts"

const processes = 4
const readersEach = 9
const writersEach = 1
const sectionMillis = 2
const thinkMillis = 20

const measureReadersAndWriters = async (run: Run): Promise<Sample> => {
  const order = {
    name: "w8",
    parties: [
      { kind: "read", workers: readersEach },
      { kind: "write", workers: writersEach }
    ]
  } as const
  const performers = await startContenders(run, processes, { ...order, warmUpMillis: run.quick ? 500 : 2000 })
  const limitMillis = run.quick ? 1000 : 4000
  const { cost, sections } = await measureContenders(run, performers, {
    ...order,
    limitMillis,
    sectionMillis,
    thinkMillis
  })
  expectAtMost(sections, Infinity)
  // Sections entered after the limit do not count: a writer would still be waiting if the readers had gone on.
  const of = (kind: SectionOf["kind"]) => sections.filter((section) => section.kind === kind)
  const inTime = (sections: ReadonlyArray<SectionOf>) => {
    const from = Math.min(...sections.map(({ askedAt }) => askedAt))
    return sections.filter(({ enteredAt }) => enteredAt <= from + limitMillis).length
  }
  const waitOf = (sections: ReadonlyArray<SectionOf>) =>
    percentile(
      Float64Array.from(sections, ({ askedAt, enteredAt }) => enteredAt - askedAt),
      0.99
    )
  return {
    readsPerSecond: (inTime(of("read")) / limitMillis) * 1000,
    writesPerSecond: (inTime(of("write")) / limitMillis) * 1000,
    readWaitMillis: waitOf(of("read")),
    writeWaitMillis: waitOf(of("write")),
    commands: cost.commands / sections.length,
    clientMicros: cost.clientMicros / sections.length,
    serverMicros: cost.serverMicros / sections.length
  }
}

export const w8: Workload = {
  id: "W8",
  title:
    `one read-write lock, ${processes} processes with ${readersEach} readers and ${writersEach} writer each, ` +
    `${sectionMillis} ms sections, ${thinkMillis} ms of thinking`,
  kinds: ["read", "write"],
  reference: rawPubSub,
  columns: [
    { metric: "readsPerSecond", title: "reads/s", digits: 0, better: "higher", ratio: true },
    { metric: "writesPerSecond", title: "writes/s", digits: 1, better: "higher", ratio: true },
    { metric: "readWaitMillis", title: "read wait p99 ms", digits: 1, better: "lower" },
    { metric: "writeWaitMillis", title: "write wait p99 ms", digits: 1, better: "lower" },
    { metric: "commands", title: "commands/section", digits: 2, better: "lower" },
    { metric: "clientMicros", title: "CPU µs/section, all processes", digits: 0, better: "lower" },
    { metric: "serverMicros", title: "server CPU µs/section", digits: 0, better: "lower" }
  ],
  targets: [],
  limitMillis: 40_000,
  run: measureReadersAndWriters
}
