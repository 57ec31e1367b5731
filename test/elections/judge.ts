/**
 * Judges a history of an election by the server's time.
 */

/** A process read the server's time (`at`, microseconds), and found afterwards that it was still leading. */
export interface Check {
  readonly process: string
  readonly term: bigint
  readonly at: number
}

/**
 * Every case of two leaders at once. A term is the server's time at which it was granted, in microseconds. So a process that still believes
 * that it leads at a time after the next term was granted is a second leader.
 */
export const rivals = (checks: ReadonlyArray<Check>): ReadonlyArray<string> => {
  const lastOf = new Map<bigint, Check>()
  const problems: Array<string> = []
  for (const check of checks) {
    const last = lastOf.get(check.term)
    if (last !== undefined && last.process !== check.process) {
      problems.push(`${last.process} and ${check.process} have both led with term ${check.term}`)
    }
    if (last === undefined || check.at > last.at) lastOf.set(check.term, check)
  }
  const terms = [...lastOf.values()].sort((a, b) => (a.term < b.term ? -1 : 1))
  for (const [i, { at, process, term }] of terms.entries()) {
    const next = terms[i + 1]
    if (next !== undefined && at > Number(next.term)) {
      const late = Math.round((at - Number(next.term)) / 1000)
      problems.push(
        `${process} believed it was leading with term ${term}, ${late} ms after ${next.process} was elected`
      )
    }
  }
  return problems
}

/** The nearest-rank percentile. */
export const percentile = (values: ReadonlyArray<number>, percent: number): number => {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil((sorted.length * percent) / 100) - 1)] ?? Number.NaN
}
