import type { AcquireOptions } from "../../AcquireOptions.ts"
import { InvalidLockOptions } from "../../LockError.ts"
import { type Acknowledgement, parseAcknowledge } from "./acknowledge.ts"
import type { ClientOptions } from "./ClientOptions.ts"
import { checkLease, parsePeriod, parseRetention, parseWait } from "./durations.ts"

/** In milliseconds: how long to wait (infinite without a limit), and a fixed lease if there is one. */
export interface Times {
  readonly waitMillis: number
  readonly leaseMillis: number | undefined
  /** For how long the lock is taken at least; 0 until it is released. */
  readonly minHoldMillis: number
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
  const minHold = asked?.minHold ?? own?.minHold
  const minHoldMillis = minHold === undefined ? 0 : parseRetention("minHold", minHold)
  if (typeof minHoldMillis !== "number") return minHoldMillis
  if (leaseMillis !== undefined && minHoldMillis > leaseMillis) {
    const problem = `${minHoldMillis} ms are longer than the leaseTime of ${leaseMillis} ms, after which the lock is lost`
    return new InvalidLockOptions({ option: "minHold", problem })
  }
  const given = asked?.acknowledge ?? own?.acknowledge
  const acknowledge = given === undefined || given === "none" ? given : parseAcknowledge(given)
  if (typeof acknowledge === "object" && "_tag" in acknowledge) return acknowledge
  return { waitMillis, leaseMillis, minHoldMillis, acknowledge }
}

/** What cannot stay taken after its release; `undefined` where nothing is to. */
export const refuseMinHold = (
  { minHoldMillis }: Pick<Times, "minHoldMillis">,
  what: string
): InvalidLockOptions | undefined =>
  minHoldMillis === 0
    ? undefined
    : new InvalidLockOptions({
        option: "minHold",
        problem: `${what} cannot stay taken after its release; use an exclusive lock on one server`
      })

/** The problem with a lease, fixed or the client's own, that could never be granted. */
export const checkLeaseOf = (
  { clockDriftFactor, watchdogLeaseMillis }: ClientOptions,
  leaseMillis: number | undefined
): InvalidLockOptions | undefined =>
  leaseMillis === undefined
    ? checkLease("watchdogLeaseTime", watchdogLeaseMillis, clockDriftFactor)
    : checkLease("leaseTime", leaseMillis, clockDriftFactor)
