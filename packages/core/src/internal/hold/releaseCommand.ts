import * as Effect from "effect/Effect"
import type { LockStoreError } from "../../LockError.ts"
import type { OwnerRef } from "../protocol/LockProtocol.ts"
import * as lock from "../store/operations/lock.ts"
import { ownerText } from "../report/ownerText.ts"
import type { HoldingClient } from "./HoldingClient.ts"
import type { RepeatedRelease } from "./repeatedRelease.ts"

/** One owner of one lock, at a client that can release it. */
export interface HeldRef extends OwnerRef {
  readonly client: HoldingClient
  /** Until when the lock stays taken even if it is released before, on the monotonic clock; absent or 0 if it does not. */
  readonly keptUntil?: number
}

/** Whether a release now leaves the lock taken for a while. */
export const staysTaken = ({ client, keptUntil = 0 }: HeldRef): boolean => keptUntil > 0 && keptUntil > client.now()

/** Sends the release of an owner once; `publish` is empty to notify nobody. */
export const sendRelease = (
  ref: HeldRef,
  publish: string = ref.client.store.publish
): Effect.Effect<number, LockStoreError> => {
  const { client, keptUntil = 0, keys, kind, owner } = ref
  return client.store.run(
    staysTaken(ref) ? lock.keep(keys, owner, Math.ceil(keptUntil - client.now())) : kind.release(ref, publish)
  )
}

/** The release of an owner whose lease is over at `leaseEnd` anyway. */
export const releaseOf = (ref: HeldRef, leaseEnd: number, publish?: string): RepeatedRelease => ({
  client: ref.client,
  send: Effect.suspend(() => sendRelease(ref, publish)),
  over: leaseEnd,
  warn: (failure) =>
    Effect.annotateLogs(
      Effect.logWarning("Could not release in time; the lock frees itself when its lease ends.", failure),
      { lock: ref.name, owner: ownerText(ref.owner) }
    )
})
