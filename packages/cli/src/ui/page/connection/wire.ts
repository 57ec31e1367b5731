/**
 * What the server and the page send each other. Times are milliseconds since 1970 by the server's clock.
 */

export interface Holder {
  readonly owner: string
  /** How its client calls itself, if Redis knows. */
  readonly label?: string | null | undefined
  readonly mode: "exclusive" | "read" | "write"
}

/** A held lock, as a line of the table. */
export interface LockLine {
  readonly name: string
  readonly kind: string
  /** The first three. */
  readonly holders: ReadonlyArray<Holder>
  readonly holderCount: number
  /** How many leased permits of a semaphore are held. */
  readonly permits: number
  readonly since: number
  /** It was held before the server looked for the first time. */
  readonly isOlder: boolean
  /** `null` where there is no expiry. */
  readonly leaseEnds: number | null
  /** The longest lease seen, milliseconds. */
  readonly lease: number
  /** How many processes wait, as far as Redis knows. */
  readonly waiting: number
  /** Since when the one has waited that has waited longest; `null` if none waits. */
  readonly longestWait: { readonly since: number; readonly isOlder: boolean } | null
}

/** What the server tells, by the names of the events. */
export interface Events {
  readonly about: About
  readonly locks: LocksChanged
  readonly trouble: Trouble
  readonly lock: LockTold
  /** No lock can have this name, or the page was started for others. */
  readonly refused: Answer
}

/** Once. */
export interface About {
  /** Where Redis is, without user or password. */
  readonly redis: string
  readonly prefix: string
  readonly pattern: string
  readonly mayRelease: boolean
  /** Since when the server looks. */
  readonly startedAt: number
}

export interface LocksChanged {
  readonly now: number
  /** These are all locks; forget what was told before. */
  readonly isWhole: boolean
  readonly held: ReadonlyArray<LockLine>
  /** Names that nobody holds any more. */
  readonly free: ReadonlyArray<string>
}

/** Redis does not answer, or, with `null`, does so again. */
export interface Trouble {
  readonly message: string | null
}

/** From when to when an owner held a lock, as far as the server has seen it. */
export interface Hold extends Holder {
  readonly since: number
  /** It began before the server looked. */
  readonly isOlder: boolean
  /** `null` while it lasts. */
  readonly until: number | null
}

export interface Waiter {
  readonly owner: string
  readonly label: string | null
  /** Which side of a read-write lock it waits for. */
  readonly mode: "read" | "write" | null
  readonly waitedMillis: number | null
  /** It waited before the server saw it. */
  readonly isOlder?: boolean
}

/** What Redis tells of a name: what `redis-lock inspect --json` prints, with what the server has seen of waiters. */
export interface Inspected {
  readonly name: string
  readonly kind: string
  readonly token: string | null
  readonly holders: ReadonlyArray<Holder & { readonly holds: number; readonly remainingMillis: number | null }>
  readonly waiting: number
  readonly waiters: ReadonlyArray<Waiter>
  readonly count: number | null
  readonly held: number
  readonly permits: ReadonlyArray<{
    readonly id: string
    readonly remainingMillis: number | null
  }>
}

/** Of a lock's page. */
export interface LockTold {
  readonly now: number
  readonly state: Inspected
  /** Those that last, and then those that have ended, the last one first. */
  readonly holds: ReadonlyArray<Hold>
  /** The longest lease seen, milliseconds. */
  readonly lease: number
  /** By owner or permit, when its lease was last seen renewed. */
  readonly renewedAt: Readonly<Record<string, number>>
  readonly mayRelease: boolean
}

/** The body of a request to free a lock. */
export interface ReleaseRequest {
  readonly name: string
  /** The owners or permits that the page showed: what others hold is not freed. */
  readonly seen: ReadonlyArray<string>
}

/** The answer to it, and to all that is refused. */
export interface Answer {
  readonly message: string
}
