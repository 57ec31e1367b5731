/**
 * Waiting for one's turn: fair locks have a place for each waiter in Redis.
 */
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import type { LockReentered, LockStoreError, LockTimeout } from "../LockError.ts"
import type { Acquisition, Restore } from "./acquisition.ts"
import { attempt, claimOf, type Denial, leaseOf } from "./attempt.ts"
import { enter } from "./enter.ts"
import { Place } from "./FairQueue.ts"
import { Hold } from "./Hold.ts"
import type { Wake } from "./Line.ts"
import type { Claim } from "./LockKind.ts"
import { undo } from "./release.ts"
import { established, timedOut } from "./waiting.ts"

/**
 * Takes a place in the queue of a fair lock, and waits there for its turn. However the wait ends without the lock, the
 * place is given back.
 */
export const takePlace = (
  acquisition: Acquisition,
  restore: Restore,
  startedAt: number
): Effect.Effect<Hold, LockTimeout | LockReentered | LockStoreError> => {
  const { client, identity, keys } = acquisition
  return Effect.flatMap(Queue.sliding<Wake>(1), (signals) => {
    const owner = client.queues.get(keys.lock)?.reuse() ?? client.nextOwner()
    const place = new Place(owner, identity, signals, startedAt + acquisition.waitMillis)
    const claim = claimOf(acquisition, place.owner)
    const ask = Effect.suspend(() => {
      place.asking = true
      place.askedAt = client.now()
      return Effect.map(
        attempt(acquisition, claim, true, restore, startedAt, Effect.succeed<Hold>, Effect.succeed<Denial>),
        (outcome) => {
          // who has the lock needs no place
          place.asking = outcome instanceof Hold
          return outcome
        }
      )
    })
    const heard = client.signals.heard(acquisition.kind.channel(keys, place.owner))
    return Effect.flatMap(ask, (outcome) =>
      outcome instanceof Hold
        ? Effect.succeed(outcome)
        : waitForTurn(acquisition, restore, startedAt, outcome, claim, place, ask, heard)
    )
  })
}

const waitForTurn = (
  acquisition: Acquisition,
  restore: Restore,
  startedAt: number,
  denial: Denial,
  claim: Claim,
  place: Place,
  ask: Effect.Effect<Hold | Denial, LockStoreError>,
  heard: number | undefined
): Effect.Effect<Hold, LockTimeout | LockReentered | LockStoreError> => {
  const { client, keys, kind } = acquisition
  const queue = client.queues.open(keys)
  const { waitsUntil } = place
  queue.join(place, denial.remaining)

  const channel = kind.channel(keys, place.owner)
  const listening = client.signals.listen(channel, () => place.signal())

  const loop = Effect.gen(function* () {
    if (heard === undefined || heard !== client.signals.heard(channel)) {
      // its turn may have been announced before it could hear it
      yield* restore(established(client, listening, waitsUntil))
      queue.look()
    }
    while (true) {
      yield* restore(Queue.take(place.signals))
      const hold = yield* enter(acquisition, restore) ?? Effect.undefined
      if (hold !== undefined) return { hold, isTurn: false }
      const outcome = yield* ask
      if (outcome instanceof Hold) return { hold: outcome, isTurn: true }
      denial = outcome
      if (client.now() >= waitsUntil) return yield* timedOut(acquisition, startedAt, denial)
      queue.sleep(place, denial.remaining)
    }
  })
  const leave = Effect.sync(() => {
    client.alarms.cancel(place)
    queue.leave(place)
    listening.stop()
  })
  const giveUp = Effect.suspend(() => undo(claim, client.now() + leaseOf(acquisition), queue.settled))
  return Effect.matchCauseEffect(loop, {
    onSuccess: ({ hold, isTurn }) => Effect.as(isTurn ? leave : Effect.andThen(leave, giveUp), hold),
    onFailure: (cause) => Effect.andThen(Effect.andThen(leave, giveUp), Effect.failCause(cause))
  })
}
