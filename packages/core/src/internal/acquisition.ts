/**
 * The way to a lock, the same for every kind: re-enter what is held already; else try; else wait for a signal or the fallback
 * interval, and try again. Most kinds wait in the line of this process, whose first talks to Redis for all; fair locks have a
 * place for each waiter in Redis.
 *
 * Everything here runs uninterruptibly but for what is wrapped in `restore`: the round trip of an attempt, which is undone
 * when it is interrupted, and the waits.
 */
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import {
  type Holder,
  LockReentered,
  LockStoreError,
  LockTimeout,
  QuorumNotReached,
  type StoreReason
} from "../LockError.ts"
import { backOff } from "./backOff.ts"
import { Place } from "./FairQueue.ts"
import { explain, explainOneOf } from "./found.ts"
import { Hold } from "./Hold.ts"
import type { LockKeys } from "./keys.ts"
import type { Line, Waiter, Wake } from "./Line.ts"
import type { LockClient } from "./LockClient.ts"
import { type Answer, answerOf, type Claim, type LockKind, tokenLife } from "./LockKind.ts"
import type { Identity } from "./owner.ts"
import { Possession } from "./Possession.ts"
import { release, undo, undoSilently, withdraw } from "./release.ts"
import type { Listening } from "./Signals.ts"

export interface Acquisition {
  readonly client: LockClient
  readonly kind: LockKind
  readonly name: string
  readonly keys: LockKeys
  readonly identity: Identity
  /** Milliseconds; infinite to wait without limit. */
  readonly waitMillis: number
  /** Milliseconds, or undefined for a lease that the watchdog renews. */
  readonly leaseMillis: number | undefined
}

export type Restore = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

type Denial = Answer & { readonly granted: false }

/** Waits for the lock as long as allowed. */
export const acquire = (
  acquisition: Acquisition,
  restore: Restore
): Effect.Effect<Hold, LockTimeout | LockReentered | LockStoreError> => {
  const entered = enter(acquisition)
  if (entered !== undefined) {
    return Effect.flatMap(entered, (hold) =>
      hold === undefined ? acquire(acquisition, restore) : Effect.succeed(hold)
    )
  }
  const { client, keys, kind } = acquisition
  const startedAt = client.now()
  const waits = acquisition.waitMillis > 0
  if (kind.queued && waits) return takePlace(acquisition, restore, startedAt)
  // Where others of this process wait or hold, asking Redis would be pushing in, or pointless.
  if (waits && isHeldUp(acquisition)) return wait(acquisition, restore, startedAt, undefined, undefined)
  const claim = claimOf(acquisition, client.nextOwner())
  const heard = client.signals.heard(kind.channel(keys, claim.owner))
  const ask = (onSettled?: typeof settled) =>
    attempt(
      acquisition,
      claim,
      waits,
      restore,
      startedAt,
      Effect.succeed,
      (denial) =>
        waits ? wait(acquisition, restore, startedAt, denial, heard) : timedOut(acquisition, startedAt, denial),
      onSettled
    )
  if (!waits || kind.mode === "read") return ask()
  // Those of this process who come while one asks wait for what it learns.
  return Effect.suspend(() => {
    client.asked.add(keys.lock)
    return ask(settled)
  })
}

/** Who asked for this process has its answer. */
const settled = ({ client, keys, kind }: Acquisition): void => {
  client.asked.delete(keys.lock)
  client.lines.get(keys.lock, kind.mode)?.unreserve()
}

/** Asks once, whoever waits. */
export const tryAcquire = (
  acquisition: Acquisition,
  restore: Restore
): Effect.Effect<Option.Option<Hold>, LockReentered | LockStoreError> => {
  const entered = enter(acquisition)
  if (entered !== undefined) {
    return Effect.flatMap(entered, (hold) =>
      hold === undefined ? tryAcquire(acquisition, restore) : Effect.succeedSome(hold)
    )
  }
  const { client } = acquisition
  const claim = claimOf(acquisition, client.nextOwner())
  return attempt(acquisition, claim, false, restore, client.now(), Effect.succeedSome, () => Effect.succeedNone)
}

const claimOf = ({ client, keys, kind, name }: Acquisition, owner: string): Claim => ({
  client,
  keys,
  kind,
  name,
  owner
})

const leaseOf = (acquisition: Acquisition): number =>
  acquisition.leaseMillis ?? acquisition.client.options.watchdogLeaseMillis

/** The write lock under which somebody asks to read. */
const writerOf = ({ client, identity, keys, kind }: Acquisition): Possession | undefined =>
  kind.mode === "read" ? client.find(keys.lock, "write", identity) : undefined

const isAsked = ({ client, keys, kind }: Acquisition): boolean => kind.mode !== "read" && client.asked.has(keys.lock)

const isHeldUp = (acquisition: Acquisition): boolean => {
  const { client, keys, kind } = acquisition
  // a writer never waits for itself
  if (writerOf(acquisition) !== undefined) return false
  if (client.lines.get(keys.lock, kind.mode) !== undefined || isAsked(acquisition)) return true
  // where readers of this process hold the lock, a writer asks all the same: others hear from Redis that it waits
  return client.isHeldHere(keys.lock, kind.withdraw === undefined ? kind.mode : "read")
}

/**
 * What becomes of an acquisition by somebody who holds the lock already: a hold more, or a refusal where waiting would be
 * waiting for oneself. Undefined for everybody else.
 */
const enter = (
  acquisition: Acquisition
): Effect.Effect<Hold | undefined, LockReentered | LockStoreError> | undefined => {
  const { client, identity, keys, kind, name } = acquisition
  const mine = client.find(keys.lock, kind.mode, identity)
  if (mine !== undefined) {
    return kind.reentrant ? reenter(acquisition, mine) : Effect.fail(new LockReentered({ name, attempt: "reenter" }))
  }
  return kind.mode === "write" && client.find(keys.lock, "read", identity) !== undefined
    ? Effect.fail(new LockReentered({ name, attempt: "upgrade" }))
    : undefined
}

/** Enters what this owner holds already; nothing when it turns out to be lost. */
const reenter = (acquisition: Acquisition, possession: Possession): Effect.Effect<Hold | undefined, LockStoreError> =>
  Effect.suspend(() => {
    const { client, kind } = acquisition
    const lease = leaseOf(acquisition)
    const hold = new Hold(possession, acquisition.leaseMillis === undefined)
    const request = kind.enter(possession, ++possession.holds, lease)
    if (hold.renewed) possession.renewedHolds++
    const sentAt = client.now()
    return Effect.matchCauseEffect(client.store.run(request.operation, request.keys, request.args), {
      onSuccess: (reply) => {
        if (reply !== 1) possession.lose("NotOwner", client.now())
        if (possession.lost !== undefined) return Effect.as(Effect.ignore(release(hold)), undefined)
        possession.entered(hold, client.deadlineOf(sentAt, lease))
        client.watchdog.watch(possession)
        return Effect.succeed(hold)
      },
      onFailure: (cause) => Effect.andThen(Effect.ignore(release(hold)), Effect.failCause(cause))
    })
  })

/**
 * One round trip, sent as soon as the effect runs. Interrupted or failed with unknown outcome, it is undone before anything
 * else happens.
 */
const attempt = <A, B, E>(
  acquisition: Acquisition,
  claim: Claim,
  waits: boolean,
  restore: Restore,
  startedAt: number,
  onGranted: (hold: Hold) => Effect.Effect<A>,
  onDenied: (denial: Denial) => Effect.Effect<B, E>,
  /** Called when the answer is there, or will not come. */
  onSettled?: (acquisition: Acquisition) => void
): Effect.Effect<A | B, E | LockStoreError> => {
  const { client, kind, name } = acquisition
  const lease = leaseOf(acquisition)
  const request = kind.acquire(claim, { leaseMillis: lease, waits, writer: writerOf(acquisition)?.owner })
  const sentAt = client.now()
  return Effect.matchCauseEffect(restore(client.store.run(request.operation, request.keys, request.args)), {
    onSuccess: (reply): Effect.Effect<A | B, E | LockStoreError> => {
      const answer = answerOf(reply)
      if (!answer.granted && answer.isPartial) {
        const pause = waits && answer.pauseMillis > 0 ? restore(Effect.sleep(answer.pauseMillis)) : Effect.void
        return Effect.matchCauseEffect(Effect.andThen(undoSilently(claim, sentAt + lease), pause), {
          onSuccess: () => {
            onSettled?.(acquisition)
            return onDenied(answer)
          },
          onFailure: (cause) => {
            onSettled?.(acquisition)
            return Effect.failCause(cause)
          }
        })
      }
      onSettled?.(acquisition)
      if (!answer.granted) return onDenied(answer)
      const now = client.now()
      const deadline = client.deadlineOf(sentAt, lease)
      if (now >= deadline) {
        return Effect.andThen(
          undo(claim, sentAt + lease),
          Effect.fail(grantedTooLate(name, request.operation, now - sentAt, lease))
        )
      }
      return onGranted(possess(acquisition, claim.owner, answer.token, startedAt, now, deadline))
    },
    onFailure: (cause) => {
      onSettled?.(acquisition)
      const failed = explain(client, kind.title, claim.keys.lock, cause)
      if (!mayHaveRun(cause)) return failed
      const undone = undo(claim, sentAt + lease)
      // a line of this process takes back itself what it has told others
      const isToldByLine = client.lines.get(claim.keys.lock, kind.mode) !== undefined
      return waits && kind.withdraw !== undefined && !isToldByLine
        ? Effect.andThen(Effect.andThen(undone, withdraw(claim)), failed)
        : Effect.andThen(undone, failed)
    }
  })
}

/** Notes what was granted. */
const possess = (
  acquisition: Acquisition,
  owner: string,
  token: number,
  startedAt: number,
  now: number,
  deadline: number
): Hold => {
  const { client } = acquisition
  const possession = new Possession(acquisition, owner, token, now, deadline)
  const renewed = acquisition.leaseMillis === undefined
  if (renewed) possession.renewedHolds = 1
  const hold = (possession.outermost = new Hold(possession, renewed))
  possession.entered(hold, deadline)
  client.remember(possession)
  client.telemetry.acquired(possession, now - startedAt)
  return hold
}

/** Which of several acquisitions by one command was denied. */
export interface DeniedAt {
  readonly index: number
}

/**
 * Asks once for several locks of one client and slot, none of which the asker holds: all or none, by one command.
 */
export const tryAcquireTogether = (
  acquisitions: ReadonlyArray<Acquisition>,
  restore: Restore
): Effect.Effect<ReadonlyArray<Hold> | DeniedAt, LockStoreError> => {
  const [first] = acquisitions as readonly [Acquisition]
  const { client } = first
  const owner = client.nextOwner()
  const lease = leaseOf(first)
  const sentAt = client.now()
  const undoAll = () =>
    Effect.forEach(acquisitions, (acquisition) => undo(claimOf(acquisition, owner), sentAt + lease), {
      concurrency: "unbounded",
      discard: true
    })
  const requested: Array<string> = []
  for (const { keys } of acquisitions) requested.push(keys.lock)
  for (const { keys } of acquisitions) requested.push(keys.token)
  const asked = client.store.run("multi_lock/acquire", requested, [owner, lease, tokenLife(lease)])
  return Effect.matchCauseEffect(restore(asked), {
    onSuccess: (reply): Effect.Effect<ReadonlyArray<Hold> | DeniedAt, LockStoreError> => {
      const replies = typeof reply === "number" ? undefined : (reply as ReadonlyArray<number>)
      if (replies?.[0] === 0) return Effect.succeed({ index: replies[1]! })
      const now = client.now()
      const deadline = client.deadlineOf(sentAt, lease)
      return now >= deadline
        ? Effect.andThen(undoAll(), Effect.fail(grantedTooLate(first.name, "multi_lock/acquire", now - sentAt, lease)))
        : Effect.succeed(
            acquisitions.map((acquisition, i) =>
              possess(acquisition, owner, replies?.[1 + i] ?? (reply as number), sentAt, now, deadline)
            )
          )
    },
    onFailure: (cause) =>
      mayHaveRun(cause)
        ? Effect.andThen(undoAll(), Effect.failCause(cause))
        : explainOneOf(
            client,
            acquisitions.map(({ keys, kind }) => ({ expected: kind.title, key: keys.lock })),
            cause
          )
  })
}

export const grantedTooLate = (name: string, operation: string, tookMillis: number, lease: number): LockStoreError =>
  new LockStoreError({
    operation,
    name,
    reason: "TimedOut",
    cause: new Error(`the lock was granted after ${Math.round(tookMillis)} ms, too late for a lease of ${lease} ms`)
  })

/** Replies with which Redis turns a script away before it starts, and failures before anything was sent. */
const notRun: ReadonlySet<StoreReason> = new Set([
  "ConnectionRefused",
  "NotConnected",
  "OutOfMemory",
  "ReadOnly",
  "PersistenceFailed",
  "Loading",
  "Busy",
  "NotAuthenticated",
  "WrongType",
  "ClusterDown"
])

/** Whether a command that failed may have been run all the same. */
export const mayHaveRun = (cause: Cause.Cause<LockStoreError>): boolean =>
  !cause.reasons.every(
    (reason) =>
      reason._tag === "Fail" && notRun.has(reason.error.reason) && !(reason.error.cause instanceof QuorumNotReached)
  )

/** Waits in the line of this process; `heard` tells how many signals had been heard before the attempt that was denied. */
const wait = (
  acquisition: Acquisition,
  restore: Restore,
  startedAt: number,
  denial: Denial | undefined,
  heard: number | undefined
): Effect.Effect<Hold, LockTimeout | LockReentered | LockStoreError> => {
  const { client, identity, keys, kind } = acquisition
  const place = { isReserved: isAsked(acquisition), atHead: kind.mode !== "read" && denial !== undefined }
  return Effect.flatMap(client.lines.join(keys.lock, kind.mode, identity, place), ([line, waiter]) => {
    if (denial !== undefined) line.announced = kind.withdraw !== undefined
    return Effect.ensuring(
      waitInLine(acquisition, restore, startedAt, denial, heard, line, waiter),
      Effect.suspend(() => {
        client.alarms.cancel(waiter)
        client.lines.leave(keys.lock, kind.mode, line, waiter)
        return line.isEmpty && line.announced ? withdraw(claimOf(acquisition, client.clientId)) : Effect.void
      })
    )
  })
}

const waitInLine = Effect.fnUntraced(function* (
  acquisition: Acquisition,
  restore: Restore,
  startedAt: number,
  denial: Denial | undefined,
  heard: number | undefined,
  line: Line,
  waiter: Waiter
): Effect.fn.Return<Hold, LockTimeout | LockReentered | LockStoreError> {
  const { client, keys, kind } = acquisition
  const isShared = kind.mode === "read"
  const waitsUntil = startedAt + acquisition.waitMillis
  const nextPause = kind.backoff === undefined ? undefined : yield* backOff(kind.backoff)
  // Not worth asking while this process holds the lock, nor proper while it leaves it to others.
  const isVain = () => client.isHeldHere(keys.lock, kind.mode) || client.now() < line.quietUntil
  let vain = denial === undefined ? isVain() : waiter.isFirst

  while (true) {
    if (!waiter.isFirst) {
      if (waitsUntil < Number.POSITIVE_INFINITY) client.alarms.set(waiter, waitsUntil)
      yield* restore(waiter.turn)
      vain = isVain()
    }
    const hold = yield* enter(acquisition) ?? Effect.undefined
    if (hold !== undefined) return hold
    // what readers wait for comes to all of them at once
    if ((waiter.isFirst || isShared) && !vain) {
      if (waiter.isFirst) line.clear()
      const claim = claimOf(acquisition, client.nextOwner())
      heard = client.signals.heard(kind.channel(keys, claim.owner))
      line.announced = kind.withdraw !== undefined
      const outcome: Hold | Denial = yield* attempt(
        acquisition,
        claim,
        true,
        restore,
        startedAt,
        Effect.succeed<Hold>,
        Effect.succeed<Denial>
      )
      if (outcome instanceof Hold) {
        line.announced = false
        if (isShared) line.callOthers()
        return outcome
      }
      denial = outcome
    }
    const now = client.now()
    const remaining = waitsUntil - now
    if (remaining <= 0) return yield* timedOut(acquisition, startedAt, denial)
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
    const pause = nextPause === undefined ? fallback(client, denial) : yield* nextPause
    if (pause === undefined) return yield* timedOut(acquisition, startedAt, denial)
    const quiet = line.quietUntil - now
    client.alarms.set(waiter, now + Math.min(quiet > 0 ? quiet : pause, remaining))
    const wake = yield* restore(Queue.take(line.signals))
    client.alarms.cancel(waiter)
    // a signal may be the message of a release that this process has long made use of
    vain = wake === "signal" && isVain()
    if (isShared && !vain && wake === "signal") line.callOthers()
  }
})

/**
 * Takes a place in the queue of a fair lock, and waits there for its turn. However the wait ends without the lock, the
 * place is given back.
 */
const takePlace = (
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
      const hold = yield* enter(acquisition) ?? Effect.undefined
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

/** Waits until the channel is heard, as long as that is worth while. */
const established = (client: LockClient, listening: Listening, waitsUntil: number): Effect.Effect<void> => {
  const patience = Math.min(client.options.fallbackIntervalMillis, Math.max(0, waitsUntil - client.now()))
  return Effect.asVoid(Effect.timeoutOption(listening.established, patience))
}

/** The fallback interval, jittered so that processes do not ask together; never past the end of the holder's lease. */
const fallback = (client: LockClient, denial: Denial | undefined): number => {
  const interval = client.options.fallbackIntervalMillis * (0.8 + 0.4 * Math.random())
  return denial === undefined || denial.remaining < 0 ? interval : Math.min(interval, denial.remaining + 1)
}

const timedOut = (
  acquisition: Acquisition,
  startedAt: number,
  denial: Denial | undefined
): Effect.Effect<never, LockTimeout> =>
  Effect.suspend(() => {
    const { client, kind, name } = acquisition
    client.telemetry.timedOut(kind.name)
    return Effect.fail(
      new LockTimeout({
        name,
        waited: Duration.millis(client.now() - startedAt),
        holder: holderOf(acquisition, denial)
      })
    )
  })

/** The last holder seen: in Redis, or here, where asking Redis was not worth while. */
const holderOf = ({ client, keys }: Acquisition, denial: Denial | undefined): Holder | undefined => {
  if (denial !== undefined) {
    const remaining = denial.remaining < 0 ? undefined : Duration.millis(denial.remaining)
    return { owner: denial.owner, remaining }
  }
  const here = client.heldHere(keys.lock)[0]
  return here && { owner: here.owner, remaining: Duration.millis(Math.max(0, here.deadline - client.now())) }
}
