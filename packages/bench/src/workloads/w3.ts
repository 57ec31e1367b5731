import { setTimeout as sleep } from "node:timers/promises"
import { rawPubSub } from "../candidates/catalog.ts"
import type { Session, Step } from "../Candidate.ts"
import { measure } from "../measure.ts"
import { jain, percentile } from "../statistics.ts"
import type { Run, Sample, Workload } from "../Workload.ts"

const workers = 16

/** A candidate that is not done by then is measured by what it did. */
const limitMillis = 6000

const graceMillis = 1000

/** Code that is still being compiled would be measured otherwise; who is slow must not warm up for ever. */
const warmUpMillis = 2500

interface Contention {
  /** Sections of each worker. */
  readonly sections: ReadonlyArray<number>
  readonly waits: Float64Array
  readonly millis: number
}

const contend = async (
  session: Session,
  name: string,
  total: number,
  think: Step | undefined,
  limitMillis: number
): Promise<Contention> => {
  const sections = Array.from({ length: workers }, () => 0)
  const waits: Array<number> = []
  let begun = 0
  let inside = 0
  const startedAt = performance.now()
  const workersDone = Promise.all(
    sections.map((_, worker) => {
      let askedAt = 0
      return session.work({
        next: () => {
          askedAt = performance.now()
          if (begun === total || askedAt - startedAt > limitMillis) return undefined
          begun++
          return name
        },
        section: (done) => {
          if (++inside > 1) throw new Error("two workers under one lock")
          waits.push(performance.now() - askedAt)
          sections[worker]!++
          setImmediate(() => {
            inside--
            done()
          })
        },
        think,
        gaveUp: () => {}
      })
    })
  )
  // Who still waits after the limit may finish, but not for ever: some wait for a message that has gone by.
  await Promise.race([workersDone, sleep(limitMillis + graceMillis)])
  return {
    sections: [...sections],
    waits: Float64Array.from(waits),
    millis: performance.now() - startedAt
  }
}

const measureContention = async (run: Run, think: Step | undefined): Promise<Sample> => {
  const { candidate, counters, port } = run
  const session = await candidate.open({ port, leaseMillis: 30_000 })
  await contend(session, "w3:warm-up", run.quick ? 2000 : 8000, think, warmUpMillis)
  let contention: Contention | undefined
  const cost = await measure(candidate, counters, async () => {
    contention = await contend(session, "w3", run.quick ? 1000 : 4000, think, limitMillis)
  })
  const { millis, sections, waits } = contention!
  const done = waits.length
  return {
    sectionsPerSecond: (done / millis) * 1000,
    commands: cost.commands / done,
    clientMicros: cost.clientMicros / done,
    least: Math.min(...sections),
    most: Math.max(...sections),
    jain: jain(sections),
    waitP50Millis: percentile(waits, 0.5),
    waitP99Millis: percentile(waits, 0.99)
  }
}

const w3Workload = (id: string, title: string, think: Step | undefined): Workload => ({
  id,
  title,
  reference: rawPubSub,
  columns: [
    { metric: "sectionsPerSecond", title: "sections/s", digits: 0, ratio: "higher is better" },
    { metric: "commands", title: "commands/section", digits: 2 },
    { metric: "clientMicros", title: "client CPU µs/section", digits: 0, ratio: "lower is better" },
    { metric: "least", title: "min/worker", digits: 0 },
    { metric: "most", title: "max/worker", digits: 0 },
    { metric: "jain", title: "Jain", digits: 2 },
    { metric: "waitP50Millis", title: "wait p50 ms", digits: 2 },
    { metric: "waitP99Millis", title: "p99 ms", digits: 1 }
  ],
  targets: [
    { metric: "sectionsPerSecond", text: "sections/s ≥ 1.0", of: "ratio", met: (ratio) => ratio >= 1 },
    { metric: "commands", text: "≤ 2.3 commands per section", of: "figure", met: (commands) => commands <= 2.3 },
    { metric: "jain", text: "Jain fairness ≥ 0.99", of: "figure", met: (index) => index >= 0.99 }
  ],
  limitMillis: 40_000,
  run: (run) => measureContention(run, think)
})

export const w3 = w3Workload("W3", `${workers} fibers on one lock, section of one setImmediate`, undefined)

export const w3Think = w3Workload("W3-think", "the same, 5 ms of thinking after each section", (done) =>
  setTimeout(done, 5)
)
