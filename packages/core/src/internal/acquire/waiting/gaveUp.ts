/**
 * How a wait ends in which the lock was not granted.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { type Holder, type LockStoreError, LockTimeout } from "../../../LockError.ts"
import { describeHolder, type HolderDescription, sinceGrant } from "../../protocol/describeHolder.ts"
import { inspect } from "../../protocol/inspect.ts"
import type { Denial } from "../acquireOnce.ts"
import type { AcquireRequest } from "../AcquireRequest.ts"

/**
 * Ends the wait. The store's last answer decides how it fails: with `LockTimeout` if the lock was taken, with the store's
 * own `failure` if that is not known.
 */
export const gaveUp = (
  request: AcquireRequest,
  startedAt: number,
  denial: Denial | undefined,
  failure?: LockStoreError
): Effect.Effect<never, LockTimeout | LockStoreError> =>
  Effect.suspend((): Effect.Effect<never, LockTimeout | LockStoreError> => {
    const { client, keys, kind, name } = request
    if (failure !== undefined && !client.isHeldHere(keys.lock, kind.mode)) return Effect.fail(failure)
    if (request.isMember !== true) client.telemetry.timedOut(kind.name)
    const waited = Duration.millis(client.now() - startedAt)
    // -2: it was free, and the denial names the head of the queue
    if (denial?.remaining === -2) {
      return Effect.fail(new LockTimeout({ lock: name, waited, holder: undefined, next: denial.owner }))
    }
    const holder = holderOf(request, denial)
    if (holder === undefined || request.isMember === true || request.waitMillis < leastWaitMillis) {
      return Effect.fail(new LockTimeout({ lock: name, waited, holder }))
    }
    return Effect.flatMap(descriptionOf(request, holder.owner), (description) =>
      Effect.fail(new LockTimeout({ lock: name, waited, holder: { ...holder, ...description } }))
    )
  })

/** A client tells its label after a second: a caller that waits for less learns nothing by asking. */
const leastWaitMillis = 1000

/** The wait is over: what is not known soon is left out. */
const longestLookMillis = 50

const descriptionOf = ({ client, keys, name }: AcquireRequest, owner: string): Effect.Effect<HolderDescription> => {
  const since = Effect.orElseSucceed(
    Effect.map(inspect(client, keys, name), (state) =>
      // readers have no token of their own
      state?.holders.some((holder) => holder.owner === owner && holder.mode !== "read") === true
        ? sinceGrant(state.token, client.store.serverMicros(keys.lock))
        : undefined
    ),
    () => undefined
  )
  return Effect.timeoutOrElse(describeHolder(client, owner, since), {
    duration: longestLookMillis,
    orElse: () => Effect.succeed({})
  })
}

/** The last holder seen: in Redis, or in this process if Redis was not asked. Nobody, while it is the turn of others (see `last_turn.lua`). */
const holderOf = ({ client, keys }: AcquireRequest, denial: Denial | undefined): Holder | undefined => {
  if (denial?.owner === "") return undefined
  if (denial !== undefined) {
    const remaining = denial.remaining < 0 ? undefined : Duration.millis(denial.remaining)
    return { owner: denial.owner, remaining }
  }
  const here = client.heldHere(keys.lock)[0]
  return here && { owner: here.owner, remaining: Duration.millis(Math.max(0, here.deadline - client.now())) }
}
