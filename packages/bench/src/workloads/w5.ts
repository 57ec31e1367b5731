import { setTimeout as sleep } from "node:timers/promises"
import { collectGarbage, measure } from "../measure.ts"
import { Child } from "../processes/Child.ts"
import type { HolderArgument } from "../processes/holderProcess.ts"
import type { Run, Sample, Workload } from "../Workload.ts"

const waiters = 200
const seconds = 5

/** Until everybody waits, and what the beginning took is done with. */
const settleMillis = 1000

const measureWaiters = async ({ candidate, counters, name, port, quick }: Run): Promise<Sample> => {
  // long enough that neither the holder nor the waiters have to do with the lease meanwhile
  const leaseMillis = 120_000
  const hold = async (lock: string) => {
    const holder = new Child("./holderProcess.js", {
      candidate: name,
      port,
      name: lock,
      leaseMillis
    } satisfies HolderArgument)
    await holder.hear("holding")
    return holder
  }
  const session = await candidate.open({ port, leaseMillis })

  // Connections, compiled code and caches are not the waiters': somebody waits, and gets the lock, before they come.
  const earlier = await hold("w5:warm-up")
  session.wait("w5:warm-up", 1)
  await sleep(settleMillis / 2)
  earlier.say("release")
  await sleep(settleMillis / 2)
  earlier.end()

  const holder = await hold("w5")
  collectGarbage()
  const heapBefore = process.memoryUsage().heapUsed

  const waiting = session.wait("w5", waiters)
  await sleep(settleMillis)
  const millis = quick ? 2000 : seconds * 1000
  const cost = await measure(candidate, counters, () => sleep(millis))
  collectGarbage()
  const heap = process.memoryUsage().heapUsed - heapBefore
  holder.end()
  return {
    commandsPerSecond: (cost.commands / cost.millis) * 1000,
    clientPercent: (cost.clientMicros / 1000 / cost.millis) * 100,
    heapBytes: heap / waiters,
    failed: waiting.failed()
  }
}

export const w5: Workload = {
  id: "W5",
  title: `${waiters} waiters in one process on one lock that another process holds, for ${seconds} s`,
  reference: undefined,
  columns: [
    { metric: "commandsPerSecond", title: "commands/s", digits: 1 },
    { metric: "clientPercent", title: "client CPU %", digits: 1 },
    { metric: "heapBytes", title: "heap B/waiter", digits: 0 },
    { metric: "failed", title: "gave up", digits: 0 }
  ],
  targets: [
    { metric: "commandsPerSecond", text: "≤ 2 commands/s in all", of: "figure", met: (commands) => commands <= 2 },
    { metric: "heapBytes", text: "≤ 10 KB of heap per waiter", of: "figure", met: (bytes) => bytes <= 10_000 }
  ],
  limitMillis: 40_000,
  run: measureWaiters
}
