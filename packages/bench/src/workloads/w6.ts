import { setTimeout as sleep } from "node:timers/promises"
import { collectGarbage, measure } from "../measure.ts"
import type { Run, Sample, Workload } from "../Workload.ts"

const leaseMillis = 3000
const seconds = 10

const measureHolding = async ({ candidate, counters, port, quick }: Run): Promise<Sample> => {
  const count = quick ? 500 : 2000
  const session = await candidate.open({ port, leaseMillis })
  const warmUp = await session.hold(Array.from({ length: 50 }, (_, i) => `w6:warm-up:${i}`))
  await warmUp.release()
  const names = Array.from({ length: count }, (_, i) => `w6:${i}`)
  collectGarbage()
  const heapBefore = process.memoryUsage().heapUsed

  const startedAt = performance.now()
  const held = await session.hold(names)
  const acquiredAt = performance.now()
  const cost = await measure(candidate, counters, () => sleep(quick ? 4000 : seconds * 1000))
  collectGarbage()
  const heap = process.memoryUsage().heapUsed - heapBefore
  const missing = await counters.missing(names.map(session.keyOf))
  const lost = Math.max(missing, await held.lost())
  const releasedFrom = performance.now()
  await held.release()
  return {
    commandsPerSecond: (cost.commands / cost.millis) * 1000,
    clientPercent: (cost.clientMicros / 1000 / cost.millis) * 100,
    lost,
    heapBytes: heap / count,
    acquireMillis: acquiredAt - startedAt,
    releaseMillis: performance.now() - releasedFrom
  }
}

export const w6: Workload = {
  id: "W6",
  title: `2000 locks held with automatic extension, lease ${leaseMillis / 1000} s, for ${seconds} s`,
  reference: undefined,
  columns: [
    { metric: "commandsPerSecond", title: "commands/s", digits: 1 },
    { metric: "clientPercent", title: "client CPU %", digits: 1 },
    { metric: "lost", title: "lost", digits: 0 },
    { metric: "heapBytes", title: "heap B/lock", digits: 0 },
    { metric: "acquireMillis", title: "acquire all ms", digits: 0 },
    { metric: "releaseMillis", title: "release all ms", digits: 0 }
  ],
  targets: [
    { metric: "lost", text: "none lost", of: "figure", met: (lost) => lost === 0 },
    { metric: "commandsPerSecond", text: "≤ 25 commands/s", of: "figure", met: (commands) => commands <= 25 }
  ],
  limitMillis: 40_000,
  run: measureHolding
}
