/**
 * Runs one workload with one candidate, and reports its figures.
 */
import { entryOf } from "../candidates/catalog.ts"
import { ServerCounters } from "../servers/ServerCounters.ts"
import { workloadOf } from "../workloads/catalog.ts"
import { argument, run, say } from "./Parent.ts"
import { startPerformer, startPerformersApart } from "./performers.ts"

export interface WorkloadArgument {
  readonly workload: string
  readonly candidate: string
  readonly port: number
  readonly otherPorts: ReadonlyArray<number>
  readonly quick: boolean
}

run(async () => {
  const { candidate: name, otherPorts, port, quick, workload } = argument<WorkloadArgument>()
  const { candidate } = await entryOf(name).load()
  const sample = await workloadOf(workload).run({
    candidate,
    port,
    otherPorts,
    counters: new ServerCounters([port, ...otherPorts]),
    quick,
    warmUp: "start" in candidate && !quick ? candidate.warmUp : 1,
    start: (connection) => startPerformer(name, connection),
    startApart: (count, connection) => startPerformersApart(count, name, connection)
  })
  say("sample", sample)
})
