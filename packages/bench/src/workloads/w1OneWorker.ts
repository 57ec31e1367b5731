import { rawHash } from "../candidates/catalog.ts"
import type { Workload } from "../Workload.ts"
import { measurePairs, pairColumns } from "./pairs.ts"

export const w1: Workload = {
  id: "W1",
  title: "one worker, one lock after another, each with a name of its own",
  kinds: ["lock"],
  reference: rawHash,
  columns: pairColumns,
  targets: [{ metric: "p50Micros", text: "p50 per pair ≤ 1.10", of: "ratio", met: (ratio) => ratio <= 1.1 }],
  limitMillis: 60_000,
  run: (run) =>
    measurePairs(run, {
      prefix: "w1:",
      lockPer: "pair",
      workers: 1,
      warmUp: run.quick ? 5000 : 20_000,
      pairs: run.quick ? 2000 : 10_000
    })
}
