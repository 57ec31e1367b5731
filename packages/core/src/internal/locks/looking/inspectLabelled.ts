import * as Effect from "effect/Effect"
import type { LockStoreError } from "../../../LockError.ts"
import type { NameState, WaiterState } from "../../../LockState.ts"
import { describeHolder, sinceGrant } from "../../protocol/describeHolder.ts"
import type { LockClient } from "../../client/LockClient.ts"
import { inspectName } from "../../protocol/inspect.ts"
import type { LockKeys } from "../../store/keys.ts"

/** Everything that Redis has under a name, with the labels of the holders' clients. */
export const inspectLabelled = (
  client: LockClient,
  keys: LockKeys,
  name: string
): Effect.Effect<NameState, LockStoreError> =>
  Effect.flatMap(inspectName(client, keys, name), ({ serverMicros, state }) => {
    const { holders, token } = state
    if (holders.length === 0) return Effect.succeed(state)
    // readers have no token of their own
    const since = holders.some(({ mode }) => mode === "read") ? undefined : sinceGrant(token, serverMicros)
    const described = Effect.forEach(
      holders,
      (holder) =>
        Effect.map(describeHolder(client, holder.owner, Effect.succeed(since)), (description) => ({
          ...holder,
          ...description
        })),
      { concurrency: 16 }
    )
    return Effect.map(described, (holders) => ({ ...state, holders }))
  })

/** The most waiters whose labels are looked for: each is a command, unless it is known. */
const mostLabelled = 100

/** The same with the labels of those who wait. */
export const withLabelledWaiters = (client: LockClient, state: NameState): Effect.Effect<NameState> =>
  Effect.map(
    Effect.forEach(state.waiters.slice(0, mostLabelled), (waiter) => labelled(client, waiter), { concurrency: 16 }),
    (waiters) => ({ ...state, waiters: [...waiters, ...state.waiters.slice(mostLabelled)] })
  )

/** A writer that waits is announced by its client alone. */
const labelled = ({ labels }: LockClient, waiter: WaiterState): Effect.Effect<WaiterState> =>
  Effect.map(labels.of(waiter.owner.includes(":") ? waiter.owner : `${waiter.owner}:`), (label) =>
    label === undefined ? waiter : { ...waiter, label }
  )
