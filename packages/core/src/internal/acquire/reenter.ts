/**
 * Entering what one holds already.
 */
import * as Effect from "effect/Effect"
import { LockReentered, type LockStoreError } from "../../LockError.ts"
import type { Acquisition, Restore } from "./acquire.ts"
import { leaseOf } from "./acquireOnce.ts"
import { Hold } from "../hold/Hold.ts"
import type { Possession } from "../hold/Lease.ts"
import { undoEntry } from "../hold/release.ts"

/**
 * What becomes of an acquisition by somebody who holds the lock already: a hold more, or a refusal where waiting would be
 * waiting for oneself. Undefined for everybody else.
 */
export const enter = (
  acquisition: Acquisition,
  restore: Restore
): Effect.Effect<Hold | undefined, LockReentered | LockStoreError> | undefined => {
  const { client, identity, keys, kind, name } = acquisition
  const mine = client.find(keys.lock, kind.mode, identity)
  if (mine !== undefined) {
    return kind.reentrant
      ? reenter(acquisition, mine, restore)
      : Effect.fail(new LockReentered({ lock: name, attempt: "reenter" }))
  }
  return kind.mode === "write" && client.find(keys.lock, "read", identity) !== undefined
    ? Effect.fail(new LockReentered({ lock: name, attempt: "upgrade" }))
    : undefined
}

/** Enters what this owner holds already; nothing when it turns out to be lost. */
const reenter = (
  acquisition: Acquisition,
  possession: Possession,
  restore: Restore
): Effect.Effect<Hold | undefined, LockStoreError> =>
  Effect.suspend(() => {
    const { client, kind } = acquisition
    const lease = leaseOf(acquisition)
    const hold = new Hold(possession, acquisition)
    const request = kind.enter(possession, possession.add(hold), lease)
    const sentAt = client.now()
    possession.mayLastUntil = Math.max(possession.mayLastUntil, sentAt + client.store.commandLifeMillis + lease)
    client.underWay++
    return Effect.matchCauseEffect(restore(client.store.run(request.operation, request.keys, request.args)), {
      onSuccess: (reply) => {
        client.underWay--
        const lost = reply === 1 ? possession.confirm(sentAt, lease, hold) : possession.lose("NotOwner", client.now())
        if (lost !== undefined) return Effect.as(undoEntry(hold), undefined)
        client.watchdog.watch(possession)
        client.callOwners(hold)
        return Effect.succeed(hold)
      },
      onFailure: (cause) => {
        client.underWay--
        return Effect.andThen(undoEntry(hold), Effect.failCause(cause))
      }
    })
  })
