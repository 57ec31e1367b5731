import { comparisons } from "../compared/workloads.ts"
import type { Workload } from "../Workload.ts"
import { w1 } from "./w1OneWorker.ts"
import { w10Five, w10FiveMany, w10Three, w10ThreeMany } from "./w10RedLock.ts"
import { w11 } from "./w11MultiLock.ts"
import { crowdSizes, w12 } from "./w12CrowdOnOneLock.ts"
import { readerCounts, w14 } from "./w14Readers.ts"
import { w15 } from "./w15LockOverANetwork.ts"
import { w2 } from "./w2ManyWorkers.ts"
import { w3, w3Think } from "./w3FibersOnOneLock.ts"
import { w4 } from "./w4ProcessesOnOneLock.ts"
import { w4Fair } from "./w4ProcessesOnOneFairLock.ts"
import { w5 } from "./w5IdleWaiters.ts"
import { w6 } from "./w6ManyHeldLocks.ts"
import { w13Few, w13Many, w7 } from "./w7FairWaiters.ts"
import { w8 } from "./w8ReadersAndWriters.ts"
import { w9 } from "./w9Permits.ts"

export const workloads: ReadonlyArray<Workload> = [
  w1,
  w2,
  w3,
  w3Think,
  w4,
  w4Fair,
  w5,
  w6,
  w7,
  w8,
  w9,
  w10Three,
  w10Five,
  w10ThreeMany,
  w10FiveMany,
  w11,
  ...w12,
  w13Few,
  w13Many,
  ...w14,
  ...w15
]

/** One workload at growing contention. */
export interface Growth {
  readonly title: string
  readonly what: string
  readonly steps: ReadonlyArray<{ readonly size: number; readonly workload: Workload }>
  readonly metrics: ReadonlyArray<string>
}

const sizedBy = (workloads: ReadonlyArray<Workload>, sizes: ReadonlyArray<number>) =>
  workloads.map((workload, i) => ({ size: sizes[i]!, workload }))

export const growths: ReadonlyArray<Growth> = [
  {
    title: "Lock",
    what: "processes, each asking again at once",
    steps: sizedBy(w12, crowdSizes),
    metrics: ["commands", "serverMicros", "sectionsPerSecond", "longestWaitMillis"]
  },
  {
    title: "FairLock",
    what: "waiters in 10 processes",
    steps: sizedBy([w13Few, w7, w13Many], [100, 1000, 5000]),
    metrics: ["serverMicros"]
  },
  {
    title: "readLock",
    what: "readers in 4 processes",
    steps: sizedBy(w14, readerCounts),
    metrics: ["serverMicros"]
  }
]

/** Workloads that belong together, by the name of their group. */
export const groups: Readonly<Record<string, ReadonlyArray<Workload>>> = {
  pairs: [w1, w2],
  contention: [w3, w3Think, w4],
  crowd: w12,
  network: w15,
  idle: [w5, w6],
  locks: [w1, w2, w3, w3Think, w4, w5, w6],
  fair: [w4Fair, w13Few, w7, w13Many],
  "read-write": [w8, ...w14],
  semaphore: [w9],
  quorum: [w10Three, w10Five, w10ThreeMany, w10FiveMany, w11]
}

export const workloadOf = (id: string): Workload => {
  const workload = [...workloads, ...comparisons].find((workload) => workload.id === id)
  if (workload === undefined) throw new Error(`there is no workload ${id}`)
  return workload
}
