/**
 * One of several processes that want the same lock: warms up together with the others, then runs its sections.
 */
import { setTimeout as sleep } from "node:timers/promises"
import { entryOf } from "../candidates/catalog.ts"
import type { Session } from "../Candidate.ts"
import { cpuMicros } from "../measure.ts"
import { argument, hear, run, say } from "./Parent.ts"

export interface ContenderArgument {
  readonly candidate: string
  readonly port: number
  readonly sections: number
  readonly warmUpMillis: number
  readonly sectionMillis: number
  readonly thinkMillis: number
}

export interface ContenderReport {
  readonly sections: ReadonlyArray<{
    readonly askedAt: number
    readonly enteredAt: number
    readonly leftAt: number
  }>
  readonly cpuMicros: number
}

/** Milliseconds on a clock that all processes of the machine share. */
const now = (): number => Number(process.hrtime.bigint()) / 1e6

run(async () => {
  const { candidate, port, sectionMillis, sections, thinkMillis, warmUpMillis } = argument<ContenderArgument>()

  /** As many short sections as possible, so that the code that contends gets compiled. */
  const warmUp = async (session: Session): Promise<void> => {
    const until = now() + warmUpMillis
    const working = session.work({
      next: () => (now() < until ? "w4:warm-up" : undefined),
      section: (leave) => setImmediate(leave),
      think: (go) => setImmediate(go),
      gaveUp: () => {}
    })
    await Promise.race([working, sleep(warmUpMillis + 1000)])
  }

  const work = async (session: Session): Promise<ContenderReport["sections"]> => {
    const done: Array<ContenderReport["sections"][number]> = []
    let askedAt = 0
    await session.work({
      next: () => {
        askedAt = now()
        return done.length === sections ? undefined : "w4"
      },
      section: (leave) => {
        const enteredAt = now()
        setTimeout(() => {
          done.push({ askedAt, enteredAt, leftAt: now() })
          leave()
        }, sectionMillis)
      },
      think: (go) => setTimeout(go, thinkMillis),
      gaveUp: () => {}
    })
    return done
  }

  const session = await (await entryOf(candidate).load()).candidate.open({ port, leaseMillis: 30_000 })
  const starts = [hear("warm up"), hear("go")] as const
  say("ready")
  await starts[0]
  await warmUp(session)
  say("warm")
  await starts[1]
  const cpuBefore = cpuMicros()
  const done = await work(session)
  say("done", { sections: done, cpuMicros: cpuMicros() - cpuBefore } satisfies ContenderReport)
})
