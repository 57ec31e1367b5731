import { setTimeout as sleep } from "node:timers/promises"
import type { Session, Step } from "../Candidate.ts"
import type { ContentionOrder, Section } from "../Performer.ts"

const graceMillis = 1000

/** Milliseconds on the clock that all processes of the machine share. */
const now = (): number => Number(process.hrtime.bigint()) / 1e6

const stepOf = (millis: number | undefined): Step =>
  millis === undefined || millis === 0 ? (done) => setImmediate(done) : (done) => setTimeout(done, millis)

/** Runs workers that contend for one name until they have had their sections or their time is up. */
export const contend = async (session: Session, order: ContentionOrder): Promise<ReadonlyArray<Section>> => {
  const { limitMillis, name, sectionsEach = Infinity, sectionsInAll = Infinity } = order
  const pause = stepOf(order.sectionMillis)
  const think = order.thinkMillis === undefined ? undefined : stepOf(order.thinkMillis)
  const until = now() + limitMillis
  const sections: Array<Section> = []
  let begun = 0

  const work = (kind: Section["kind"], worker: number): Promise<void> => {
    let own = 0
    let askedAt = 0
    return session.work({
      kind,
      next: () => {
        askedAt = now()
        if (own === sectionsEach || begun === sectionsInAll || askedAt > until) return undefined
        own++
        begun++
        return name
      },
      section: (done) => {
        const enteredAt = now()
        pause(() => {
          sections.push({ kind, worker, askedAt, enteredAt, leftAt: now() })
          done()
        })
      },
      think,
      gaveUp: () => {}
    })
  }

  const kinds = order.parties.flatMap(({ kind, workers }) => Array.from({ length: workers }, () => kind))
  const working = Promise.all(kinds.map(work))
  // Workers that still wait at the limit get a grace period: some may wait for a message that was sent before they
  // listened.
  await Promise.race([working, sleep(limitMillis + graceMillis, undefined, { ref: false })])
  return [...sections]
}
