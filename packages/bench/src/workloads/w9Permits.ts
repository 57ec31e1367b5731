import { permits } from "../Candidate.ts"
import { rawPubSub } from "../candidates/catalog.ts"
import { expectAtMost, wallMillis } from "../sections.ts"
import { percentile } from "../statistics.ts"
import type { Run, Sample, Workload } from "../Workload.ts"
import { measureContenders, startContenders } from "./processes.ts"

const processes = 4
const workersEach = 8
const sectionMillis = 2
const thinkMillis = 4

const measurePermits = async (run: Run): Promise<Sample> => {
  const order = { name: "w9", parties: [{ kind: "semaphore", workers: workersEach }], permits } as const
  const performers = await startContenders(run, processes, { ...order, warmUpMillis: run.quick ? 500 : 2000 })
  const { cost, sections } = await measureContenders(run, performers, {
    ...order,
    limitMillis: run.quick ? 1000 : 4000,
    sectionMillis,
    thinkMillis
  })
  expectAtMost(sections, permits)
  const waits = Float64Array.from(sections, ({ askedAt, enteredAt }) => enteredAt - askedAt)
  return {
    grantsPerSecond: (sections.length / wallMillis(sections)) * 1000,
    commands: cost.commands / sections.length,
    waitP99Millis: percentile(waits, 0.99),
    clientMicros: cost.clientMicros / sections.length,
    serverMicros: cost.serverMicros / sections.length
  }
}

export const w9: Workload = {
  id: "W9",
  title:
    `a semaphore of ${permits}, ${processes} processes with ${workersEach} workers each, ` +
    `${sectionMillis} ms sections, ${thinkMillis} ms of thinking`,
  kinds: ["semaphore"],
  reference: rawPubSub,
  columns: [
    { metric: "grantsPerSecond", title: "grants/s", digits: 0, better: "higher", ratio: true },
    { metric: "commands", title: "commands/grant", digits: 2, better: "lower" },
    { metric: "waitP99Millis", title: "wait p99 ms", digits: 1, better: "lower" },
    { metric: "clientMicros", title: "CPU µs/grant, all processes", digits: 0, better: "lower" },
    { metric: "serverMicros", title: "server CPU µs/grant", digits: 0, better: "lower" }
  ],
  targets: [],
  limitMillis: 40_000,
  run: measurePermits
}
