import { InvalidLockOptions } from "../../LockError.ts"
import { shown } from "../report/shown.ts"

/** Redisson counts permits in a Java `int`. */
export const maxPermits = 2_147_483_647

/** A number of permits, checked before any command is sent. */
export const checkPermits = (option: string, permits: number, least: number): InvalidLockOptions | undefined => {
  const problem = !Number.isInteger(permits)
    ? `it is not a whole number (${shown(permits)})`
    : permits < least
      ? `it is less than ${least}`
      : permits > maxPermits
        ? `it is more than ${maxPermits}`
        : undefined
  return problem === undefined ? undefined : new InvalidLockOptions({ option, problem })
}
