/**
 * What a quorum has to know of an operation.
 */
import type { Operation } from "../../../LockStore.ts"

export const acquiring: ReadonlySet<Operation> = new Set<Operation>([
  "lock/acquire",
  "fenced_lock/acquire",
  "read_lock/acquire",
  "write_lock/acquire"
])

export const releasing: ReadonlySet<Operation> = new Set<Operation>([
  "lock/release",
  "read_lock/release",
  "write_lock/release"
])

export const renewing: ReadonlySet<Operation> = new Set<Operation>(["lock/renew", "read_lock/renew"])

/** Which argument is the lower bound for the token. */
export const boundAt: ReadonlyMap<Operation, number> = new Map<Operation, number>([
  ["lock/acquire", 3],
  ["write_lock/acquire", 5]
])
