import { setTimeout as sleep } from "node:timers/promises"
import { rawPubSub } from "../candidates/catalog.ts"
import { measure } from "../measure.ts"
import type { Performer } from "../Performer.ts"
import { expectExclusive, type SectionOf, wallMillis } from "../sections.ts"
import { percentile } from "../statistics.ts"
import type { Column, Run, Sample, Workload } from "../Workload.ts"
import { contendAll, startContenders } from "./processes.ts"

const processes = 10

/**
 * Waits until all waiters have sent their requests and subscribed: until nearly nothing is sent in two periods in a row, as
 * a busy machine may pause all processes for a while. Gives up after half a minute.
 */
const settle = async (run: Run, performers: ReadonlyArray<Performer>, waiters: number): Promise<void> => {
  await sleep(1000)
  let quiet = 0
  for (let i = 0; i < 60 && quiet < 2; i++) {
    const { commands } = await measure(run, performers, () => sleep(500))
    // ten processes report twice a second
    quiet = commands < Math.max(20, waiters / 100) ? quiet + 1 : 0
  }
}

const now = (): number => Number(process.hrtime.bigint()) / 1e6

const measureQueue = async (run: Run, waitersEach: number): Promise<Sample> => {
  const waiters = processes * waitersEach
  const parties = [{ kind: "fair", workers: waitersEach }] as const
  const performers = await startContenders(run, processes, {
    name: "w7",
    // the queue of the warm-up must be empty before the measured one starts
    parties: [{ kind: "fair", workers: Math.min(waitersEach, 100) }],
    warmUpMillis: run.quick ? 500 : 2000
  })
  const [holder] = await run.startApart(1, { port: run.port, leaseMillis: 300_000 })
  await holder!.hold({ kind: "fair", names: ["w7"] })
  const draining = contendAll(performers, { name: "w7", parties, sectionsEach: 1, limitMillis: 120_000 })
  await settle(run, performers, waiters)
  const waiting = await measure(run, performers, () => sleep(run.quick ? 1000 : 4000))
  let sections: ReadonlyArray<SectionOf> = []
  let releasedAt = 0
  const drain = await measure(run, performers, async () => {
    releasedAt = now()
    await holder!.release()
    sections = await draining
  })
  for (const performer of [...performers, holder!]) performer.end()
  if (sections.length !== waiters) throw new Error(`${waiters - sections.length} waiters never got the lock`)
  expectExclusive(sections)
  const millis = wallMillis(sections.map((section) => ({ ...section, askedAt: section.enteredAt })))
  // all were waiting before the first entered
  const handOffs = Float64Array.from(
    sections,
    ({ enteredAt }, i) => enteredAt - (sections[i - 1]?.leftAt ?? releasedAt)
  )
  return {
    commands: drain.commands / waiters,
    grantsPerSecond: (waiters / millis) * 1000,
    handOffP50Millis: percentile(handOffs, 0.5),
    handOffP99Millis: percentile(handOffs, 0.99),
    longestWaitMillis: Math.max(...sections.map(({ enteredAt }) => enteredAt)) - releasedAt,
    clientMicros: drain.clientMicros / waiters,
    serverMicros: drain.serverMicros / waiters,
    waitingCommands: (waiting.commands / waiting.millis) * 1000,
    waitingPercent: (waiting.clientMicros / 1000 / waiting.millis) * 100,
    waitingServerPercent: (waiting.serverMicros / 1000 / waiting.millis) * 100
  }
}

const columns: ReadonlyArray<Column> = [
  { metric: "grantsPerSecond", title: "grants/s", digits: 0, better: "higher", ratio: true },
  { metric: "commands", title: "commands/grant", digits: 2, better: "lower" },
  { metric: "handOffP50Millis", title: "hand-off p50 ms", digits: 2, better: "lower", ratio: true },
  { metric: "handOffP99Millis", title: "p99 ms", digits: 1, better: "lower" },
  { metric: "longestWaitMillis", title: "last served after ms", digits: 0, better: "lower" },
  { metric: "clientMicros", title: "CPU µs/grant, all processes", digits: 0, better: "lower" },
  { metric: "serverMicros", title: "server CPU µs/grant", digits: 0, better: "lower", ratio: true },
  { metric: "waitingCommands", title: "commands/s while all wait", digits: 1, better: "lower" },
  { metric: "waitingPercent", title: "CPU % while all wait, all processes", digits: 1, better: "lower" },
  { metric: "waitingServerPercent", title: "server CPU % while all wait", digits: 2, better: "lower" }
]

const fairWaiters = (
  id: string,
  waitersEach: number,
  rest: Pick<Workload, "targets" | "limitMillis"> & Partial<Workload>
): Workload => ({
  id,
  title: `${processes * waitersEach} waiters in ${processes} processes queue for one fair lock, each for one short section`,
  kinds: ["fair"],
  reference: rawPubSub,
  columns,
  run: (run) => measureQueue(run, run.quick ? Math.min(20, waitersEach) : waitersEach),
  ...rest
})

const cheapGrants = {
  metric: "serverMicros",
  text: "server CPU per grant ≤ 1.0",
  of: "ratio",
  met: (ratio: number) => ratio <= 1
} as const

export const w7 = fairWaiters("W7", 100, {
  targets: [
    { metric: "commands", text: "≤ 8 commands per grant", of: "figure", met: (commands) => commands <= 8 },
    {
      metric: "waitingCommands",
      text: "≤ 50 commands/s while all wait",
      of: "figure",
      met: (commands) => commands <= 50
    },
    cheapGrants
  ],
  limitMillis: 150_000
})

/** Fewer and more waiters: the cost of a grant must not grow with the queue. */
export const w13Few = fairWaiters("W13-100", 10, { targets: [cheapGrants], limitMillis: 150_000 })
export const w13Many = fairWaiters("W13-5000", 500, {
  targets: [
    cheapGrants,
    {
      metric: "waitingServerPercent",
      text: "≤ 1 % server CPU while all wait",
      of: "figure",
      met: (percent) => percent <= 1
    }
  ],
  rounds: 1,
  limitMillis: 300_000
})
