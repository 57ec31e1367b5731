/**
 * What a lock library must be able to do to be measured: the same for the bare scripts, the peers and ourselves.
 */
import type { Performer } from "./Performer.ts"

/** Something that takes time and then calls back; every candidate waits for it in its own way. */
export type Step = (done: () => void) => void

/**
 * What workers want: a lock of some kind, one side of a read-write lock, a permit of a semaphore, a lock on the majority of
 * several servers, or several locks of one server at once.
 */
export type Kind = "lock" | "fair" | "read" | "write" | "semaphore" | "red" | "multi"

/** The names of the locks that a worker wants at once, by what it calls them together. */
export const namesOf = (name: string): ReadonlyArray<string> => [`${name}:a`, `${name}:b`, `${name}:c`]

/** What one worker does: under the lock of every name that `next` gives, `section`; after its release, `think`. */
export interface Worker {
  readonly kind: Kind
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
  readonly hold: (names: ReadonlyArray<string>, kind: Kind) => Promise<Held>
}

export interface Connection {
  readonly port: number
  /** Further servers, whose majority counts together with the first. */
  readonly otherPorts?: ReadonlyArray<number>
  /** The lease: how long a lock outlives its process. */
  readonly leaseMillis: number
}

/** How the commands that a candidate sends are told from those that run within its scripts: Redis counts both alike. */
export interface Counting {
  /** Commands that run within the candidate's scripts; they are taken out of the count. */
  readonly insideScripts: ReadonlyArray<string>
  /** Of those, how many a client sent nevertheless, from the number of calls of every command. */
  readonly sentNevertheless?: (calls: (command: string) => number) => number
}

/** A library of this runtime: its session is driven by the workers here. */
export interface Library extends Counting {
  readonly open: (connection: Connection) => Promise<Session>
  /** The key in Redis that is there while a lock is held; without it, the name itself. */
  readonly keyOf?: (name: string) => string
}

/** A program of another runtime, which has workers of its own. */
export interface Program extends Counting {
  readonly start: (connection: Connection) => Promise<Performer>
  /** How many times as long as others it warms up, where its compiler takes longer. */
  readonly warmUp: number
  readonly keyOf?: (name: string) => string
}

export type Candidate = Library | Program

/** The permits of every semaphore that is measured. */
export const permits = 5
