import { InvalidLockOptions } from "../LockError.ts"
import type { QuorumOptions } from "../RedLock.ts"
import { parsePeriod } from "./durations.ts"
import type { RedLockSettings } from "./RedLockImpl.ts"

/** The options of a quorum, or what is wrong with them. */
export const checkQuorum = (options: QuorumOptions): RedLockSettings | InvalidLockOptions => {
  const driftFactor = options.driftFactor ?? 0.01
  if (!(driftFactor >= 0 && driftFactor < 0.5)) {
    return new InvalidLockOptions({ option: "driftFactor", problem: "it must be at least 0 and below 0.5" })
  }
  const memberTimeoutMillis =
    options.memberTimeout === undefined ? undefined : parsePeriod("memberTimeout", options.memberTimeout)
  if (memberTimeoutMillis !== undefined && typeof memberTimeoutMillis !== "number") return memberTimeoutMillis
  const retryMillis = parsePeriod("retry", options.retry ?? 50)
  if (typeof retryMillis !== "number") return retryMillis
  return { driftFactor, times: { memberTimeoutMillis, retryMillis } }
}
