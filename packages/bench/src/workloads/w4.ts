import { rawPubSub } from "../candidates/catalog.ts"
import { measure } from "../measure.ts"
import { Child } from "../processes/Child.ts"
import type { ContenderArgument, ContenderReport } from "../processes/contenderProcess.ts"
import { percentile } from "../statistics.ts"
import type { Run, Sample, Workload } from "../Workload.ts"

const processes = 4
const sectionMillis = 2
const thinkMillis = 4

const measureProcesses = async ({ candidate, counters, name, port, quick }: Run): Promise<Sample> => {
  const sections = quick ? 50 : 200
  const contenders = Array.from(
    { length: processes },
    () =>
      new Child("./contenderProcess.js", {
        candidate: name,
        port,
        sections,
        warmUpMillis: quick ? 1000 : 3000,
        sectionMillis,
        thinkMillis
      } satisfies ContenderArgument)
  )
  const all = <A>(word: string) => Promise.all(contenders.map((contender) => contender.hear<A>(word)))
  const tell = (word: string) => {
    for (const contender of contenders) contender.say(word)
  }

  await all("ready")
  tell("warm up")
  await all("warm")
  let reports: ReadonlyArray<ContenderReport> = []
  const cost = await measure(candidate, counters, async () => {
    tell("go")
    reports = await all<ContenderReport>("done")
  })
  for (const contender of contenders) contender.end()

  const inOrder = reports
    .flatMap((report, process) => report.sections.map((section) => ({ ...section, process })))
    .sort((a, b) => a.enteredAt - b.enteredAt)
  const handOffs: Array<number> = []
  let toAnother = 0
  for (let i = 1; i < inOrder.length; i++) {
    const before = inOrder[i - 1]!
    const after = inOrder[i]!
    if (after.enteredAt < before.leftAt) throw new Error("two processes under one lock")
    if (after.process === before.process) continue
    toAnother++
    // Only who waited already when the lock became free was handed it.
    if (after.askedAt < before.leftAt) handOffs.push(after.enteredAt - before.leftAt)
  }
  const total = processes * sections
  const sorted = Float64Array.from(handOffs)
  return {
    wallMillis: Math.max(...inOrder.map(({ leftAt }) => leftAt)) - Math.min(...inOrder.map(({ askedAt }) => askedAt)),
    commands: cost.commands / total,
    toAnother: (toAnother / (inOrder.length - 1)) * 100,
    handOffP50Millis: percentile(sorted, 0.5),
    handOffP99Millis: percentile(sorted, 0.99),
    clientMicros: reports.reduce((sum, { cpuMicros }) => sum + cpuMicros, 0) / total
  }
}

export const w4: Workload = {
  id: "W4",
  title: `${processes} processes, one lock, ${sectionMillis} ms sections, ${thinkMillis} ms of thinking, 200 sections each`,
  reference: rawPubSub,
  columns: [
    { metric: "wallMillis", title: "wall ms", digits: 0, ratio: "lower is better" },
    { metric: "commands", title: "commands/section", digits: 2 },
    { metric: "toAnother", title: "hand-offs to another process %", digits: 0 },
    { metric: "handOffP50Millis", title: "cross hand-off p50 ms", digits: 2, ratio: "lower is better" },
    { metric: "handOffP99Millis", title: "p99 ms", digits: 1 },
    { metric: "clientMicros", title: "CPU µs/section, all processes", digits: 0 }
  ],
  targets: [
    { metric: "wallMillis", text: "wall ≤ 1.05", of: "ratio", met: (ratio) => ratio <= 1.05 },
    {
      metric: "handOffP50Millis",
      text: "cross-process hand-off p50 ≤ 1.1",
      of: "ratio",
      met: (ratio) => ratio <= 1.1
    }
  ],
  limitMillis: 30_000,
  run: measureProcesses
}
