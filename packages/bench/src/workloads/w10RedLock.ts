import type { Workload } from "../Workload.ts"
import { measurePairs, pairColumns, pairTargets } from "./pairs.ts"

/** Uncontended locks on the majority of `servers`. */
const onServers = (id: string, servers: number, workers: number): Workload => ({
  id,
  title: `${workers === 1 ? "one worker" : `${workers} workers of one process`}, one RedLock after another on ${servers} servers, each with a name of its own`,
  kinds: ["red"],
  servers,
  reference: undefined,
  columns: pairColumns,
  targets: pairTargets,
  limitMillis: 120_000,
  run: (run) =>
    measurePairs(run, {
      prefix: "w10:",
      kind: "red",
      lockPer: "pair",
      workers,
      warmUp: run.quick ? 2000 : 20_000,
      pairs: run.quick ? 1000 : 10_000
    })
})

export const w10Three: Workload = onServers("W10-3", 3, 1)
export const w10Five: Workload = onServers("W10-5", 5, 1)
export const w10ThreeMany: Workload = onServers("W10-3-many", 3, 64)
export const w10FiveMany: Workload = onServers("W10-5-many", 5, 64)
