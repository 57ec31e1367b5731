import type { Kind } from "./Candidate.ts"

/** Pairs of acquire and release, uncontended. */
export interface PairsOrder {
  readonly prefix: string
  readonly kind: "lock" | "red" | "multi"
  /** A lock for every pair, or one for every worker. */
  readonly lockPer: "pair" | "worker"
  readonly workers: number
  readonly pairs: number
}

export interface PairsReport {
  readonly p10Micros: number
  readonly p50Micros: number
  readonly p99Micros: number
  readonly millis: number
}

/** Workers that contend for one name. */
export interface ContentionOrder {
  readonly name: string
  readonly parties: ReadonlyArray<{ readonly kind: Kind; readonly workers: number }>
  /** The permits, for a semaphore. */
  readonly permits?: number
  /** The number of sections of all workers together, and of each. Default: as many as there is time for. */
  readonly sectionsInAll?: number
  readonly sectionsEach?: number
  /** No request is sent later. */
  readonly limitMillis: number
  /** Absent: the section ends after yielding once. */
  readonly sectionMillis?: number
  /** Absent: the worker sends its next request at once; 0: after yielding once. */
  readonly thinkMillis?: number
}

/** One section: times in milliseconds, on the clock that all processes of the machine share. */
export interface Section {
  readonly kind: Kind
  readonly worker: number
  readonly askedAt: number
  readonly enteredAt: number
  readonly leftAt: number
}

/**
 * The tasks that one process performs for a workload, with a lock library. Orders and reports are plain data, so that it
 * may be another process, in another language.
 */
export interface Performer {
  readonly pairs: (order: PairsOrder) => Promise<PairsReport>
  readonly contend: (order: ContentionOrder) => Promise<ReadonlyArray<Section>>
  /** Starts waiters on a lock that is held elsewhere. */
  readonly wait: (order: { readonly name: string; readonly waiters: number }) => Promise<void>
  /** How many of them the library has given up. */
  readonly gaveUp: () => Promise<number>
  /** Takes locks, all at once, and keeps them; for one of several owners, which only Redisson knows. */
  readonly hold: (order: {
    readonly kind: Kind
    readonly names: ReadonlyArray<string>
    readonly owner?: number
  }) => Promise<void>
  /** How many of them the library considers lost so far. */
  readonly lost: () => Promise<number>
  readonly release: (order?: { readonly owner: number }) => Promise<void>
  /** The CPU time that its process has used, user and system. */
  readonly cpuMicros: () => Promise<number>
  /** The heap of its process after a garbage collection. */
  readonly heapBytes: () => Promise<number>
  readonly end: () => void
}

/** The names of the tasks in messages between processes. */
export type Task = Exclude<keyof Performer, "end">

export const tasks: ReadonlyArray<Task> = [
  "pairs",
  "contend",
  "wait",
  "gaveUp",
  "hold",
  "lost",
  "release",
  "cpuMicros",
  "heapBytes"
]

/** A performer in another process: `ask` sends an order and returns the report. */
export const performerElsewhere = (
  ask: (task: Task, order: unknown) => Promise<unknown>,
  end: () => void
): Performer => {
  const entries = tasks.map((task) => [task, (order?: unknown) => ask(task, order)] as const)
  return { ...Object.fromEntries(entries), end } as unknown as Performer
}
