import { setTimeout as sleep } from "node:timers/promises"
import { rawPubSub } from "../candidates/catalog.ts"
import { measure } from "../measure.ts"
import type { Performer } from "../Performer.ts"
import { expectExclusive, type SectionOf, wallMillis } from "../sections.ts"
import type { Run, Sample, Workload } from "../Workload.ts"
import { contendAll, startContenders } from "./processes.ts"

const full = { processes: 10, waitersEach: 100 }
const few = { processes: 5, waitersEach: 40 }

/** Until everybody has asked and subscribed: until nearly nothing is sent any more, but not for ever. */
const settle = async (run: Run, performers: ReadonlyArray<Performer>, waiters: number): Promise<void> => {
  await sleep(1000)
  for (let i = 0; i < 20; i++) {
    const { commands } = await measure(run, performers, () => sleep(500))
    if (commands < waiters / 20) return
  }
}

const measureQueue = async (run: Run): Promise<Sample> => {
  const { processes, waitersEach } = run.quick ? few : full
  const waiters = processes * waitersEach
  const parties = [{ kind: "fair", workers: waitersEach }] as const
  const performers = await startContenders(run, processes, {
    name: "w7",
    parties,
    warmUpMillis: run.quick ? 500 : 2000
  })
  const [holder] = await run.startApart(1, { port: run.port, leaseMillis: 120_000 })
  await holder!.hold({ kind: "fair", names: ["w7"] })
  const draining = contendAll(performers, { name: "w7", parties, sectionsEach: 1, limitMillis: 60_000 })
  await settle(run, performers, waiters)
  const waiting = await measure(run, performers, () => sleep(run.quick ? 1000 : 4000))
  let sections: ReadonlyArray<SectionOf> = []
  const drain = await measure(run, performers, async () => {
    await holder!.release()
    sections = await draining
  })
  for (const performer of [...performers, holder!]) performer.end()
  if (sections.length !== waiters) throw new Error(`${waiters - sections.length} were not let in`)
  expectExclusive(sections)
  const millis = wallMillis(sections.map((section) => ({ ...section, askedAt: section.enteredAt })))
  return {
    commands: drain.commands / waiters,
    grantsPerSecond: (waiters / millis) * 1000,
    clientMicros: drain.clientMicros / waiters,
    serverMicros: drain.serverMicros / waiters,
    waitingCommands: (waiting.commands / waiting.millis) * 1000,
    waitingPercent: (waiting.clientMicros / 1000 / waiting.millis) * 100
  }
}

export const w7: Workload = {
  id: "W7",
  title: `${full.processes * full.waitersEach} waiters in ${full.processes} processes queue for one fair lock, each for one short section`,
  kinds: ["fair"],
  reference: rawPubSub,
  columns: [
    { metric: "grantsPerSecond", title: "grants/s", digits: 0, better: "higher", ratio: true },
    { metric: "commands", title: "commands/grant", digits: 2, better: "lower" },
    { metric: "clientMicros", title: "CPU µs/grant, all processes", digits: 0, better: "lower" },
    { metric: "serverMicros", title: "server CPU µs/grant", digits: 0, better: "lower" },
    { metric: "waitingCommands", title: "commands/s while all wait", digits: 1, better: "lower" },
    { metric: "waitingPercent", title: "CPU % while all wait, all processes", digits: 1, better: "lower" }
  ],
  targets: [
    { metric: "commands", text: "≤ 8 commands per grant", of: "figure", met: (commands) => commands <= 8 },
    {
      metric: "waitingCommands",
      text: "≤ 50 commands/s while all wait",
      of: "figure",
      met: (commands) => commands <= 50
    }
  ],
  limitMillis: 150_000,
  run: measureQueue
}
