import { InvalidLockOptions } from "../../LockError.ts"
import type { QuorumOptions } from "../../QuorumOptions.ts"
import { checkFactor, parseTimeout } from "./durations.ts"

/** Checked times, in milliseconds. */
export interface QuorumTimes {
  readonly memberTimeoutMillis: number | undefined
  readonly retryMillis: number
}

/** The options of a quorum, checked. */
export interface RedLockSettings {
  readonly times: QuorumTimes
  readonly driftFactor: number
}

/** The checked options of a quorum, or the problem with them. */
export const checkQuorum = (options: QuorumOptions | null | undefined): RedLockSettings | InvalidLockOptions => {
  const driftFactor = options?.driftFactor ?? 0.01
  const badFactor = checkFactor("driftFactor", driftFactor)
  if (badFactor !== undefined) return badFactor
  const memberTimeoutMillis =
    options?.memberTimeout === undefined ? undefined : parseTimeout("memberTimeout", options.memberTimeout)
  if (memberTimeoutMillis !== undefined && typeof memberTimeoutMillis !== "number") return memberTimeoutMillis
  const retryMillis = parseTimeout("retryDelay", options?.retryDelay ?? 50)
  if (typeof retryMillis !== "number") return retryMillis
  return { driftFactor, times: { memberTimeoutMillis, retryMillis } }
}
