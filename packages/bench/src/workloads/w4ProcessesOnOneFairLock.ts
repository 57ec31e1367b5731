import { rawPubSub } from "../candidates/catalog.ts"
import { inversions } from "../sections.ts"
import type { Workload } from "../Workload.ts"
import { measureHandOffs, w4Columns, w4Shape } from "./w4ProcessesOnOneLock.ts"

export const w4Fair: Workload = {
  id: "W4-fair",
  title: `one fair lock, ${w4Shape}`,
  kinds: ["fair"],
  reference: rawPubSub,
  columns: [
    { metric: "inversions", title: "overtaken", digits: 0, better: "lower" },
    { metric: "marginMillis", title: "margin ms", digits: 1 },
    ...w4Columns
  ],
  targets: [
    { metric: "inversions", text: "nobody overtaken", of: "figure", met: (count) => count === 0 },
    { metric: "wallMillis", text: "wall ≤ 1.1", of: "ratio", met: (ratio) => ratio <= 1.1 },
    { metric: "commands", text: "≤ 4 commands per section", of: "figure", met: (commands) => commands <= 4 }
  ],
  limitMillis: 60_000,
  run: async (run) => {
    const { roundTripMillis, sample, sections } = await measureHandOffs(run, "fair")
    return { ...sample, inversions: inversions(sections, roundTripMillis), marginMillis: roundTripMillis }
  }
}
