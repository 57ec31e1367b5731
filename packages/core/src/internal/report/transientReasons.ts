import type { storeReasons } from "./storeReasons.ts"

type StoreReason = keyof typeof storeReasons

/** Failures after which the same call may succeed a little later. */
export const transientReasons: ReadonlySet<StoreReason> = new Set<StoreReason>([
  "ConnectionRefused",
  "NotConnected",
  "ConnectionLost",
  "TimedOut",
  "TooLate",
  "ReadOnly",
  "NotEnoughReplicas",
  "Loading",
  "Busy",
  "ClusterDown"
])
