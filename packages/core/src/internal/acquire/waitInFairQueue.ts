/**
 * Waiting for one's turn: fair locks have a place for each waiter in Redis.
 */
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import { type LockReentered, LockStoreError, type LockTimeout } from "../../LockError.ts"
import type { AcquireRequest, Restore } from "./acquire.ts"
import { acquireOnce, ownerRefOf, type Denial, leaseMillisOf } from "./acquireOnce.ts"
import { enter } from "./reenter.ts"
import { type FairWaiters, FairWaiter } from "../wait/FairWaiters.ts"
import { Hold } from "../hold/Hold.ts"
import type { Wake } from "../wait/WaitQueue.ts"
import type { OwnerRef } from "../protocol/LockProtocol.ts"
import { giveBack, undoUnknown } from "../hold/release.ts"
import { established, gaveUp } from "./giveUp.ts"

/**
 * Takes a place in the queue of a fair lock, and waits there for its turn. However the wait ends without the lock, the
 * place is given back. What passes by itself costs it time, not its place: it asks under one owner until it gives up.
 */
export const waitInFairQueue = (
  request: AcquireRequest,
  restore: Restore,
  startedAt: number
): Effect.Effect<Hold, LockTimeout | LockReentered | LockStoreError> => {
  const { client, identity, keys } = request
  return Effect.flatMap(Queue.sliding<Wake>(1), (signals) => {
    const queue = client.queues.open(keys)
    const place = new FairWaiter(client.nextOwner(), identity, signals, startedAt + request.waitMillis)
    queue.enter(place)
    const ownerRef = ownerRefOf(request, place.owner)
    const ask: Ask = Effect.suspend(() => {
      place.asking = true
      place.askedAt = client.now()
      return Effect.map(
        acquireOnce(
          request,
          ownerRef,
          true,
          restore,
          startedAt,
          Effect.succeed<Hold>,
          Effect.succeed<Denial | LockStoreError>,
          undefined,
          (failure, isUnsure) => {
            if (isUnsure) place.isUnsure = true
            return Effect.succeed(failure)
          }
        ),
        (outcome) => {
          // who has the lock needs no place
          place.asking = outcome instanceof Hold
          queue.failure = outcome instanceof LockStoreError ? outcome : undefined
          return outcome
        }
      )
    })
    const heard = client.signals.heard(request.kind.channel(keys, place.owner))
    return Effect.matchCauseEffect(ask, {
      onSuccess: (outcome) => {
        if (!(outcome instanceof Hold)) {
          return waitForTurn(request, restore, startedAt, outcome, ownerRef, queue, place, ask, heard)
        }
        queue.leave(place)
        return Effect.succeed(outcome)
      },
      onFailure: (cause) => {
        queue.leave(place)
        return Effect.failCause(cause)
      }
    })
  })
}

type Ask = Effect.Effect<Hold | Denial | LockStoreError, LockStoreError>

const waitForTurn = (
  request: AcquireRequest,
  restore: Restore,
  startedAt: number,
  answer: Denial | LockStoreError,
  ownerRef: OwnerRef,
  queue: FairWaiters,
  place: FairWaiter,
  ask: Ask,
  heard: number | undefined
): Effect.Effect<Hold, LockTimeout | LockReentered | LockStoreError> => {
  const { client, keys, kind } = request
  const { waitsUntil } = place
  let denial = answer instanceof LockStoreError ? undefined : answer
  queue.join(place, denial?.remaining ?? -1)

  const channel = kind.channel(keys, place.owner)
  let isSubscribed = false
  const listening = client.signals.listen(channel, (signal) => {
    // after an outage all hear their channels again: one looks for all
    if (signal._tag === "Subscribed" && (isSubscribed || queue.hasFailed)) queue.lookSoon()
    else place.signal()
    isSubscribed = true
  })

  const loop = Effect.gen(function* () {
    if (heard === undefined || heard !== client.signals.heard(channel)) {
      // its turn may have been announced before it could hear it: it asks once more as soon as it hears
      yield* restore(established(client, listening, waitsUntil))
    }
    while (true) {
      yield* restore(Queue.take(place.signals))
      const hold = yield* enter(request, restore) ?? Effect.undefined
      if (hold !== undefined) return { hold, isTurn: false }
      // while the store cannot be asked, the queue finds out for all when it can
      if (queue.failure === undefined || client.now() < waitsUntil) {
        const outcome = yield* ask
        if (outcome instanceof Hold) return { hold: outcome, isTurn: true }
        denial = outcome instanceof LockStoreError ? undefined : outcome
      }
      if (client.now() >= waitsUntil) return yield* gaveUp(request, startedAt, denial, queue.failure)
      queue.sleep(place, denial?.remaining ?? -1)
    }
  })
  const leave = Effect.sync(() => {
    client.alarms.cancel(place)
    queue.leave(place)
    listening.stop()
  })
  const giveUp = Effect.suspend(() => {
    // the store is told in one go when it answers again
    if (place.isUnsure || queue.failure !== undefined) client.queues.open(keys).sweep()
    if (place.isUnsure) return undoUnknown(ownerRef, leaseMillisOf(request))
    if (queue.failure !== undefined) return Effect.void
    return giveBack(ownerRef, queue.settled, () => client.queues.open(keys).sweep())
  })
  return Effect.matchCauseEffect(loop, {
    onSuccess: ({ hold, isTurn }) => Effect.as(isTurn ? leave : Effect.andThen(leave, giveUp), hold),
    onFailure: (cause) => Effect.andThen(Effect.andThen(leave, giveUp), Effect.failCause(cause))
  })
}
