import { setTimeout as sleep } from "node:timers/promises"
import { measure } from "../measure.ts"
import { median } from "../statistics.ts"
import type { Column, Run, Sample, Workload } from "../Workload.ts"
import { measureCrowd } from "../workloads/w12CrowdOnOneLock.ts"
import { measurePairs } from "../workloads/pairs.ts"
import { reference } from "./catalog.ts"

/** What an earlier run has left behind, on servers that are not emptied, must not be in the way. */
const ownName = (name: string): string => `${name}:${process.pid}`

const ofAll = { kinds: ["lock"], reference, targets: [] } as const

/** Whatever else the machine does, one pair in ten is hardly disturbed: the 10th percentile is compared first. */
const pairColumns: ReadonlyArray<Column> = [
  { metric: "p10Micros", title: "p10 µs/pair", digits: 0, better: "lower", ratio: true },
  { metric: "p50Micros", title: "p50 µs", digits: 0, better: "lower" },
  { metric: "p99Micros", title: "p99 µs", digits: 0, better: "lower" },
  { metric: "pairsPerSecond", title: "pairs/s", digits: 0, better: "higher" },
  { metric: "serverMicros", title: "server CPU µs/pair", digits: 0, better: "lower", ratio: true },
  { metric: "commands", title: "requests/pair", digits: 2, better: "lower" }
]

const pairs = (
  id: string,
  title: string,
  lockPer: "worker" | "pair",
  [count, quickCount]: readonly [number, number]
) => ({
  ...ofAll,
  id,
  title,
  columns: pairColumns,
  run: (run: Run) =>
    measurePairs(run, {
      prefix: ownName(`${id}:`),
      lockPer,
      workers: 1,
      warmUp: run.quick ? 100 : 300,
      pairs: run.quick ? quickCount : count
    })
})

const pair: Workload = {
  ...pairs("pair", "one process takes and frees one lock, again and again", "worker", [1000, 200]),
  limitMillis: 120_000
}

const names: Workload = {
  ...pairs(
    "names",
    "one process takes and frees 10,000 locks, one after another, each with a name of its own",
    "pair",
    [10_000, 300]
  ),
  rounds: 1,
  limitMillis: 600_000
}

const handOff = (processes: number): Workload => ({
  ...ofAll,
  id: `hand-off-${processes}`,
  title: `one lock, ${processes} processes that all want it all the time, 5 ms sections`,
  columns: [
    { metric: "handOffP50Millis", title: "hand-off p50 ms", digits: 2, better: "lower", ratio: true },
    { metric: "handOffP99Millis", title: "p99 ms", digits: 1, better: "lower" },
    { metric: "sectionsPerSecond", title: "sections/s", digits: 0, better: "higher", ratio: true },
    { metric: "commands", title: "requests/section", digits: 1, better: "lower" },
    { metric: "serverMicros", title: "server CPU µs/section", digits: 0, better: "lower" },
    { metric: "longestToMean", title: "longest : mean wait", digits: 1, better: "lower" }
  ],
  limitMillis: 240_000,
  run: (run) =>
    // tens of thousands of pairs, with which Java warms up elsewhere, take minutes where each is written to disk
    measureCrowd(
      { ...run, warmUp: 1 },
      {
        name: ownName("hand-off"),
        processes,
        sectionsEach: run.quick ? 5 : Math.max(200 / processes, 40)
      }
    )
})

const takeoverLeaseMillis = 4000

/** How long until processes have connected and wait. */
const settleMillis = 1000

/** Milliseconds on the clock that all processes of the machine share. */
const now = (): number => Number(process.hrtime.bigint()) / 1e6

/** Kills holders, each at another moment of its lease, and measures when a waiter of another process is in. */
const measureTakeover = async (run: Run): Promise<Sample> => {
  const deaths = run.quick ? 1 : 3
  const connection = { port: run.port, otherPorts: run.otherPorts, leaseMillis: takeoverLeaseMillis }
  const holders = await run.startApart(deaths, connection)
  const [waiter] = await run.startApart(1, connection)
  const names = holders.map((_, i) => `${ownName("takeover")}:${i}`)
  await Promise.all(holders.map((holder, i) => holder.hold({ kind: "lock", names: [names[i]!] })))
  const entering = names.map((name) =>
    waiter!.contend({ name, parties: [{ kind: "lock", workers: 1 }], sectionsEach: 1, limitMillis: 60_000 })
  )
  await sleep(settleMillis)
  const killedAt: Array<number> = []
  for (const holder of holders) {
    killedAt.push(now())
    holder.end()
    await sleep(takeoverLeaseMillis / deaths)
  }
  const sections = await Promise.all(entering)
  waiter!.end()
  const took = sections.map((own, i) => {
    if (own.length === 0) throw new Error("nobody got in for a minute after its holder was killed")
    return own[0]!.enteredAt - killedAt[i]!
  })
  return { medianMillis: median(took), longestMillis: Math.max(...took) }
}

const takeover: Workload = {
  ...ofAll,
  id: "takeover",
  title: `the holder is killed (SIGKILL) and a process waits; leases and sessions of ${takeoverLeaseMillis / 1000} s`,
  columns: [
    { metric: "medianMillis", title: "median ms until the next one is in", digits: 0, better: "lower", ratio: true },
    { metric: "longestMillis", title: "longest ms", digits: 0, better: "lower" }
  ],
  limitMillis: 120_000,
  run: measureTakeover
}

const waiters = 8

/** Long enough for nobody to act on the lease meanwhile. */
const longLeaseMillis = 120_000

const measureWaiting = async (run: Run): Promise<Sample> => {
  const connection = { port: run.port, otherPorts: run.otherPorts, leaseMillis: longLeaseMillis }
  const [holder] = await run.startApart(1, connection)
  const name = ownName("waiting")
  await holder!.hold({ kind: "lock", names: [name] })
  const processes = await run.startApart(waiters, connection)
  await Promise.all(processes.map((process) => process.wait({ name, waiters: 1 })))
  await sleep(settleMillis)
  const cost = await measure(run, processes, () => sleep(run.quick ? 2000 : 5000))
  const gaveUp = await Promise.all(processes.map((process) => process.gaveUp()))
  for (const process of [holder!, ...processes]) process.end()
  return {
    requestsPerSecond: (cost.commands / cost.millis) * 1000,
    serverPercent: (cost.serverMicros / 1000 / cost.millis) * 100,
    clientPercent: (cost.clientMicros / 1000 / cost.millis) * 100,
    gaveUp: gaveUp.reduce((sum, each) => sum + each, 0)
  }
}

const waiting: Workload = {
  ...ofAll,
  id: "waiting",
  title: `${waiters} processes wait for a lock that another one holds`,
  columns: [
    { metric: "requestsPerSecond", title: "requests/s", digits: 1, better: "lower", ratio: true },
    { metric: "serverPercent", title: "server CPU %", digits: 1, better: "lower", ratio: true },
    { metric: "clientPercent", title: "CPU % of all waiting processes", digits: 1, better: "lower" },
    { metric: "gaveUp", title: "gave up", digits: 0, better: "lower" }
  ],
  limitMillis: 60_000,
  run: measureWaiting
}

/** What every compared system is to do. */
export const comparisons: ReadonlyArray<Workload> = [pair, names, handOff(2), handOff(8), takeover, waiting]
