import { measure } from "../measure.ts"
import type { PairsReport } from "../Performer.ts"
import type { Column, Run, Sample, Target } from "../Workload.ts"

/** The figures of uncontended pairs: acquire, release. */
export const pairColumns: ReadonlyArray<Column> = [
  { metric: "p50Micros", title: "p50 µs/pair", digits: 0, better: "lower", ratio: true },
  { metric: "p99Micros", title: "p99 µs", digits: 0, better: "lower" },
  { metric: "pairsPerSecond", title: "pairs/s", digits: 0, better: "higher", ratio: true },
  { metric: "clientMicros", title: "client CPU µs/pair", digits: 1, better: "lower", ratio: true },
  { metric: "serverMicros", title: "server CPU µs/pair", digits: 1, better: "lower" },
  { metric: "commands", title: "commands/pair", digits: 2, better: "lower" }
]

/** The target of being ahead of all other libraries. */
export const pairTargets: ReadonlyArray<Target> = [
  {
    metric: "p50Micros",
    text: "p50 per pair below that of the best other library, x",
    of: "best",
    met: (ratio) => ratio < 1
  },
  {
    metric: "pairsPerSecond",
    text: "pairs/s above those of the best other library, x",
    of: "best",
    met: (ratio) => ratio > 1
  }
]

export const measurePairs = async (
  run: Run,
  options: {
    readonly prefix: string
    readonly kind?: "lock" | "red"
    readonly lockPer: "pair" | "worker"
    readonly workers: number
    readonly warmUp: number
    readonly pairs: number
  }
): Promise<Sample> => {
  const { kind = "lock", lockPer, pairs, prefix, warmUp, workers } = options
  const { otherPorts, port } = run
  const performer = await run.start({ port, otherPorts, leaseMillis: 30_000 })
  await performer.pairs({ kind, prefix: `warm-up:${prefix}`, lockPer, workers, pairs: warmUp * run.warmUp })
  let report: PairsReport | undefined
  const cost = await measure(run, [performer], async () => {
    report = await performer.pairs({ kind, prefix, lockPer, workers, pairs })
  })
  const { millis, p10Micros, p50Micros, p99Micros } = report!
  return {
    p10Micros,
    p50Micros,
    p99Micros,
    pairsPerSecond: (pairs / millis) * 1000,
    clientMicros: cost.clientMicros / pairs,
    serverMicros: cost.serverMicros / pairs,
    commands: cost.commands / pairs
  }
}
