/**
 * Frees a lock whoever holds it, and notifies its holders.
 */
import * as Effect from "effect/Effect"
import { InvalidLockOptions, type LockStoreError } from "../../LockError.ts"
import type { LockClient } from "../client/LockClient.ts"
import { clientOf, lookAtHolders } from "../kinds/inspect.ts"
import type { LockProtocol } from "../kinds/kinds.ts"
import { runOrDescribe } from "../store/failures.ts"
import { clientLabelKey, type LockKeys } from "../store/keys.ts"
import { tell } from "../store/operations/client.ts"

/** The other clients among these owners, by default all holders; none, if that cannot be known. */
const otherHolders = (
  client: LockClient,
  keys: LockKeys,
  owners: ReadonlyArray<string> | undefined
): Effect.Effect<ReadonlySet<string>> => {
  if (client.isQuorum) return Effect.succeed(new Set())
  const holders: Effect.Effect<ReadonlyArray<string>, LockStoreError> = owners === undefined
    ? Effect.map(lookAtHolders(client, keys, keys.lock), ({ state }) => state.holders.map(({ owner }) => owner))
    : Effect.succeed(owners)
  return holders.pipe(
    Effect.map((all) => {
      const ids = all.map(clientOf).filter((id) => id !== undefined)
      return new Set(ids.filter((id) => id !== client.clientId))
    }),
    Effect.orElseSucceed(() => new Set<string>())
  )
}

/** A holder that cannot be notified learns of it with its next renewal. */
const notify = (client: LockClient, ids: ReadonlySet<string>): Effect.Effect<void> =>
  Effect.forEach(
    ids,
    (id) => Effect.ignore(client.store.run(tell(clientLabelKey(client.options.keyPrefix, id), client.store.publish))),
    { concurrency: 16, discard: true }
  )

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
  const freed = Effect.suspend(() => {
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
  return Effect.flatMap(otherHolders(client, keys, owners), (others) =>
    Effect.tap(freed, (isFreed) => (isFreed ? notify(client, others) : Effect.void))
  )
}
