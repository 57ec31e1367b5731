/**
 * Waits in the queue of a fair lock, where each waiter has a place in Redis.
 */
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import { type LockReentered, LockStoreError, type LockTimeout } from "../../LockError.ts"
import { Hold } from "../hold/Hold.ts"
import { giveBackTurn, releaseAgainAfter, rollbackUnknown } from "../hold/rollback.ts"
import { ownerRefOf } from "../kinds/kinds.ts"
import { matchOutcome } from "../store/commands.ts"
import { FairWaiter } from "../wait/FairQueue.ts"
import { isDue } from "../wait/stage.ts"
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
  const { client, keys, kind, leaseMillis } = request
  const waitsUntil = startedAt + request.waitMillis
  return Effect.flatMap(Queue.sliding<void>(1), (wakes) => {
    const queue = client.lines.openFair(keys)
    // an owner whose channel is heard already
    const spare = client.lines.spareOwners.take(keys.lock)
    const messagesSeen = spare && client.subscriptions.messagesSeen(spare.channel)
    const owner = spare?.owner ?? client.nextOwner()
    const secret = client.nextOwner().slice(client.clientId.length + 1)
    const waiter = new FairWaiter(request, owner, secret, wakes, waitsUntil)
    queue.enter(waiter)
    let denial: Denial | undefined
    let stopListening = spare?.stop
    /** Until when a request that failed with unknown outcome may still take effect, on the monotonic clock; undefined if there was none. */
    let unsureUntil: number | undefined

    const ask = Effect.suspend(() => {
      waiter.askedAt = client.now()
      waiter.on({ _tag: "Asked" })
      const asked = new Ask(request, { waits: true, startedAt, secret }, owner)
      return Effect.map(acquireOnce(request, asked, restore), (answer) => {
        denial = undefined
        waiter.mayHavePlace ||= asked.mayHaveRun
        if (answer instanceof LockStoreError) {
          if (asked.mayHaveRun) unsureUntil = client.now() + client.store.commandLifeMillis
          queue.outage.failed(answer)
        } else {
          queue.outage.answered()
          if (answer instanceof Hold) return answer
          denial = answer
        }
        // its alarm, or the next report, says when to ask again
        waiter.on({ _tag: "Answered", until: Number.POSITIVE_INFINITY, now: client.now() })
        return undefined
      })
    })

    const listen = () => {
      const channel = kind.channel(keys, owner)
      let isSubscribed = spare !== undefined
      stopListening = client.subscriptions.subscribe(channel, (signal) => {
        // Its turn may have been announced before the first subscription was ready, so one more request follows. After an
        // outage all channels come back at once: one report serves all waiters.
        if (signal._tag === "Message") waiter.told(signal.message)
        else if (isSubscribed || queue.outage.hasFailed) queue.lookSoon()
        else waiter.changed()
        isSubscribed = true
        client.inMicrotask(() => Queue.flushUnsafe(wakes))
      })
      spare?.stop()
      // announced since the request was sent, or to be looked up: the connection was lost, or the subscription was ready at once
      if (client.subscriptions.messagesSeen(channel) !== messagesSeen) waiter.changed()
      client.lines.spareOwners.prepare(keys, kind)
    }

    const takeTurn = (): Effect.Effect<Hold | undefined, LockStoreError> => {
      const { isLate, stage } = waiter
      const taken = stage._tag === "HandedOver" ? takeOver(request, stage.grant, startedAt) : undefined
      if (taken !== undefined) {
        // a holder needs no place
        queue.leave(waiter)
        return begun(taken)
      }
      // during an outage, the queue's refresh finds out for all waiters when the store answers again
      if (!isDue(stage) || (isLate && queue.outage.failure !== undefined)) return Effect.undefined
      return Effect.map(ask, (hold) => {
        if (hold === undefined) queue.sleep(waiter, denial?.remaining ?? -1)
        return hold
      })
    }

    const wait: Wait<Hold, LockTimeout | LockReentered | LockStoreError> = {
      restore,
      sleep: () => (isDue(waiter.stage) ? Effect.void : Queue.take(wakes)),
      attempt: () => reenterOr(request, restore, waitsUntil, takeTurn),
      isOver: () => waiter.isLate,
      gaveUp: () => gaveUp(request, startedAt, denial, queue.outage.failure)
    }

    const leave = () => {
      client.alarms.cancel(waiter)
      queue.leave(waiter)
      stopListening?.()
    }
    const removePlace = () => client.lines.openFair(keys).removePlaces([owner])
    const giveUp = Effect.suspend(() => {
      // during an outage, thousands may come and go without one
      if (!waiter.mayHavePlace) return Effect.void
      // a refresh removes the place once the store answers again
      if (unsureUntil !== undefined || queue.outage.failure !== undefined) removePlace()
      const ownerRef = ownerRefOf(request, owner)
      if (unsureUntil !== undefined) return rollbackUnknown(ownerRef, leaseMillis)
      if (queue.outage.failure !== undefined) return Effect.void
      return giveBackTurn(ownerRef, queue.settled, removePlace)
    })

    const served = Effect.flatMap(ask, (hold) => {
      if (hold !== undefined) return Effect.succeed(hold)
      queue.join(waiter, denial?.remaining ?? -1)
      listen()
      return countWaiting(client, kind.name, untilServed(wait))
    })
    return matchOutcome(
      served,
      (hold) => {
        leave()
        // it re-enters a lock that its owner has acquired meanwhile
        if (hold.owner !== owner) return Effect.as(giveUp, hold)
        if (unsureUntil !== undefined) releaseAgainAfter(hold, unsureUntil, leaseMillis)
        return Effect.succeed(hold)
      },
      (cause) => {
        leave()
        return Effect.andThen(giveUp, Effect.failCause(cause))
      }
    )
  })
}
