import type { Arguments } from "./arguments.ts"
import { type Entry, runsIn } from "./candidates/catalog.ts"
import { Child } from "./processes/Child.ts"
import type { WorkloadArgument } from "./processes/workloadProcess.ts"
import type { Place } from "./Place.ts"
import { figure } from "./report/tables.ts"
import { Results } from "./Results.ts"
import type { Sample, Workload } from "./Workload.ts"

/** Empties the servers on which a candidate runs a workload. */
export type PlaceFor = (candidate: Entry, workload: Workload) => Promise<Place>

/** One candidate in one workload, in a process of its own. */
const runOnce = async (place: Place, workload: Workload, candidate: Entry, quick: boolean): Promise<Sample> => {
  const child = new Child("./workloadProcess.js", {
    workload: workload.id,
    candidate: candidate.name,
    place,
    quick
  } satisfies WorkloadArgument)
  let timer: NodeJS.Timeout | undefined
  const limit = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not done after ${workload.limitMillis / 1000} s`)), workload.limitMillis)
  })
  try {
    return await Promise.race([child.hear<Sample>("sample"), limit])
  } finally {
    clearTimeout(timer)
    child.end()
  }
}

/** Starts with a different candidate in every round. */
const rotated = <A>(all: ReadonlyArray<A>, by: number): ReadonlyArray<A> => {
  const from = by % all.length
  return [...all.slice(from), ...all.slice(0, from)]
}

/** Runs everything, round by round, the candidates of a workload one right after the other. */
export const runRounds = async (
  placeFor: PlaceFor,
  { candidates, quick, rounds, workloads }: Pick<Arguments, "candidates" | "quick" | "rounds" | "workloads">,
  progress: (line: string) => void
): Promise<Results> => {
  const results = new Results()
  const planned = workloads.map(
    (workload) => [workload, candidates.filter((candidate) => runsIn(candidate, workload))] as const
  )
  for (const { name, prepare } of candidates) {
    const reason = await prepare?.()
    if (reason === undefined) continue
    progress(`${name}: left out, ${reason}`)
    for (const [workload, runners] of planned) {
      if (runners.some((runner) => runner.name === name)) results.leaveOut(workload.id, name, reason)
    }
  }
  const roundsOf = (workload: Workload) => Math.min(rounds, workload.rounds ?? rounds)
  const total = planned.reduce((sum, [workload, runners]) => sum + roundsOf(workload) * runners.length, 0)
  let begun = 0
  for (let round = 1; round <= rounds; round++) {
    for (const [workload, runners] of planned) {
      if (round > roundsOf(workload)) continue
      for (const candidate of rotated(runners, (round - 1) * 3)) {
        begun++
        if (results.isLeftOut(workload.id, candidate.name)) continue
        const where = `[${begun}/${total}] round ${round} ${workload.id} ${candidate.name}`
        const startedAt = performance.now()
        try {
          const sample = await runOnce(await placeFor(candidate, workload), workload, candidate, quick)
          results.add(workload.id, candidate.name, round, sample)
          const { digits, metric, title } = workload.columns[0]!
          progress(
            `${where}: ${figure(sample[metric], digits)} ${title} (${((performance.now() - startedAt) / 1000).toFixed(1)} s)`
          )
        } catch (error) {
          const reason = error instanceof Error ? error.message : String(error)
          results.leaveOut(workload.id, candidate.name, reason)
          progress(`${where}: left out, ${reason}`)
        }
      }
    }
  }
  return results
}
