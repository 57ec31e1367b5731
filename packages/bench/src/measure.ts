import type { Candidate } from "./Candidate.ts"
import { commandsSent, type ServerCounters } from "./ServerCounters.ts"

/** What a stretch of work cost. */
export interface Cost {
  readonly millis: number
  readonly clientMicros: number
  readonly serverMicros: number
  readonly commands: number
}

/** What this process has used of the CPU, user and system. */
export const cpuMicros = (): number => {
  const { system, user } = process.cpuUsage()
  return system + user
}

export const collectGarbage = (): void => {
  if (globalThis.gc === undefined) throw new Error("to be run with --expose-gc")
  globalThis.gc()
  globalThis.gc()
}

/**
 * Runs a stretch of work between two readings of all counters. Not after a forced garbage collection: that throws away
 * compiled code, and what is then measured is the compiler.
 */
export const measure = async (
  candidate: Candidate,
  counters: ServerCounters,
  work: () => Promise<unknown>
): Promise<Cost> => {
  const before = await counters.read()
  const cpuBefore = cpuMicros()
  const startedAt = performance.now()
  await work()
  const millis = performance.now() - startedAt
  const clientMicros = cpuMicros() - cpuBefore
  const after = await counters.read()
  return {
    millis,
    clientMicros,
    serverMicros: after.cpuMicros - before.cpuMicros,
    commands: commandsSent(candidate, before, after)
  }
}
