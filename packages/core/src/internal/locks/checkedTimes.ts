import type { AcquireOptions } from "../../AcquireOptions.ts"
import type { InvalidLockOptions } from "../../LockError.ts"
import type { LockClient } from "../client/LockClient.ts"
import { isInvalid } from "../options/invalid.ts"
import { checkLeaseOf, type Times, timesOf } from "../options/acquireTimes.ts"
import { checkAcknowledges } from "../store/acknowledging.ts"

/** The times of one acquisition: those of the call, else the lock's `own`, else the defaults; or why this client cannot keep them. */
export const checkedTimes = (
  { options, store }: LockClient,
  asked: AcquireOptions | undefined,
  own: AcquireOptions | undefined
): Times | InvalidLockOptions => {
  const times = timesOf(asked, own)
  if (isInvalid(times)) return times
  return checkLeaseOf(options, times.leaseMillis) ?? checkAcknowledges(store, times) ?? times
}
