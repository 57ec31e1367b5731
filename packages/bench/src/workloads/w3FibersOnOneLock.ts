import { rawPubSub } from "../candidates/catalog.ts"
import { measure } from "../measure.ts"
import type { Section } from "../Performer.ts"
import { expectExclusive, inOrder, wallMillis } from "../sections.ts"
import { jain, percentile } from "../statistics.ts"
import type { Run, Sample, Workload } from "../Workload.ts"

const workers = 16

/** A candidate that has not finished by then is measured by the sections it has done. */
const limitMillis = 4000

/** A warm-up keeps compilation out of the measurement; a slow candidate's is cut short. */
const warmUpMillis = 2500

const measureContention = async (run: Run, thinkMillis: number | undefined): Promise<Sample> => {
  const { port, quick, warmUp } = run
  const performer = await run.start({ port, leaseMillis: 30_000 })
  const order = {
    parties: [{ kind: "lock", workers }],
    ...(thinkMillis === undefined ? undefined : { thinkMillis })
  } as const
  await performer.contend({
    ...order,
    name: "w3:warm-up",
    sectionsInAll: (quick ? 2000 : 8000) * warmUp,
    limitMillis: quick ? 800 : warmUpMillis
  })
  let done: ReadonlyArray<Section> = []
  const cost = await measure(run, [performer], async () => {
    done = await performer.contend({
      ...order,
      name: "w3",
      sectionsInAll: quick ? 1000 : 4000,
      limitMillis: quick ? 1500 : limitMillis
    })
  })
  const sections = inOrder([done])
  expectExclusive(sections)
  const shares = Array.from({ length: workers }, () => 0)
  for (const { worker } of sections) shares[worker]!++
  const waits = Float64Array.from(sections, ({ askedAt, enteredAt }) => enteredAt - askedAt)
  const count = sections.length
  return {
    sectionsPerSecond: (count / wallMillis(sections)) * 1000,
    commands: cost.commands / count,
    clientMicros: cost.clientMicros / count,
    serverMicros: cost.serverMicros / count,
    least: Math.min(...shares),
    most: Math.max(...shares),
    jain: jain(shares),
    waitP50Millis: percentile(waits, 0.5),
    waitP99Millis: percentile(waits, 0.99)
  }
}

const w3Workload = (id: string, title: string, thinkMillis: number | undefined): Workload => ({
  id,
  title,
  kinds: ["lock"],
  reference: rawPubSub,
  columns: [
    { metric: "sectionsPerSecond", title: "sections/s", digits: 0, better: "higher", ratio: true },
    { metric: "commands", title: "commands/section", digits: 2, better: "lower" },
    { metric: "clientMicros", title: "client CPU µs/section", digits: 0, better: "lower", ratio: true },
    { metric: "serverMicros", title: "server CPU µs/section", digits: 0, better: "lower" },
    { metric: "least", title: "min/worker", digits: 0 },
    { metric: "most", title: "max/worker", digits: 0 },
    { metric: "jain", title: "Jain", digits: 2, better: "higher" },
    // a library that serves only a few workers has a short median
    { metric: "waitP50Millis", title: "wait p50 ms", digits: 2 },
    { metric: "waitP99Millis", title: "p99 ms", digits: 1, better: "lower" }
  ],
  targets: [
    { metric: "sectionsPerSecond", text: "sections/s ≥ 1.0", of: "ratio", met: (ratio) => ratio >= 1 },
    { metric: "commands", text: "≤ 2.3 commands per section", of: "figure", met: (commands) => commands <= 2.3 },
    { metric: "jain", text: "Jain fairness ≥ 0.99", of: "figure", met: (index) => index >= 0.99 }
  ],
  limitMillis: 40_000,
  run: (run) => measureContention(run, thinkMillis)
})

export const w3 = w3Workload("W3", `${workers} fibers on one lock, section of one setImmediate`, undefined)

export const w3Think = w3Workload("W3-think", "the same, 5 ms of thinking after each section", 5)
