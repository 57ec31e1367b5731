/**
 * Waiting in the line of this process, whose first talks to Redis for all.
 */
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import { type LockReentered, LockStoreError, type LockTimeout } from "../../LockError.ts"
import type { AcquireRequest, Restore } from "./acquire.ts"
import { acquireOnce, ownerRefOf, type Denial } from "./acquireOnce.ts"
import { backOff } from "../options/backOff.ts"
import { enter } from "./reenter.ts"
import { Hold } from "../hold/Hold.ts"
import type { WaitQueue, Waiter } from "../wait/WaitQueue.ts"
import { cancelWriterIntent } from "../hold/release.ts"
import { established, fallback, gaveUp } from "./giveUp.ts"

export const isAsked = ({ client, keys, kind }: AcquireRequest): boolean =>
  kind.mode !== "read" && client.asked.has(keys.lock)

/** Who asked for this process has its answer. */
export const settled = ({ client, keys, kind }: AcquireRequest): void => {
  client.asked.delete(keys.lock)
  client.lines.get(keys.lock, kind.mode)?.unreserve()
}

/**
 * Waits in the line of this process. `answer` is what an attempt has come to that was made already, and `heard` how many signals had
 * been heard before it.
 */
export const waitInQueue = (
  request: AcquireRequest,
  restore: Restore,
  startedAt: number,
  answer: Denial | LockStoreError | undefined,
  heard: number | undefined
): Effect.Effect<Hold, LockTimeout | LockReentered | LockStoreError> => {
  const { client, identity, keys, kind } = request
  const place = { isReserved: () => isAsked(request), atHead: kind.mode !== "read" && answer !== undefined }
  return Effect.flatMap(client.lines.join(keys.lock, kind.mode, identity, place), ([line, waiter]) => {
    const denial = answer instanceof LockStoreError ? undefined : answer
    if (denial !== undefined) line.announced = kind.withdraw !== undefined
    if (answer !== undefined) line.failure = answer === denial ? undefined : (answer as LockStoreError)
    // only now: whoever else took the head meanwhile would be asking already
    if (place.atHead) settled(request)
    return Effect.ensuring(
      whileInLine(request, restore, startedAt, denial, answer !== undefined, heard, line, waiter),
      Effect.suspend(() => {
        client.alarms.cancel(waiter)
        client.lines.leave(keys.lock, kind.mode, line, waiter)
        return line.isEmpty && line.announced ? cancelWriterIntent(ownerRefOf(request, client.clientId)) : Effect.void
      })
    )
  })
}

const whileInLine = Effect.fnUntraced(function* (
  request: AcquireRequest,
  restore: Restore,
  startedAt: number,
  denial: Denial | undefined,
  hasAsked: boolean,
  heard: number | undefined,
  line: WaitQueue,
  waiter: Waiter
): Effect.fn.Return<Hold, LockTimeout | LockReentered | LockStoreError> {
  const { client, keys, kind } = request
  const isShared = kind.mode === "read"
  const waitsUntil = startedAt + request.waitMillis
  const nextPause = kind.backoff === undefined ? undefined : yield* backOff(kind.backoff)
  // Not worth asking while this process holds the lock, nor proper while it leaves it to others.
  const isVain = () => client.isHeldHere(keys.lock, kind.mode) || client.now() < line.quietUntil
  let vain = hasAsked ? waiter.isFirst : isVain()

  while (true) {
    if (!waiter.isFirst) {
      if (waitsUntil < Number.POSITIVE_INFINITY) client.alarms.set(waiter, waitsUntil)
      yield* restore(waiter.awaitTurn)
      vain = isVain()
    }
    const hold = yield* enter(request, restore) ?? Effect.undefined
    if (hold !== undefined) return hold
    // what readers wait for comes to all of them at once; where the store cannot be asked, the first finds out when it can
    if ((waiter.isFirst || (isShared && line.failure === undefined)) && !vain) {
      if (waiter.isFirst) line.clear()
      const ownerRef = ownerRefOf(request, client.nextOwner())
      heard = client.signals.heard(kind.channel(keys, ownerRef.owner))
      line.announced = kind.withdraw !== undefined
      const outcome: Hold | Denial | LockStoreError = yield* acquireOnce(
        request,
        ownerRef,
        true,
        restore,
        startedAt,
        Effect.succeed<Hold>,
        Effect.succeed<Denial | LockStoreError>,
        undefined,
        Effect.succeed<LockStoreError>
      )
      line.failure = outcome instanceof LockStoreError ? outcome : undefined
      if (outcome instanceof Hold) {
        line.announced = false
        if (isShared) line.callOthers()
        return outcome
      }
      if (outcome instanceof LockStoreError) denial = undefined
      else denial = outcome
    }
    const now = client.now()
    const remaining = waitsUntil - now
    if (remaining <= 0) return yield* gaveUp(request, startedAt, denial, line.failure)
    if (!waiter.isFirst) continue
    // Signals of this process need no subscription.
    if (nextPause === undefined && line.listening === undefined && !client.isHeldHere(keys.lock, kind.mode)) {
      const channel = kind.channel(keys, client.clientId)
      line.listening = client.signals.listen(channel, () => line.signal())
      if (heard === undefined || heard !== client.signals.heard(channel)) {
        // the release may have been announced before this line could hear it
        yield* restore(established(client, line.listening, waitsUntil))
        vain = false
        continue
      }
    }
    const pause = nextPause === undefined || line.failure !== undefined ? fallback(client, denial) : yield* nextPause
    if (pause === undefined) return yield* gaveUp(request, startedAt, denial)
    const quiet = line.quietUntil - now
    client.alarms.set(waiter, now + Math.min(quiet > 0 ? quiet : pause, remaining))
    const wake = yield* restore(Queue.take(line.signals))
    client.alarms.cancel(waiter)
    // a signal may be the message of a release that this process has long made use of
    vain = wake === "signal" && isVain()
    if (isShared && !vain && wake === "signal") line.callOthers()
  }
})
