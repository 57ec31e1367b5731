/**
 * A held lock as a line of the page's table.
 */
import { type HeldLock, leftOf, longestWait, waitingProcesses } from "../../watch/heldLock.ts"
import type { Holder, LockLine } from "../page/connection/wire.ts"

/** A read-write lock may have thousands of readers. */
const shownHolders = 3

export const holderOf = ({ label, mode, owner }: Holder): Holder =>
  label === undefined || label === null ? { owner, mode } : { owner, label, mode }

export const lockLine = (lock: HeldLock): LockLine => {
  const { isOlder, lease, seenAt, since, state } = lock
  const left = leftOf(lock, seenAt)
  return {
    name: state.name,
    kind: state.kind,
    holders: state.holders.slice(0, shownHolders).map(holderOf),
    holderCount: state.holders.length,
    permits: state.held,
    since,
    isOlder,
    leaseEnds: left === undefined ? null : seenAt + left,
    lease,
    waiting: waitingProcesses(state),
    longestWait: longestWait(lock) ?? null
  }
}
