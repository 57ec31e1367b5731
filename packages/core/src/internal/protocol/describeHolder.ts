/**
 * What people want to know of a holder besides its owner: whose it is, and since when it has held the lock.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { LockStore } from "../../LockStore.ts"
import type { LabelsOfOthers } from "./LabelsOfOthers.ts"

export interface HolderDescription {
  readonly label?: string
  readonly since?: Duration.Duration
}

export interface DescribingClient {
  readonly labels: LabelsOfOthers
  readonly store: LockStore["Service"]
}

/** The end of the owner of a lock that its minHold keeps: nobody holds it. */
const kept = ":kept"

/** Tokens are times of the server, but for those of a `FencedLock`, which count. */
const leastTime = 1_000_000_000_000_000

/** The time since the grant of this token; undefined where it tells none. */
export const sinceGrant = (
  { store }: DescribingClient,
  key: string,
  token: bigint | undefined
): Duration.Duration | undefined => {
  const now = store.serverMicros(key)
  if (token === undefined || now === undefined || token < leastTime) return undefined
  const micros = now - Number(token)
  return micros < 0 ? undefined : Duration.micros(BigInt(Math.floor(micros)))
}

/** Nothing of a client that has told no label: it may be Redisson's, whose grants leave an older token as it is. */
export const describeHolder = (
  client: DescribingClient,
  key: string,
  owner: string,
  tokenOf: Effect.Effect<bigint | undefined>
): Effect.Effect<HolderDescription> =>
  Effect.flatMap(
    owner.endsWith(kept) ? Effect.undefined : client.labels.of(owner),
    (label): Effect.Effect<HolderDescription> => {
      if (label === undefined) return Effect.succeed({})
      return Effect.map(tokenOf, (token) => {
        const since = sinceGrant(client, key, token)
        return since === undefined ? { label } : { label, since }
      })
    }
  )
