/**
 * The options of a client and of a quorum, checked, with what is derived from them.
 */
import * as Context from "effect/Context"
import type { InvalidLockOptions } from "../../LockError.ts"
import type { QuorumOptions } from "../../AcquireOptions.ts"
import { shown } from "../report/shown.ts"
import { type Acknowledgement, invalidIf, parseTimeout } from "./acquireOptions.ts"

/** Times are in milliseconds. */
export interface ClientOptions {
  readonly watchdogLeaseMillis: number
  /** The longest hold, unless its request says otherwise; infinite without a limit. */
  readonly maxHoldMillis: number
  readonly renewIntervalMillis: number
  readonly fallbackIntervalMillis: number
  /** How often a client with waiters of a fair lock reports. */
  readonly placeIntervalMillis: number
  readonly releaseTimeoutMillis: number
  /** How long the subscription to a channel stays open after its last waiter. */
  readonly subscriptionIdleMillis: number
  readonly longestIntervals: { readonly writer: number; readonly others: number }
  /** How long the last fencing token of a name is remembered beyond the lease. */
  readonly tokenRetentionMillis: number
  readonly keyPrefix: string
  /** For people to recognise the client by; empty for none. */
  readonly label: string
  /** What a grant needs in order to count, unless its request says otherwise. */
  readonly acknowledge: Acknowledgement | undefined
}

/**
 * Ten seconds: the next waiter of a busy lock finds the subscription open, and an idle one costs the server next to nothing. A
 * reference rather than an option: nobody but a test has a reason for another value.
 */
export const SubscriptionIdleMillis = Context.Reference<number>("effect-redis-lock/SubscriptionIdleMillis", {
  defaultValue: () => 10_000
})

/**
 * The longest intervals between two requests of a waiter, in milliseconds, before jitter: a writer keeps readers that came later out for five
 * seconds after a request (see `older_writer.lua`), and a place outlives one by a minute (see `denied.lua` and `take_place.lua`). A reference
 * for tests, in which nobody is to be woken by anything but a message.
 */
export const LongestIntervals = Context.Reference<{ readonly writer: number; readonly others: number }>(
  "effect-redis-lock/LongestIntervals",
  { defaultValue: () => ({ writer: 3000, others: 30_000 }) }
)

/**
 * The lease of an owner that a lock is handed over to, until it extends it, in milliseconds: short, as its process may be stopped. It is
 * shorter where the leases of the client are short: a quarter of them.
 */
export const handOverMillis = (watchdogLeaseMillis: number): number =>
  Math.min(longestHandOverMillis, watchdogLeaseMillis / 4)

export const longestHandOverMillis = 2000

const longestLabel = 256

/** What Node.js, Bun and Deno tell about a process. */
interface RunningProcess {
  readonly pid?: number
  readonly argv?: ReadonlyArray<string>
  readonly getBuiltinModule?: (id: "node:os") => { readonly hostname: () => string } | undefined
}

const hostOf = (process: RunningProcess | undefined): string | undefined => {
  try {
    // without an import, as browsers have no such module
    return process?.getBuiltinModule?.("node:os")?.hostname()
  } catch {
    // Deno may forbid it
    return undefined
  }
}

/** Host, pid and program: `web-3/4711/server.js`. Unknown parts are left out. */
export const defaultLabel = (): string => {
  const { process } = globalThis as { readonly process?: RunningProcess }
  const program = process?.argv?.[1]?.split(/[/\\]/).at(-1)
  return [hostOf(process), process?.pid, program]
    .filter((part) => part !== undefined && part !== "")
    .join("/")
    .slice(0, longestLabel)
}

export const checkLabel = (label: unknown): InvalidLockOptions | undefined => {
  if (typeof label !== "string") return invalidIf("label", `${shown(label)} is not a string`)
  return invalidIf("label", label.length > longestLabel ? `it is longer than ${longestLabel} characters` : undefined)
}

/** A label in the form that Redis accepts as a connection name: printable ASCII without spaces. */
export const connectionName = (label: string): string => label.replace(/[^!-~]+/g, "-")

/** Checked times, in milliseconds. */
export interface QuorumTimes {
  /** How long a member may take to answer; undefined for a small share of the lease. */
  readonly memberTimeoutMillis: number | undefined
  /** The longest pause after a vote that nobody has won. */
  readonly retryMillis: number
}

/** The checked options of a quorum, or the problem with them. */
export const checkQuorum = (options: QuorumOptions | null | undefined): QuorumTimes | InvalidLockOptions => {
  const memberTimeout = options?.memberTimeout
  const memberTimeoutMillis = memberTimeout === undefined ? undefined : parseTimeout("memberTimeout", memberTimeout)
  if (typeof memberTimeoutMillis === "object") return memberTimeoutMillis
  const retryMillis = parseTimeout("retryDelay", options?.retryDelay ?? 50)
  return typeof retryMillis === "number" ? { memberTimeoutMillis, retryMillis } : retryMillis
}
