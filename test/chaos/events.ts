/**
 * What the client processes of a chaos run are told, and what they tell.
 */

/** The kinds of lock, each under one name. */
export type Kind = "fair" | "plain"

export const lockOf = (kind: Kind) => `chaos:${kind}`

export interface ClientSettings {
  readonly url: string
  readonly kinds: ReadonlyArray<Kind>
  /** How many fibers there are for each kind. */
  readonly fibers: number
  /** How long a section takes, milliseconds. */
  readonly work: number
  /** How long every sixteenth section takes: long enough to be renewed, and to be lost. */
  readonly longWork: number
  /** How long a fiber waits between two sections, milliseconds. */
  readonly pause: number
  /** Milliseconds. */
  readonly watchdogLeaseTime: number
  /** Milliseconds; a lease of this length instead of one that is renewed. */
  readonly leaseTime?: number | undefined
  /** A client as it must not be: it does not look whether it still holds what it once got. */
  readonly broken: boolean
}

/** Times are milliseconds on the machine's monotonic clock, which is the same for all processes. */
export type ClientEvent =
  | { readonly event: "ready"; readonly at: number; readonly clientId: string }
  | { readonly event: "asks"; readonly at: number; readonly fiber: string; readonly kind: Kind }
  | {
      /** At that time it was inside, as it has found out afterwards, and holds the lock until the other one. */
      readonly event: "enters" | "stays" | "leaves"
      readonly at: number
      readonly until: number
      readonly asked: number
      readonly fiber: string
      readonly kind: Kind
      readonly owner: string
      readonly token: string
    }
  /** Its section has ended, the lock is given back or lost. */
  | {
      readonly event: "ended"
      readonly at: number
      readonly fiber: string
      readonly kind: Kind
      readonly outcome: string
    }
  /** Its event loop did not run for so long. */
  | { readonly event: "stalled"; readonly at: number; readonly since: number }
  | { readonly event: "closed"; readonly at: number }
  | { readonly event: "broke"; readonly at: number; readonly why: string }

export const now = (): number => Number(process.hrtime.bigint()) / 1e6

/** As the parent says it. */
export const finish = "finish"
