import { Redis } from "ioredis"
import { rawPubSub } from "../candidates/catalog.ts"
import { Child } from "../processes/Child.ts"
import type { ProxyArgument } from "../processes/delayingProxy.ts"
import { crossHandOffMillis, expectExclusive, waitsOf, wallMillis } from "../sections.ts"
import { percentile } from "../statistics.ts"
import type { Run, Sample, Workload } from "../Workload.ts"
import { measureContenders, startContenders } from "./processes.ts"

const sectionMillis = 1
const delayMillis = 1
const sectionsInAll = 1200

/** The median of what a request takes to the server and back. */
const roundTripOf = async (port: number): Promise<number> => {
  const redis = new Redis(port)
  const took: Array<number> = []
  for (let i = 0; i < 200; i++) {
    const startedAt = performance.now()
    await redis.ping()
    took.push(performance.now() - startedAt)
  }
  redis.disconnect()
  return percentile(Float64Array.from(took), 0.5)
}

/** One worker in each process, that asks again at once, and whose server is a millisecond away in each direction. */
const measureOverANetwork = async (run: Run, processes: number): Promise<Sample> => {
  const proxy = new Child("./delayingProxy.js", { port: run.port, delayMillis } satisfies ProxyArgument)
  try {
    const port = await proxy.hear<number>("ready")
    const roundTripMillis = await roundTripOf(port)
    const order = { name: "w15", parties: [{ kind: "lock", workers: 1 }], thinkMillis: 0 } as const
    const near = { ...run, port }
    const performers = await startContenders(near, processes, { ...order, warmUpMillis: run.quick ? 500 : 2000 })
    const { cost, sections } = await measureContenders(near, performers, {
      ...order,
      sectionsEach: run.quick ? 20 : Math.ceil(sectionsInAll / processes),
      limitMillis: 90_000,
      sectionMillis
    })
    expectExclusive(sections)
    return {
      sectionsPerSecond: (sections.length / wallMillis(sections)) * 1000,
      handOffP50Millis: percentile(crossHandOffMillis(sections), 0.5),
      commands: cost.commands / sections.length,
      longestToMean: waitsOf(sections).longestToMean,
      roundTripMillis
    }
  } finally {
    proxy.end()
  }
}

const overANetwork = (processes: number): Workload => ({
  id: `W15-${processes}`,
  title: `one lock over a network, for which ${processes} processes compete without a pause, ${sectionMillis} ms sections`,
  kinds: ["lock"],
  reference: rawPubSub,
  columns: [
    { metric: "sectionsPerSecond", title: "sections/s", digits: 0, better: "higher", ratio: true },
    { metric: "handOffP50Millis", title: "cross hand-off p50 ms", digits: 2, better: "lower" },
    { metric: "commands", title: "commands/section", digits: 2, better: "lower" },
    { metric: "longestToMean", title: "longest : mean wait", digits: 1, better: "lower" },
    { metric: "roundTripMillis", title: "round trip ms", digits: 2 }
  ],
  targets: [
    {
      metric: "sectionsPerSecond",
      text: "sections/s ≥ 1.4 x the bare pub/sub loop",
      of: "ratio",
      met: (ratio) => ratio >= 1.4
    }
  ],
  limitMillis: 240_000,
  run: (run) => measureOverANetwork(run, processes)
})

/** Over a network the hand-over is what a short section waits for. */
export const w15: ReadonlyArray<Workload> = [2, 4, 8].map(overANetwork)
