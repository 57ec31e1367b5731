import { setTimeout as sleep } from "node:timers/promises"
import { measure } from "../measure.ts"
import { ServerCounters } from "../servers/ServerCounters.ts"
import type { Run, Sample, Workload } from "../Workload.ts"

const leaseMillis = 3000
const seconds = 10

const measureHolding = async (run: Run): Promise<Sample> => {
  const { candidate, port, quick } = run
  const count = quick ? 500 : 2000
  const performer = await run.start({ port, leaseMillis })
  for (let i = 0; i < run.warmUp; i++) {
    await performer.hold({ kind: "lock", names: Array.from({ length: 50 }, (_, i) => `w6:warm-up:${i}`) })
    await performer.release()
  }
  const names = Array.from({ length: count }, (_, i) => `w6:${i}`)
  const heapBefore = await performer.heapBytes()

  const startedAt = performance.now()
  await performer.hold({ kind: "lock", names })
  const acquiredAt = performance.now()
  const cost = await measure(run, [performer], () => sleep(quick ? 3300 : seconds * 1000))
  const heap = (await performer.heapBytes()) - heapBefore
  const missing = await new ServerCounters([port]).missing(names.map(candidate.keyOf ?? ((name) => name)))
  const lost = Math.max(missing, await performer.lost())
  const releasedFrom = performance.now()
  await performer.release()
  return {
    commandsPerSecond: (cost.commands / cost.millis) * 1000,
    clientPercent: (cost.clientMicros / 1000 / cost.millis) * 100,
    serverPercent: (cost.serverMicros / 1000 / cost.millis) * 100,
    lost,
    heapBytes: heap / count,
    acquireMillis: acquiredAt - startedAt,
    releaseMillis: performance.now() - releasedFrom
  }
}

export const w6: Workload = {
  id: "W6",
  title: `2000 locks held with automatic extension, lease ${leaseMillis / 1000} s, for ${seconds} s`,
  kinds: ["lock"],
  reference: undefined,
  columns: [
    { metric: "commandsPerSecond", title: "commands/s", digits: 1, better: "lower" },
    { metric: "clientPercent", title: "client CPU %", digits: 1, better: "lower" },
    { metric: "serverPercent", title: "server CPU %", digits: 1, better: "lower" },
    { metric: "lost", title: "lost", digits: 0, better: "lower" },
    { metric: "heapBytes", title: "heap B/lock", digits: 0, better: "lower" },
    { metric: "acquireMillis", title: "acquire all ms", digits: 0, better: "lower" },
    { metric: "releaseMillis", title: "release all ms", digits: 0, better: "lower" }
  ],
  targets: [
    { metric: "lost", text: "none lost", of: "figure", met: (lost) => lost === 0 },
    { metric: "commandsPerSecond", text: "≤ 25 commands/s", of: "figure", met: (commands) => commands <= 25 }
  ],
  rounds: 1,
  limitMillis: 40_000,
  run: measureHolding
}
