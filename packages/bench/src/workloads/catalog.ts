import type { Workload } from "../Workload.ts"
import { w1 } from "./w1.ts"
import { w2 } from "./w2.ts"
import { w3, w3Think } from "./w3.ts"
import { w4 } from "./w4.ts"
import { w5 } from "./w5.ts"
import { w6 } from "./w6.ts"

export const workloads: ReadonlyArray<Workload> = [w1, w2, w3, w3Think, w4, w5, w6]

export const workloadOf = (id: string): Workload => {
  const workload = workloads.find((workload) => workload.id === id)
  if (workload === undefined) throw new Error(`there is no workload ${id}`)
  return workload
}
