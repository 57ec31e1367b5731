import { median } from "./statistics.ts"
import type { Sample, Target, Workload } from "./Workload.ts"

/** One candidate's row in the table of a workload. */
export interface Row {
  readonly candidate: string
  /** Medians over the rounds. */
  readonly figures: Sample
  /** Medians of the ratios to the reference of the same round. */
  readonly ratios: Sample
}

export interface Verdict {
  readonly target: Target
  readonly value: number
  readonly met: boolean
}

/**
 * The figures of all rounds.
 */
export class Results {
  /** By workload, candidate, round. */
  readonly #samples = new Map<string, Map<string, Map<number, Sample>>>()
  readonly #leftOut = new Map<string, Map<string, string>>()

  add(workload: string, candidate: string, round: number, sample: Sample): void {
    inMap(inMap(this.#samples, workload), candidate).set(round, sample)
  }

  leaveOut(workload: string, candidate: string, reason: string): void {
    inMap(this.#leftOut, workload).set(candidate, reason)
    this.#samples.get(workload)?.delete(candidate)
  }

  isLeftOut(workload: string, candidate: string): boolean {
    return this.#leftOut.get(workload)?.has(candidate) === true
  }

  /** Those that were to be measured but could not, and why. */
  leftOut(workload: string): ReadonlyArray<readonly [candidate: string, reason: string]> {
    return [...(this.#leftOut.get(workload) ?? [])]
  }

  rows(workload: Workload): ReadonlyArray<Row> {
    const byCandidate = this.#samples.get(workload.id) ?? new Map<string, Map<number, Sample>>()
    const references = workload.reference === undefined ? undefined : byCandidate.get(workload.reference)
    return [...byCandidate].map(([candidate, rounds]) => {
      const figures: Record<string, number> = {}
      const ratios: Record<string, number> = {}
      for (const metric of Object.keys([...rounds.values()][0]!)) {
        figures[metric] = median([...rounds.values()].map((sample) => sample[metric]!))
        const paired = [...rounds].flatMap(([round, sample]) => {
          const reference = references?.get(round)?.[metric]
          return reference === undefined ? [] : [sample[metric]! / reference]
        })
        if (paired.length > 0) ratios[metric] = median(paired)
      }
      return { candidate, figures, ratios }
    })
  }

  verdicts(workload: Workload, candidate: string): ReadonlyArray<Verdict> {
    const row = this.rows(workload).find((row) => row.candidate === candidate)
    if (row === undefined) return []
    return workload.targets.flatMap((target) => {
      const value = (target.of === "ratio" ? row.ratios : row.figures)[target.metric]
      return value === undefined ? [] : [{ target, value, met: target.met(value) }]
    })
  }

  toJSON(): unknown {
    const plain = (value: unknown): unknown =>
      value instanceof Map ? Object.fromEntries([...value].map(([key, inner]) => [key, plain(inner)])) : value
    return { samples: plain(this.#samples), leftOut: plain(this.#leftOut) }
  }
}

/** The map within a map, made where there is none. */
const inMap = <K, V>(maps: Map<string, Map<K, V>>, key: string): Map<K, V> => {
  let map = maps.get(key)
  if (map === undefined) maps.set(key, (map = new Map<K, V>()))
  return map
}
