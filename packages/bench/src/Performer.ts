import type { Kind } from "./Candidate.ts"

/** Pairs of acquire and release, of locks that nobody else wants. */
export interface PairsOrder {
  readonly prefix: string
  readonly kind: "lock" | "red" | "multi"
  /** A lock for every pair, or one for every worker. */
  readonly lockPer: "pair" | "worker"
  readonly workers: number
  readonly pairs: number
}

export interface PairsReport {
  readonly p50Micros: number
  readonly p99Micros: number
  readonly millis: number
}

/** Workers who all want the same. */
export interface ContentionOrder {
  readonly name: string
  readonly parties: ReadonlyArray<{ readonly kind: Kind; readonly workers: number }>
  /** The permits, where it is a semaphore that they want. */
  readonly permits?: number
  /** Sections of all workers together, and of each; without either, as many as there is time for. */
  readonly sectionsInAll?: number
  readonly sectionsEach?: number
  /** No section is asked for later. */
  readonly limitMillis: number
  /** Absent: the section is over when the others had their turn. */
  readonly sectionMillis?: number
  /** Absent: the worker asks again at once; 0: when the others had their turn. */
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
 * The tasks that a workload has done in one process with a lock library. Orders and reports are plain data, so that the
 * process may be another one, in another language.
 */
export interface Performer {
  readonly pairs: (order: PairsOrder) => Promise<PairsReport>
  readonly contend: (order: ContentionOrder) => Promise<ReadonlyArray<Section>>
  /** Starts waiters on a lock that is held elsewhere. */
  readonly wait: (order: { readonly name: string; readonly waiters: number }) => Promise<void>
  /** How many of them the library has given up. */
  readonly gaveUp: () => Promise<number>
  /** Takes locks that are free, all at once, and keeps them. */
  readonly hold: (order: { readonly kind: Kind; readonly names: ReadonlyArray<string> }) => Promise<void>
  /** How many of them the library, by now, considers lost. */
  readonly lost: () => Promise<number>
  readonly release: () => Promise<void>
  /** What its process has used of the CPU, user and system. */
  readonly cpuMicros: () => Promise<number>
  /** What is on the heap of its process after a garbage collection. */
  readonly heapBytes: () => Promise<number>
  readonly end: () => void
}

/** The tasks, as they go by name between processes. */
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

/** A performer elsewhere: `ask` sends an order and brings the report. */
export const performerElsewhere = (
  ask: (task: Task, order: unknown) => Promise<unknown>,
  end: () => void
): Performer => {
  const entries = tasks.map((task) => [task, (order?: unknown) => ask(task, order)] as const)
  return { ...Object.fromEntries(entries), end } as unknown as Performer
}
