import type { Session } from "../Candidate.ts"
import { measure } from "../measure.ts"
import { percentile } from "../statistics.ts"
import type { Column, Run, Sample } from "../Workload.ts"

/** The figures of uncontended pairs: acquire, release. */
export const pairColumns: ReadonlyArray<Column> = [
  { metric: "p50Micros", title: "p50 µs/pair", digits: 0, ratio: "lower is better" },
  { metric: "p99Micros", title: "p99 µs", digits: 0 },
  { metric: "pairsPerSecond", title: "pairs/s", digits: 0, ratio: "higher is better" },
  { metric: "clientMicros", title: "client CPU µs/pair", digits: 1, ratio: "lower is better" },
  { metric: "serverMicros", title: "server CPU µs/pair", digits: 1 },
  { metric: "commands", title: "commands/pair", digits: 2 }
]

/** Workers that take pair after pair until there were so many; how long each pair took. */
const runPairs = async (
  session: Session,
  workers: number,
  pairs: number,
  nameOf: (worker: number, pair: number) => string
): Promise<Float64Array> => {
  const latencies = new Float64Array(pairs)
  let begun = 0
  let ended = 0
  await Promise.all(
    Array.from({ length: workers }, (_, worker) => {
      let startedAt: number | undefined
      return session.work({
        next: () => {
          const now = performance.now()
          if (startedAt !== undefined) latencies[ended++] = now - startedAt
          if (begun === pairs) return undefined
          startedAt = now
          return nameOf(worker, begun++)
        },
        section: undefined,
        think: undefined,
        gaveUp: () => {
          throw new Error("nobody else wants this lock")
        }
      })
    })
  )
  return latencies
}

export const measurePairs = async (
  { candidate, counters, port }: Run,
  options: {
    readonly workers: number
    readonly warmUp: number
    readonly pairs: number
    readonly nameOf: (worker: number, pair: number) => string
  }
): Promise<Sample> => {
  const { nameOf, pairs, warmUp, workers } = options
  const session = await candidate.open({ port, leaseMillis: 30_000 })
  await runPairs(session, workers, warmUp, (worker, pair) => `warm-up:${nameOf(worker, pair)}`)
  let latencies: Float64Array = new Float64Array()
  const cost = await measure(candidate, counters, async () => {
    latencies = await runPairs(session, workers, pairs, nameOf)
  })
  return {
    p50Micros: percentile(latencies, 0.5) * 1000,
    p99Micros: percentile(latencies, 0.99) * 1000,
    pairsPerSecond: (pairs / cost.millis) * 1000,
    clientMicros: cost.clientMicros / pairs,
    serverMicros: cost.serverMicros / pairs,
    commands: cost.commands / pairs
  }
}
