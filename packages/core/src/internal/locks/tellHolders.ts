/**
 * Tells the holders of a lock that was taken from them by force.
 */
import * as Effect from "effect/Effect"
import type { LockClient } from "../client/LockClient.ts"
import { inspect } from "../protocol/inspect.ts"
import { clientOf } from "../protocol/LabelsOfOthers.ts"
import { clientLabelKey, type LockKeys } from "../store/keys.ts"
import { tell } from "../store/operations/client.ts"

/** The other clients that hold a lock; none, if that cannot be known. */
export const otherHolders = (client: LockClient, keys: LockKeys): Effect.Effect<ReadonlySet<string>> =>
  client.isQuorum
    ? Effect.succeed(new Set())
    : inspect(client, keys, keys.lock).pipe(
        Effect.map((state) => {
          const ids = (state?.holders ?? []).map(({ owner }) => clientOf(owner)).filter((id) => id !== undefined)
          return new Set(ids.filter((id) => id !== client.clientId))
        }),
        Effect.orElseSucceed(() => new Set<string>())
      )

/** Those that cannot be told learn of it with their next renewal. */
export const tellHolders = (client: LockClient, ids: ReadonlySet<string>): Effect.Effect<void> =>
  Effect.forEach(
    ids,
    (id) => Effect.ignore(client.store.run(tell(clientLabelKey(client.options.keyPrefix, id), client.store.publish))),
    { concurrency: 16, discard: true }
  )
