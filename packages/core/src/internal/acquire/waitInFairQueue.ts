/**
 * Waits in the queue of a fair lock, where each waiter has a place in Redis.
 */
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import { type LockReentered, LockStoreError, type LockTimeout } from "../../LockError.ts"
import { Hold } from "../hold/Hold.ts"
import { type OwnerRef, ownerRefOf } from "../kinds/kinds.ts"
import { giveBackTurn, releaseAgainAfter, rollbackUnknown } from "../hold/rollback.ts"
import { type FairQueue, FairWaiter, type SpareOwner, type Wake } from "../wait/FairQueue.ts"
import { acquireOnce, type AcquireRequest, Ask, begun, type Denial, takeOver, type Restore } from "./ask.ts"
import { reenterOr } from "./reenter.ts"
import { countWaiting, gaveUp, untilServed, type Wait } from "./untilServed.ts"

/**
 * Takes a place in the queue of a fair lock, and waits there for its turn. If the wait ends without the lock, for whatever
 * reason, the place is given up. A transient failure costs time, not the place: it retries with the same owner id until it
 * gives up.
 */
export const waitInFairQueue = (
  request: AcquireRequest,
  restore: Restore,
  startedAt: number
): Effect.Effect<Hold, LockTimeout | LockReentered | LockStoreError> => {
  const { client, identity, keys } = request
  return Effect.flatMap(Queue.sliding<Wake>(1), (signals) => {
    const queue = client.lines.openFair(keys)
    const spare = client.lines.spareOwners.take(keys.lock)
    const owner = spare?.owner ?? client.nextOwner()
    const secret = client.nextOwner().slice(client.clientId.length + 1)
    const waiter = new FairWaiter(owner, secret, identity, signals, startedAt + request.waitMillis)
    queue.enter(waiter)
    const ownerRef = ownerRefOf(request, waiter.owner)
    const ask: AskForTurn = Effect.suspend(() => {
      waiter.asking = true
      waiter.askedAt = client.now()
      const asked = new Ask(request, { waits: true, startedAt, secret }, owner)
      return Effect.map(acquireOnce(request, asked, restore), (outcome) => {
        // a holder needs no place
        waiter.asking = outcome instanceof Hold
        if (outcome instanceof LockStoreError) {
          if (asked.mayHaveRun) waiter.unsureUntil = client.now() + client.store.commandLifeMillis
          queue.outage.failed(outcome)
        } else {
          queue.outage.answered()
          waiter.mayHavePlace = true
        }
        return outcome
      })
    })
    return Effect.matchCauseEffect(ask, {
      onSuccess: (outcome) => {
        if (!(outcome instanceof Hold)) {
          const wait = waitForTurn(request, { restore, startedAt, ownerRef, queue, waiter, spare, ask }, outcome)
          return countWaiting(client, request.kind.name, wait)
        }
        queue.leave(waiter)
        spare?.stop()
        return Effect.succeed(outcome)
      },
      onFailure: (cause) => {
        queue.leave(waiter)
        spare?.stop()
        return Effect.failCause(cause)
      }
    })
  })
}

/** One wait in the queue of a fair lock. */
interface FairWait {
  readonly restore: Restore
  readonly startedAt: number
  readonly ownerRef: OwnerRef
  readonly queue: FairQueue
  readonly waiter: FairWaiter
  /** The owner of the waiter, if its channel was heard before. */
  readonly spare: SpareOwner | undefined
  readonly ask: AskForTurn
}

type AskForTurn = Effect.Effect<Hold | Denial | LockStoreError, LockStoreError>

const waitForTurn = (
  request: AcquireRequest,
  { ask, ownerRef, queue, restore, spare, startedAt, waiter }: FairWait,
  answer: Denial | LockStoreError
): Effect.Effect<Hold, LockTimeout | LockReentered | LockStoreError> => {
  const { client, keys, kind } = request
  const { waitsUntil } = waiter
  let denial = answer instanceof LockStoreError ? undefined : answer
  queue.join(waiter, denial?.remaining ?? -1)

  const channel = kind.channel(keys, waiter.owner)
  let isSubscribed = spare !== undefined
  const subscription = client.subscriptions.subscribe(channel, (signal) => {
    // Its turn may have been announced before the first subscription was ready, so one more request follows. After an
    // outage all channels come back at once: one report serves all waiters.
    if (signal._tag === "Message") waiter.told(signal.message)
    else if (isSubscribed || queue.outage.hasFailed) queue.lookSoon()
    else waiter.signal()
    isSubscribed = true
    client.inOwnTurn(() => Queue.flushUnsafe(waiter.signals))
  })
  spare?.stop()
  // announced since the request was sent, or to be looked up, as the connection was lost
  if (spare !== undefined && client.subscriptions.messagesSeen(channel) !== spare.messagesSeen) waiter.signal()
  client.lines.spareOwners.prepare(keys, kind)

  let isTurn = false
  const wait: Wait<Hold, LockTimeout | LockReentered | LockStoreError> = {
    restore,
    sleep: () =>
      Effect.map(Queue.take(waiter.signals), (wake) => {
        if (wake === "tick" && client.now() < waitsUntil) client.telemetry.of(kind.name).polls++
      }),
    attempt: () => reenterOr(request, restore, waitsUntil, () => takeTurn),
    isOver: () => client.now() >= waitsUntil,
    gaveUp: () => gaveUp(request, startedAt, denial, queue.outage.failure)
  }
  const takeTurn = Effect.suspend((): Effect.Effect<Hold | undefined, LockStoreError> => {
    const { grant } = waiter
    waiter.grant = undefined
    const taken = grant && takeOver(request, grant, startedAt)
    if (taken !== undefined) {
      waiter.asking = true
      isTurn = true
      return begun(taken)
    }
    // during an outage, the queue's refresh finds out for all waiters when the store answers again
    if (queue.outage.failure !== undefined && client.now() >= waitsUntil) return Effect.undefined
    return Effect.map(ask, (outcome) => {
      if (outcome instanceof Hold) {
        isTurn = true
        return outcome
      }
      denial = outcome instanceof LockStoreError ? undefined : outcome
      queue.sleep(waiter, denial?.remaining ?? -1)
      return undefined
    })
  })
  const leave = Effect.sync(() => {
    client.alarms.cancel(waiter)
    queue.leave(waiter)
    subscription.stop()
  })
  const removePlace = () => client.lines.openFair(keys).removePlaces([waiter.owner])
  const giveUp = Effect.suspend(() => {
    // during an outage, thousands may come and go without one
    if (!waiter.mayHavePlace && !waiter.isUnsure) return Effect.void
    // a refresh removes the place once the store answers again
    if (waiter.isUnsure || queue.outage.failure !== undefined) removePlace()
    if (waiter.isUnsure) return rollbackUnknown(ownerRef, request.leaseMillis)
    if (queue.outage.failure !== undefined) return Effect.void
    return giveBackTurn(ownerRef, queue.settled, removePlace)
  })
  return Effect.matchCauseEffect(untilServed(wait), {
    onSuccess: (hold) => {
      if (isTurn) releaseAgainAfter(hold, waiter.unsureUntil, request.leaseMillis)
      return Effect.as(isTurn ? leave : Effect.andThen(leave, giveUp), hold)
    },
    onFailure: (cause) => Effect.andThen(Effect.andThen(leave, giveUp), Effect.failCause(cause))
  })
}
