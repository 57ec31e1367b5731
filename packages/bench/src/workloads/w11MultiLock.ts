import { measure } from "../measure.ts"
import type { PairsReport } from "../Performer.ts"
import { median } from "../statistics.ts"
import type { Run, Sample, Workload } from "../Workload.ts"
import { pairColumns, pairTargets } from "./pairs.ts"

/** Pairs of all names and of one name take turns, so that both meet the same machine. */
const turns = 10

const measureMulti = async (run: Run): Promise<Sample> => {
  const performer = await run.start({ port: run.port, leaseMillis: 30_000 })
  const pairs = run.quick ? 100 : 500
  const order = { lockPer: "pair", workers: 1 } as const
  const warmUp = (run.quick ? 2000 : 20_000) * run.warmUp
  await performer.pairs({ ...order, kind: "lock", prefix: "warm-up:w11:one:", pairs: warmUp })
  await performer.pairs({ ...order, kind: "multi", prefix: "warm-up:w11:", pairs: warmUp })

  const plain: Array<PairsReport> = []
  const multi: Array<PairsReport> = []
  let clientMicros = 0
  let serverMicros = 0
  let commands = 0
  for (let turn = 0; turn < turns; turn++) {
    plain.push(await performer.pairs({ ...order, kind: "lock", prefix: `w11:one:${turn}:`, pairs }))
    const cost = await measure(run, [performer], async () => {
      multi.push(await performer.pairs({ ...order, kind: "multi", prefix: `w11:${turn}:`, pairs }))
    })
    clientMicros += cost.clientMicros
    serverMicros += cost.serverMicros
    commands += cost.commands
  }
  const all = turns * pairs
  const millis = multi.reduce((sum, report) => sum + report.millis, 0)
  return {
    p50Micros: median(multi.map(({ p50Micros }) => p50Micros)),
    p99Micros: median(multi.map(({ p99Micros }) => p99Micros)),
    pairsPerSecond: (all / millis) * 1000,
    timesPlain: median(multi.map(({ p50Micros }, turn) => p50Micros / plain[turn]!.p50Micros)),
    clientMicros: clientMicros / all,
    serverMicros: serverMicros / all,
    commands: commands / all
  }
}

export const w11: Workload = {
  id: "W11",
  title: "one worker, three locks on one server at once, repeatedly, with new names each time",
  kinds: ["lock", "multi"],
  reference: undefined,
  // no reference: the ratio of three locks to one says nothing about a library in which both are slow
  columns: [...pairColumns, { metric: "timesPlain", title: "p50 x own single lock", digits: 2 }],
  targets: [
    { metric: "timesPlain", text: "p50 ≤ 1.3 x that of a single lock", of: "figure", met: (times) => times <= 1.3 },
    ...pairTargets
  ],
  limitMillis: 60_000,
  run: measureMulti
}
