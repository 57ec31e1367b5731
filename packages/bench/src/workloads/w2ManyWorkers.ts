import { rawHash } from "../candidates/catalog.ts"
import type { Workload } from "../Workload.ts"
import { measurePairs, pairColumns } from "./pairs.ts"

export const w2: Workload = {
  id: "W2",
  title: "64 workers in one process, each with a lock of its own",
  kinds: ["lock"],
  reference: rawHash,
  columns: pairColumns,
  targets: [
    { metric: "pairsPerSecond", text: "pairs/s ≥ 0.85", of: "ratio", met: (ratio) => ratio >= 0.85 },
    { metric: "clientMicros", text: "client CPU per pair ≤ 1.6", of: "ratio", met: (ratio) => ratio <= 1.6 },
    { metric: "commands", text: "exactly 2 commands per pair", of: "figure", met: (commands) => commands === 2 }
  ],
  limitMillis: 60_000,
  run: (run) =>
    measurePairs(run, {
      prefix: "w2:",
      lockPer: "worker",
      workers: 64,
      warmUp: run.quick ? 5000 : 40_000,
      pairs: run.quick ? 10_000 : 80_000
    })
}
