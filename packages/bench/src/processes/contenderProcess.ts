/**
 * One of several processes that want the same lock. Warms up alone, then with the others, then runs its sections.
 */
import { setTimeout as sleep } from "node:timers/promises"
import { entryOf } from "../candidates/catalog.ts"
import type { Session, Worker } from "../Candidate.ts"
import { cpuMicros } from "../measure.ts"
import { argument, hear, run, say } from "./Parent.ts"

export interface ContenderArgument {
  readonly candidate: string
  readonly port: number
  readonly sections: number
  readonly warmUp: number
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

const warmUpMillis = 2000

/** Milliseconds on a clock that all processes of the machine share. */
const now = (): number => Number(process.hrtime.bigint()) / 1e6

/** Long enough for the code to be compiled, in a contention of its own. */
const warmUpAlone = async (session: Session): Promise<void> => {
  const until = now() + warmUpMillis
  let left = 6000
  const worker: Worker = {
    next: () => (left-- > 0 && now() < until ? `w4:warm-up:${process.pid}` : undefined),
    section: (leave) => setImmediate(leave),
    think: undefined,
    gaveUp: () => {}
  }
  const workers = Array.from({ length: 8 }, () => session.work(worker))
  await Promise.race([Promise.all(workers), sleep(warmUpMillis + 1000)])
}

run(async () => {
  const { candidate, port, sectionMillis, sections, thinkMillis, warmUp } = argument<ContenderArgument>()

  const work = async (session: Session, name: string, total: number) => {
    const done: Array<ContenderReport["sections"][number]> = []
    let askedAt = 0
    await session.work({
      next: () => {
        askedAt = now()
        return done.length === total ? undefined : name
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
  await warmUpAlone(session)
  say("ready")
  await starts[0]
  await work(session, "w4:warm-up", warmUp)
  say("warm")
  await starts[1]
  const cpuBefore = cpuMicros()
  const done = await work(session, "w4", sections)
  say("done", { sections: done, cpuMicros: cpuMicros() - cpuBefore } satisfies ContenderReport)
})
