import { setTimeout as sleep } from "node:timers/promises"
import { measure } from "../measure.ts"
import type { Run, Sample, Workload } from "../Workload.ts"

const waiters = 200
const seconds = 5

/** How long until all wait and the work of joining is over. */
const settleMillis = 1000

const measureWaiters = async (run: Run): Promise<Sample> => {
  // long enough for neither the holder nor the waiters to act on the lease meanwhile
  const connection = { port: run.port, leaseMillis: 120_000 }
  const performer = await run.start(connection)
  const [holder] = await run.startApart(1, connection)

  // A first waiter gets the lock beforehand, so that connections, compiled code and caches are not counted as waiters'
  // memory.
  await holder!.hold({ kind: "lock", names: ["w5:warm-up"] })
  await performer.wait({ name: "w5:warm-up", waiters: 1 })
  await sleep(settleMillis / 4)
  await holder!.release()
  await sleep(settleMillis / 4)

  await holder!.hold({ kind: "lock", names: ["w5"] })
  const heapBefore = await performer.heapBytes()
  await performer.wait({ name: "w5", waiters })
  await sleep(settleMillis)
  const cost = await measure(run, [performer], () => sleep(run.quick ? 1000 : seconds * 1000))
  const heap = (await performer.heapBytes()) - heapBefore
  holder!.end()
  return {
    commandsPerSecond: (cost.commands / cost.millis) * 1000,
    clientPercent: (cost.clientMicros / 1000 / cost.millis) * 100,
    serverPercent: (cost.serverMicros / 1000 / cost.millis) * 100,
    heapBytes: heap / waiters,
    failed: await performer.gaveUp()
  }
}

export const w5: Workload = {
  id: "W5",
  title: `${waiters} waiters in one process on one lock that another process holds, for ${seconds} s`,
  kinds: ["lock"],
  reference: undefined,
  columns: [
    { metric: "commandsPerSecond", title: "commands/s", digits: 1, better: "lower" },
    { metric: "clientPercent", title: "client CPU %", digits: 1, better: "lower" },
    { metric: "serverPercent", title: "server CPU %", digits: 1, better: "lower" },
    // a thread's stack is not on the heap
    { metric: "heapBytes", title: "heap B/waiter", digits: 0 },
    { metric: "failed", title: "gave up", digits: 0, better: "lower" }
  ],
  targets: [
    { metric: "commandsPerSecond", text: "≤ 2 commands/s in total", of: "figure", met: (commands) => commands <= 2 },
    { metric: "heapBytes", text: "≤ 10 KB of heap per waiter", of: "figure", met: (bytes) => bytes <= 10_000 }
  ],
  rounds: 1,
  limitMillis: 40_000,
  run: measureWaiters
}
