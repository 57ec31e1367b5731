/**
 * The loop that every waiter runs, whether for a lock, a fair turn, permits or a latch: it sleeps until there is something to do, does it,
 * and ends once the waiter has been served or has waited long enough. Waiters differ in what wakes them and what they do then. Below it:
 * how a wait ends without the lock.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { type Holder, type LockStoreError, LockTimeout } from "../../LockError.ts"
import type { LockClient } from "../client/LockClient.ts"
import { labelOf, lookAtHolders } from "../kinds/inspect.ts"
import type { Outage } from "../wait/Outage.ts"
import type { AcquireRequest, Denial, Restore } from "./ask.ts"

export interface Wait<A, E> {
  readonly restore: Restore
  /** Sleeps until there is something to do. May end for no reason. */
  readonly sleep: () => Effect.Effect<void>
  /** Does what there is to do: undefined if that has not served the waiter. */
  readonly attempt: () => Effect.Effect<A | undefined, E>
  readonly isOver: () => boolean
  /** How the wait ends without success. */
  readonly gaveUp: () => Effect.Effect<A, E>
}

export const untilServed = Effect.fnUntraced(function* <A, E>(wait: Wait<A, E>): Effect.fn.Return<A, E> {
  while (true) {
    yield* wait.restore(wait.sleep())
    const served = yield* wait.attempt()
    if (served !== undefined) return served
    if (wait.isOver()) return yield* wait.gaveUp()
  }
})

/**
 * Ends the wait; run the result at once. The store's last answer decides how it fails: with `LockTimeout` if the lock was taken, with the
 * store's own `failure` if that is not known.
 */
export const gaveUp = (
  request: AcquireRequest,
  startedAt: number,
  denial: Denial | undefined,
  failure?: LockStoreError
): Effect.Effect<never, LockTimeout | LockStoreError> => {
  const { client, keys, kind, name } = request
  if (failure !== undefined && !client.leases.exclude(keys.lock, kind.mode)) return Effect.fail(failure)
  client.telemetry.of(kind.name).timedOut++
  const waited = waitedSince(startedAt, client.now(), request.waitMillis)
  // -2: it was free, and the denial names the head of the queue
  if (denial?.remaining === -2) {
    return Effect.fail(new LockTimeout({ lock: name, waited, holder: undefined, next: denial.owner }))
  }
  const holder = holderOf(request, denial)
  if (holder === undefined || request.waitMillis < leastWaitMillis) {
    return Effect.fail(new LockTimeout({ lock: name, waited, holder }))
  }
  return Effect.flatMap(descriptionOf(request, holder.owner), (description) =>
    Effect.fail(new LockTimeout({ lock: name, waited, holder: { ...holder, ...description } }))
  )
}

/** How long a caller has waited: not at all if it may not, however long its one request took. */
export const waitedSince = (startedAt: number, now: number, waitMillis: number): Duration.Duration =>
  waitMillis > 0 ? Duration.millis(now - startedAt) : Duration.zero

/** A client tells its label after a second: a caller that waits for less learns nothing by asking. */
const leastWaitMillis = 1000

/** The wait is over: what is not known soon is left out. */
const longestLookMillis = 50

/** The label of the holder's client, and for how long it has held the lock. */
const descriptionOf = (
  { client, keys, name }: AcquireRequest,
  owner: string
): Effect.Effect<Pick<Holder, "label" | "since">> => {
  const described = Effect.flatMap(labelOf(client, owner), (label) =>
    label === undefined
      ? Effect.succeed({})
      : Effect.match(lookAtHolders(client, keys, name), {
          onFailure: () => ({ label }),
          onSuccess: ({ since, state }) =>
            since !== undefined && state.holders.some((holder) => holder.owner === owner) ? { label, since } : { label }
        })
  )
  return Effect.timeoutOrElse(described, { duration: longestLookMillis, orElse: () => Effect.succeed({}) })
}

/**
 * The last holder seen: in Redis, or in this process if Redis was not asked. Nobody, while it is the turn of others (see `last_turn.lua`), or
 * while readers let a client go first that waits to write.
 */
const holderOf = ({ client, keys }: AcquireRequest, denial: Denial | undefined): Holder | undefined => {
  if (denial !== undefined) {
    if (!denial.owner.includes(":")) return undefined
    const remaining = denial.remaining < 0 ? undefined : Duration.millis(denial.remaining)
    return { owner: denial.owner, remaining }
  }
  const here = client.leases.of(keys.lock)[0]
  return here && { owner: here.owner, remaining: Duration.millis(Math.max(0, here.deadline - client.now())) }
}

/**
 * Pauses after a transient failure, for at most the `left` milliseconds of the wait, rounded up: a clock may not tell a
 * sleep of under a nanosecond from none.
 */
export const pauseAfterFailure = (
  client: LockClient,
  outage: Outage<unknown>,
  left: number,
  restore: Restore
): Effect.Effect<void> =>
  restore(Effect.sleep(Math.min(outage.pauseMillis(client.options.fallbackIntervalMillis), Math.ceil(left))))

/** Counts an acquisition of this kind as waiting until it ends. */
export const countWaiting = <A, E, R>(
  { telemetry }: LockClient,
  kind: string,
  wait: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    telemetry.of(kind).waiting++
    return Effect.ensuring(
      wait,
      Effect.sync(() => void telemetry.of(kind).waiting--)
    )
  })
