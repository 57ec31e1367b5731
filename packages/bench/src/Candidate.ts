/**
 * What a lock library must be able to do to be measured: the same for the bare scripts, the peers and ourselves.
 */

/** Something that takes time and then calls back; every candidate waits for it in its own way. */
export type Step = (done: () => void) => void

/** What one worker does: under the lock of every name that `next` gives, `section`; after its release, `think`. */
export interface Worker {
  readonly next: () => string | undefined
  readonly section: Step | undefined
  readonly think: Step | undefined
  /** Called when the library gave up an acquisition by itself; the worker then asks again. */
  readonly gaveUp: () => void
}

/** Locks that are held with automatic extension. */
export interface Held {
  /** How many the library, by now, considers lost. */
  readonly lost: () => Promise<number>
  readonly release: () => Promise<void>
}

/** One process's connection to the server, as the library would have it. */
export interface Session {
  /** Runs a worker until it has no more names. */
  readonly work: (worker: Worker) => Promise<void>
  /** Starts waiters on a lock that is held elsewhere, and tells how many were given up by the library. */
  readonly wait: (name: string, waiters: number) => { readonly failed: () => number }
  /** Takes locks that are free, all at once, and keeps them. */
  readonly hold: (names: ReadonlyArray<string>) => Promise<Held>
  /** The key in Redis that is there while the lock is held. */
  readonly keyOf: (name: string) => string
}

export interface Candidate {
  readonly open: (options: {
    readonly port: number
    /** The lease: how long a lock outlives its process. */
    readonly leaseMillis: number
  }) => Promise<Session>
  /**
   * Commands that run within the candidate's scripts. Redis counts them like those that a client sent, so they are taken
   * out of the count.
   */
  readonly insideScripts: ReadonlyArray<string>
  /** Of those, how many a client sent nevertheless, from the number of calls of every command. */
  readonly sentNevertheless?: (calls: (command: string) => number) => number
}
