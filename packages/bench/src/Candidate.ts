/**
 * What a lock library must do to be measured: the same for the bare scripts, the peers and our library.
 */
import type { Performer } from "./Performer.ts"

/** Takes some time and then calls back; every candidate waits for it in its own way. */
export type Step = (done: () => void) => void

/**
 * What workers acquire: a lock of some kind, one side of a read-write lock, a permit of a semaphore, a lock on the majority
 * of several servers, or several locks of one server at once.
 */
export type Kind = "lock" | "fair" | "read" | "write" | "semaphore" | "red" | "multi"

/** The names of the locks that a worker acquires at once under one name. */
export const namesOf = (name: string): ReadonlyArray<string> => [`${name}:a`, `${name}:b`, `${name}:c`]

/** What one worker does: runs `section` under the lock of every name that `next` returns, and `think` after the release. */
export interface Worker {
  readonly kind: Kind
  readonly next: () => string | undefined
  readonly section: Step | undefined
  readonly think: Step | undefined
  /** Called when the library itself gave up an acquisition; the worker then tries again. */
  readonly gaveUp: () => void
}

/** Locks that are held with automatic extension. */
export interface Held {
  /** How many the library considers lost so far. */
  readonly lost: () => Promise<number>
  readonly release: () => Promise<void>
}

/** One process's connection to the server, as the library would have it. */
export interface Session {
  /** Runs a worker until it has no more names. */
  readonly work: (worker: Worker) => Promise<void>
  /** Starts waiters on a lock that is held elsewhere; `failed` counts those that the library has given up. */
  readonly wait: (name: string, waiters: number) => { readonly failed: () => number }
  /** Takes locks that are free, all at once, and keeps them. */
  readonly hold: (names: ReadonlyArray<string>, kind: Kind) => Promise<Held>
}

export interface Connection {
  readonly port: number
  /** Further servers, which form a quorum with the first. */
  readonly otherPorts?: ReadonlyArray<number>
  /** The lease: how long a lock outlives its process. */
  readonly leaseMillis: number
}

/** How to distinguish the commands that a candidate sends from those within its scripts: Redis counts both alike. */
export interface Counting {
  /** Commands that run within the candidate's scripts; they are not counted. */
  readonly insideScripts: ReadonlyArray<string>
  /** How many of those a client sent itself, from the number of calls of every command. */
  readonly sentNevertheless?: (calls: (command: string) => number) => number
}

/** A library of this runtime: its session is driven by the workers here. */
export interface Library extends Counting {
  readonly open: (connection: Connection) => Promise<Session>
  /** The key that exists in Redis while a lock is held. Default: the name itself. */
  readonly keyOf?: (name: string) => string
}

/** A program of another runtime, which has workers of its own. */
export interface Program extends Counting {
  readonly start: (connection: Connection) => Promise<Performer>
  /** How many times longer it warms up than others, if its compiler is slower. */
  readonly warmUp: number
  readonly keyOf?: (name: string) => string
}

export type Candidate = Library | Program

/** The permits of every semaphore that is measured. */
export const permits = 5
