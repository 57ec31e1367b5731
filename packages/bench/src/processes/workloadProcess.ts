/**
 * Runs one workload with one candidate, and reports its figures.
 */
import { entryOf } from "../candidates/catalog.ts"
import { ServerCounters } from "../ServerCounters.ts"
import { workloadOf } from "../workloads/catalog.ts"
import { argument, run, say } from "./Parent.ts"

export interface WorkloadArgument {
  readonly workload: string
  readonly candidate: string
  readonly port: number
  readonly quick: boolean
}

run(async () => {
  const { candidate: name, port, quick, workload } = argument<WorkloadArgument>()
  const { candidate } = await entryOf(name).load()
  const counters = new ServerCounters(port)
  say("sample", await workloadOf(workload).run({ name, candidate, port, counters, quick }))
})
