/**
 * What people want to know of a holder besides its owner: whose it is, and since when it has held the lock.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { LabelsOfOthers } from "./LabelsOfOthers.ts"

export interface HolderDescription {
  readonly label?: string
  readonly since?: Duration.Duration
}

export interface DescribingClient {
  readonly labels: LabelsOfOthers
}

/** The end of the owner of a lock that its minHold keeps: nobody holds it. */
const kept = ":kept"

/** Tokens are times of the server, but for those of a `FencedLock`, which count. */
const leastTime = 1_000_000_000_000_000

/** The time from the grant of this token to this time of the server, microseconds; undefined where either is not known. */
export const sinceGrant = (token: bigint | undefined, now: number | undefined): Duration.Duration | undefined => {
  if (token === undefined || now === undefined || token < leastTime) return undefined
  const micros = now - Number(token)
  return micros < 0 ? undefined : Duration.micros(BigInt(Math.floor(micros)))
}

/** Nothing of a client that has told no label: it may be Redisson's, whose grants leave an older token as it is. */
export const describeHolder = (
  { labels }: DescribingClient,
  owner: string,
  sinceOf: Effect.Effect<Duration.Duration | undefined>
): Effect.Effect<HolderDescription> =>
  Effect.flatMap(
    owner.endsWith(kept) ? Effect.undefined : labels.of(owner),
    (label): Effect.Effect<HolderDescription> => {
      if (label === undefined) return Effect.succeed({})
      return Effect.map(sinceOf, (since) => (since === undefined ? { label } : { label, since }))
    }
  )
