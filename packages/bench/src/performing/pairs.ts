import type { Session } from "../Candidate.ts"
import type { PairsOrder, PairsReport } from "../Performer.ts"
import { percentile } from "../statistics.ts"

/** Runs workers that acquire and release until the number of pairs is reached. */
export const runPairs = async (
  session: Session,
  { kind, lockPer, pairs, prefix, workers }: PairsOrder
): Promise<PairsReport> => {
  const latencies = new Float64Array(pairs)
  let begun = 0
  let ended = 0
  const beganAt = performance.now()
  await Promise.all(
    Array.from({ length: workers }, (_, worker) => {
      let startedAt: number | undefined
      return session.work({
        kind,
        next: () => {
          const now = performance.now()
          if (startedAt !== undefined) latencies[ended++] = now - startedAt
          if (begun === pairs) return undefined
          startedAt = now
          const pair = begun++
          return prefix + (lockPer === "pair" ? pair : worker)
        },
        section: undefined,
        think: undefined,
        gaveUp: () => {
          throw new Error("nobody else wants this lock")
        }
      })
    })
  )
  return {
    millis: performance.now() - beganAt,
    p10Micros: percentile(latencies, 0.1) * 1000,
    p50Micros: percentile(latencies, 0.5) * 1000,
    p99Micros: percentile(latencies, 0.99) * 1000
  }
}
