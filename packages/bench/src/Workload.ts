import type { Candidate } from "./Candidate.ts"
import type { ServerCounters } from "./ServerCounters.ts"

/** The figures of one run, by metric. */
export type Sample = Readonly<Record<string, number>>

export interface Column {
  readonly metric: string
  readonly title: string
  readonly digits: number
  /** Followed by a column of ratios to the reference. */
  readonly ratio?: "lower is better" | "higher is better"
}

export interface Target {
  readonly metric: string
  readonly text: string
  /** To the reference of the same round, or the figure itself. */
  readonly of: "ratio" | "figure"
  readonly met: (value: number) => boolean
}

export interface Run {
  readonly name: string
  readonly candidate: Candidate
  readonly port: number
  readonly counters: ServerCounters
  /** Small counts: to see that everything works, not to be quoted. */
  readonly quick: boolean
}

export interface Workload {
  readonly id: string
  readonly title: string
  /** The candidate to which the others are compared. */
  readonly reference: string | undefined
  readonly columns: ReadonlyArray<Column>
  readonly targets: ReadonlyArray<Target>
  /** A run that takes longer is ended and left out. */
  readonly limitMillis: number
  readonly run: (run: Run) => Promise<Sample>
}
