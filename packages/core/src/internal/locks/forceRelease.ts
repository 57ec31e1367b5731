/**
 * Frees a lock, whoever holds it. Other processes learn from the server that they have lost it, as of any other loss (`hold/Tracking.ts`).
 */
import * as Effect from "effect/Effect"
import { InvalidLockOptions, type LockStoreError } from "../../LockError.ts"
import type { LockClient } from "../client/LockClient.ts"
import type { LockProtocol } from "../kinds/kinds.ts"
import { runOrDescribe } from "../store/failures.ts"
import type { LockKeys } from "../store/keys.ts"

export const checkOwners = (owners: unknown): InvalidLockOptions | undefined =>
  owners === undefined || (Array.isArray(owners) && owners.every((owner) => typeof owner === "string"))
    ? undefined
    : new InvalidLockOptions({
        option: "owners",
        problem: "it must be a list of owners, as in the holders of Lock.inspect"
      })

/** Whether the lock was freed, from these owners or, without any, from its holders. */
export const forceRelease = (
  client: LockClient,
  keys: LockKeys,
  kind: LockProtocol,
  owners: ReadonlyArray<string> | undefined
): Effect.Effect<boolean, LockStoreError> => {
  // to the script, no owners means all
  if (owners?.length === 0) return Effect.succeed(false)
  const { mode, title } = kind
  const command = kind.forceRelease(keys, client.store.publish, owners ?? [])
  return Effect.suspend(() => {
    const sentAt = client.now()
    return Effect.map(runOrDescribe(client, title, command), (reply) => {
      if (reply < 1) return false
      for (const lease of client.leases.of(keys.lock)) {
        // a quorum's slowest member may answer long after a waiter of ours was granted what this has freed
        if (lease.askedAt > sentAt) continue
        if (owners?.includes(lease.owner) === false) continue
        // the writer's own read holds end with it
        if (lease.kind.mode === mode || mode === "write") lease.lose("NotOwner", client.now())
      }
      client.lines.wake(keys.lock)
      return true
    })
  })
}
