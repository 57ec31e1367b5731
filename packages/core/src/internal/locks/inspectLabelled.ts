import * as Effect from "effect/Effect"
import type { LockStoreError } from "../../LockError.ts"
import type { NameState } from "../../LockState.ts"
import { describeHolder } from "../protocol/describeHolder.ts"
import type { LockClient } from "../client/LockClient.ts"
import { inspectName } from "../protocol/inspect.ts"
import type { LockKeys } from "../store/keys.ts"

/** Everything that Redis has under a name, with the labels of the holders' clients. */
export const inspectLabelled = (
  client: LockClient,
  keys: LockKeys,
  name: string
): Effect.Effect<NameState, LockStoreError> =>
  Effect.flatMap(inspectName(client, keys, name), (state) => {
    const { holders, token } = state
    if (holders.length === 0) return Effect.succeed(state)
    // readers have no token of their own
    const tokenOf = Effect.succeed(holders.every(({ mode }) => mode !== "read") ? token : undefined)
    const described = Effect.forEach(
      holders,
      (holder) =>
        Effect.map(describeHolder(client, keys.lock, holder.owner, tokenOf), (description) => ({
          ...holder,
          ...description
        })),
      { concurrency: 16 }
    )
    return Effect.map(described, (holders) => ({ ...state, holders }))
  })
