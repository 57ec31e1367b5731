import type { AcquireOptions } from "../../AcquireOptions.ts"
import type { InvalidLockOptions } from "../../LockError.ts"
import { type Acknowledgement, parseAcknowledge } from "./acknowledge.ts"
import type { ClientOptions } from "./ClientOptions.ts"
import { checkLease, parsePeriod, parseWait } from "./durations.ts"

/** In milliseconds: how long to wait (infinite without a limit), and a fixed lease if there is one. */
export interface Times {
  readonly waitMillis: number
  readonly leaseMillis: number | undefined
  /** What the grant needs in order to count; undefined for the client's own setting. */
  readonly acknowledge: Acknowledgement | "none" | undefined
}

/** The times of one acquisition: those of the call, else the lock's own, else the defaults. */
export const timesOf = (
  asked: AcquireOptions | undefined,
  own: AcquireOptions | undefined
): Times | InvalidLockOptions => {
  const waitTime = asked?.waitTime ?? own?.waitTime
  const waitMillis = waitTime === undefined ? Number.POSITIVE_INFINITY : parseWait("waitTime", waitTime)
  if (typeof waitMillis !== "number") return waitMillis
  const leaseTime = asked?.leaseTime ?? own?.leaseTime
  const leaseMillis = leaseTime === undefined ? undefined : parsePeriod("leaseTime", leaseTime)
  if (leaseMillis !== undefined && typeof leaseMillis !== "number") return leaseMillis
  const given = asked?.acknowledge ?? own?.acknowledge
  const acknowledge = given === undefined || given === "none" ? given : parseAcknowledge(given)
  if (typeof acknowledge === "object" && "_tag" in acknowledge) return acknowledge
  return { waitMillis, leaseMillis, acknowledge }
}

/** The problem with a lease, fixed or the client's own, that could never be granted. */
export const checkLeaseOf = (
  { clockDriftFactor, watchdogLeaseMillis }: ClientOptions,
  leaseMillis: number | undefined
): InvalidLockOptions | undefined =>
  leaseMillis === undefined
    ? checkLease("watchdogLeaseTime", watchdogLeaseMillis, clockDriftFactor)
    : checkLease("leaseTime", leaseMillis, clockDriftFactor)
