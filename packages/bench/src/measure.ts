import type { Counting } from "./Candidate.ts"
import type { Performer } from "./Performer.ts"
import { commandsSent, type Counters } from "./servers/ServerCounters.ts"

/** The cost of some work. */
export interface Cost {
  readonly millis: number
  /** CPU time of all performers. */
  readonly clientMicros: number
  readonly serverMicros: number
  readonly commands: number
}

const cpuMicros = async (performers: ReadonlyArray<Performer>): Promise<number> => {
  const each = await Promise.all(performers.map((performer) => performer.cpuMicros()))
  return each.reduce((sum, micros) => sum + micros, 0)
}

/**
 * Does some work between two readings of all counters. Must not follow a forced garbage collection, which throws away
 * compiled code: the compiler would be measured.
 */
export const measure = async (
  subject: { readonly candidate: Counting; readonly counters: Counters },
  performers: ReadonlyArray<Performer>,
  work: () => Promise<unknown>
): Promise<Cost> => {
  const { candidate, counters } = subject
  const before = await counters.read()
  const cpuBefore = await cpuMicros(performers)
  const startedAt = performance.now()
  await work()
  const millis = performance.now() - startedAt
  const clientMicros = (await cpuMicros(performers)) - cpuBefore
  const after = await counters.read()
  return {
    millis,
    clientMicros,
    serverMicros: after.cpuMicros - before.cpuMicros,
    commands: commandsSent(candidate, before, after)
  }
}
