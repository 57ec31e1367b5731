/**
 * What the client processes of a chaos run are told, and what they tell.
 */
import type { RegisterPlace } from "./register.ts"

/**
 * The kinds of lock, each under one name but for readers and writers, which share one. Permits are of a semaphore that has as many as `permitsOf` says,
 * and counted ones of one without leases; a leader's token is its term.
 */
export type Kind = "fair" | "plain" | "permits" | "counted" | "leader" | "reader" | "writer"

/** In one slot of a cluster. */
export const lockOf = (kind: Kind) => `{chaos}:${kind === "reader" || kind === "writer" ? "readWrite" : kind}`

/** Whether its holders are alone, so that they can write. */
export const isAlone = (kind: Kind) => permitsOf(kind) === 1 && kind !== "reader"

/** What a process without a fault does not stand still for, milliseconds, unless the machine is busy. */
export const STALL_MILLIS = 250

export const permitsOf = (kind: Kind) => (kind === "permits" || kind === "counted" ? 3 : 1)

export interface ClientSettings {
  /** A library of the benchmark's catalog, or `naive`. Default: ours. */
  readonly library?: string | undefined
  /** One server, all sentinels, all nodes; of a quorum, one for each member. */
  readonly urls: ReadonlyArray<string>
  readonly server: "single" | "sentinel" | "cluster" | "quorum"
  /** Of sentinel and cluster: the addresses that the servers give, and those where the client finds them. */
  readonly natMap?: Readonly<Record<string, { readonly host: string; readonly port: number }>> | undefined
  /** Whether a grant needs all replicas. */
  readonly acknowledge: boolean
  /** Where they write, if they do. */
  readonly register?: RegisterPlace | undefined
  /** Whether they write with their tokens, if they have some. */
  readonly fenced: boolean
  readonly kinds: ReadonlyArray<Kind>
  /** How many fibers there are for each kind. */
  readonly fibers: number
  /** How long a section takes, milliseconds. */
  readonly work: number
  /** How long every sixteenth section takes: long enough to be renewed, and to be lost. */
  readonly longWork: number
  /** How long a fiber waits between two sections, milliseconds. */
  readonly pause: number
  /** Milliseconds; with it timeouts are short as well. Default: the library's own options. */
  readonly watchdogLeaseTime?: number | undefined
  /** Milliseconds; a lease of this length instead of one that is renewed. */
  readonly leaseTime?: number | undefined
}

/** Times are milliseconds on the machine's monotonic clock, which is the same for all processes. */
export type ClientEvent =
  | { readonly event: "ready"; readonly at: number }
  | { readonly event: "asks"; readonly at: number; readonly fiber: string; readonly kind: Kind }
  | {
      /** At that time it was inside, as it has found out afterwards, and holds the lock until the other one, if it knows. */
      readonly event: "enters" | "stays" | "leaves"
      readonly at: number
      readonly until?: number
      readonly asked: number
      readonly fiber: string
      readonly kind: Kind
      readonly owner: string
      readonly token?: string
    }
  /** It adds an element to the version of the set that it has read. */
  | {
      readonly event: "writes"
      readonly at: number
      readonly fiber: string
      readonly kind: Kind
      readonly owner: string
      readonly token: string | undefined
      readonly element: string
      readonly version: number | undefined
    }
  | { readonly event: "wrote"; readonly at: number; readonly element: string; readonly isRefused: boolean }
  /** Its section has ended, the lock is given back or lost. */
  | {
      readonly event: "ended"
      readonly at: number
      readonly fiber: string
      readonly kind: Kind
      readonly outcome: string
    }
  /** An exception that nobody caught, by which a program ends; of other libraries, after which this one goes on. */
  | { readonly event: "uncaught"; readonly at: number; readonly why: string }
  /** Its event loop did not come round for so long, in which the process had a CPU for `ran` milliseconds. */
  | { readonly event: "stalled"; readonly at: number; readonly since: number; readonly ran: number }
  | { readonly event: "closed"; readonly at: number }
  | { readonly event: "broke"; readonly at: number; readonly why: string }

/** What a client process has told. A process that takes a killed one's place has a number of its own. */
export type Told = ClientEvent & { readonly process: number }

/** CLOCK_MONOTONIC on Linux. */
export const now = (): number => Number(process.hrtime.bigint()) / 1e6

/** As the parent says it: each fiber has one section to go, or the event loop is to stand still for so many milliseconds. */
export type Order = { readonly order: "finish" } | { readonly order: "block"; readonly millis: number }
