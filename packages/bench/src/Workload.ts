import type { Connection, Counting, Kind } from "./Candidate.ts"
import type { Performer } from "./Performer.ts"
import type { Counters } from "./servers/ServerCounters.ts"

/** The figures of one run, by metric. */
export type Sample = Readonly<Record<string, number>>

export interface Column {
  readonly metric: string
  readonly title: string
  readonly digits: number
  /** Which is better; absent if the figure only describes, or cannot be compared between runtimes. */
  readonly better?: "lower" | "higher"
  /** Followed by a column of ratios to the reference. */
  readonly ratio?: true
}

export interface Target {
  readonly metric: string
  readonly text: string
  /** The ratio to the reference of the same round, the figure itself, or the ratio to the best other library. */
  readonly of: "ratio" | "figure" | "best"
  readonly met: (value: number) => boolean
}

export interface Run {
  readonly candidate: Counting & { readonly keyOf?: (name: string) => string }
  readonly port: number
  /** The other servers, if the workload needs more than one. */
  readonly otherPorts: ReadonlyArray<number>
  readonly counters: Counters
  /** Small counts, to check that everything works; not to be quoted. */
  readonly quick: boolean
  /** How many times longer than others the candidate warms up. */
  readonly warmUp: number
  /** Starts one process of the candidate; for a library, this process. */
  readonly start: (connection: Connection) => Promise<Performer>
  /** Starts `count` processes of the candidate besides this one. */
  readonly startApart: (count: number, connection: Connection) => Promise<ReadonlyArray<Performer>>
}

export interface Workload {
  readonly id: string
  readonly title: string
  /** What a candidate must offer to run it. */
  readonly kinds: ReadonlyArray<Kind>
  /** How many servers it runs on. Default: 1. */
  readonly servers?: number
  /** The candidate to which the others are compared. */
  readonly reference: string | undefined
  readonly columns: ReadonlyArray<Column>
  readonly targets: ReadonlyArray<Target>
  /** How many rounds are enough, as counts over a period hardly differ. Default: all. */
  readonly rounds?: number
  /** A run that takes longer is killed and left out. */
  readonly limitMillis: number
  readonly run: (run: Run) => Promise<Sample>
}
