/**
 * Runs one workload with one candidate, and reports its figures.
 */
import { entryOf } from "../entries.ts"
import { countersOf } from "../compared/servers/counters.ts"
import type { Place } from "../Place.ts"
import { workloadOf } from "../workloads/catalog.ts"
import { argument, run, say } from "./Parent.ts"
import { startPerformer, startPerformersApart } from "./performers.ts"

export interface WorkloadArgument {
  readonly workload: string
  readonly candidate: string
  readonly place: Place
  readonly quick: boolean
}

run(async () => {
  const { candidate: name, place, quick, workload } = argument<WorkloadArgument>()
  const { candidate } = await entryOf(name).load()
  const sample = await workloadOf(workload).run({
    candidate,
    port: place.port,
    otherPorts: place.otherPorts,
    counters: await countersOf(place),
    quick,
    warmUp: "start" in candidate && !quick ? candidate.warmUp : 1,
    start: (connection) => startPerformer(name, connection),
    startApart: (count, connection) => startPerformersApart(count, name, connection)
  })
  // a figure that nothing was measured for is left out: JSON has no NaN
  say("sample", Object.fromEntries(Object.entries(sample).filter(([, value]) => Number.isFinite(value))))
})
