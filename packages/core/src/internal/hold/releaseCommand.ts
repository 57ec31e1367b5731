import * as Effect from "effect/Effect"
import type { LockStoreError } from "../../LockError.ts"
import type { OwnerRef } from "../protocol/LockProtocol.ts"
import { ownerText } from "../report/ownerText.ts"
import type { HoldingClient } from "./HoldingClient.ts"
import type { RepeatedRelease } from "./repeatedRelease.ts"

/** One owner of one lock, at a client that can release it. */
export interface HeldRef extends OwnerRef {
  readonly client: HoldingClient
}

/** Sends the release of an owner once; `publish` is empty to notify nobody. */
export const sendRelease = (
  ref: HeldRef,
  publish: string = ref.client.store.publish
): Effect.Effect<number, LockStoreError> => ref.client.store.run(ref.kind.release(ref, publish))

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
