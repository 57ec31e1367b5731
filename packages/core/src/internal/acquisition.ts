/**
 * The way to a lock, the same for every kind: re-enter what is held already; else try; else join the line of this process,
 * and as its first subscribe, try again, and wait for a signal or the fallback interval.
 *
 * Everything here runs uninterruptibly but for what is wrapped in `restore`: the round trip of an attempt, which is undone
 * when it is interrupted, and the waits.
 */
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import * as Scope from "effect/Scope"
import { type Holder, LockStoreError, LockTimeout, type StoreReason } from "../LockError.ts"
import { Hold } from "./Hold.ts"
import type { LockKeys } from "./keys.ts"
import type { Line, Waiter } from "./Line.ts"
import type { LockClient } from "./LockClient.ts"
import type { Answer, LockKind } from "./LockKind.ts"
import type { Identity } from "./owner.ts"
import { Possession } from "./Possession.ts"
import { release, undo } from "./release.ts"

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
): Effect.Effect<Hold, LockTimeout | LockStoreError> => {
  const { client, identity, keys } = acquisition
  const mine = client.find(keys.lock, identity)
  if (mine !== undefined) {
    return Effect.flatMap(reenter(acquisition, mine), (hold) =>
      hold === undefined ? acquire(acquisition, restore) : Effect.succeed(hold)
    )
  }
  const startedAt = client.now()
  // Where others of this process wait or hold, asking Redis would be pushing in, or pointless.
  if (acquisition.waitMillis > 0 && (client.lines.get(keys.lock) !== undefined || client.isHeldHere(keys.lock))) {
    return wait(acquisition, restore, startedAt, undefined, undefined)
  }
  const heard = client.signals.heard(keys.channel)
  return attempt(acquisition, restore, startedAt, Effect.succeed, (denial) =>
    acquisition.waitMillis > 0
      ? wait(acquisition, restore, startedAt, denial, heard)
      : timedOut(acquisition, startedAt, denial)
  )
}

/** Asks once, whoever waits. */
export const tryAcquire = (
  acquisition: Acquisition,
  restore: Restore
): Effect.Effect<Option.Option<Hold>, LockStoreError> => {
  const { client, identity, keys } = acquisition
  const mine = client.find(keys.lock, identity)
  if (mine !== undefined) {
    return Effect.flatMap(reenter(acquisition, mine), (hold) =>
      hold === undefined ? tryAcquire(acquisition, restore) : Effect.succeedSome(hold)
    )
  }
  return attempt(acquisition, restore, client.now(), Effect.succeedSome, () => Effect.succeedNone)
}

const leaseOf = (acquisition: Acquisition): number =>
  acquisition.leaseMillis ?? acquisition.client.options.watchdogLeaseMillis

/**
 * One round trip, sent as soon as the effect runs. Interrupted or failed with unknown outcome, it is undone before anything
 * else happens.
 */
const attempt = <A, B, E>(
  acquisition: Acquisition,
  restore: Restore,
  startedAt: number,
  onGranted: (hold: Hold) => Effect.Effect<A>,
  onDenied: (denial: Denial) => Effect.Effect<B, E>
): Effect.Effect<A | B, E | LockStoreError> => {
  const { client, keys, kind, name } = acquisition
  const owner = client.nextOwner()
  const lease = leaseOf(acquisition)
  const request = kind.acquire(keys, owner, lease)
  const sentAt = client.now()
  return Effect.matchCauseEffect(restore(client.store.run(request.operation, request.keys, request.args)), {
    onSuccess: (reply): Effect.Effect<A | B, E | LockStoreError> => {
      const answer = kind.answer(reply)
      if (!answer.granted) return onDenied(answer)
      const now = client.now()
      const deadline = client.deadlineOf(sentAt, lease)
      if (now >= deadline) {
        return Effect.andThen(
          undo(client, kind, keys, owner, name, sentAt + lease),
          Effect.fail(grantedTooLate(name, request.operation, now - sentAt, lease))
        )
      }
      const possession = new Possession(acquisition, owner, answer.token, now, deadline)
      const renewed = acquisition.leaseMillis === undefined
      if (renewed) possession.renewedHolds = 1
      const hold = (possession.outermost = new Hold(possession, renewed))
      client.remember(possession)
      client.telemetry.acquired(possession, now - startedAt)
      return onGranted(hold)
    },
    onFailure: (cause) =>
      mayHaveRun(cause)
        ? Effect.andThen(undo(client, kind, keys, owner, name, sentAt + lease), Effect.failCause(cause))
        : Effect.failCause(cause)
  })
}

const grantedTooLate = (name: string, operation: string, tookMillis: number, lease: number): LockStoreError =>
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
  !cause.reasons.every((reason) => reason._tag === "Fail" && notRun.has(reason.error.reason))

/** Enters what this owner holds already; nothing when it turns out to be lost. */
const reenter = (acquisition: Acquisition, possession: Possession): Effect.Effect<Hold | undefined, LockStoreError> =>
  Effect.suspend(() => {
    const { client, keys, kind } = acquisition
    const lease = leaseOf(acquisition)
    const hold = new Hold(possession, acquisition.leaseMillis === undefined)
    const request = kind.hold(keys, possession.owner, ++possession.holds, lease)
    if (hold.renewed) possession.renewedHolds++
    const sentAt = client.now()
    return Effect.matchCauseEffect(client.store.run(request.operation, request.keys, request.args), {
      onSuccess: (reply) => {
        if (reply !== 1) possession.lose("NotOwner", client.now())
        if (possession.lost !== undefined) return Effect.as(Effect.ignore(release(hold)), undefined)
        possession.extend(sentAt, lease)
        client.watchdog.watch(possession)
        return Effect.succeed(hold)
      },
      onFailure: (cause) => Effect.andThen(Effect.ignore(release(hold)), Effect.failCause(cause))
    })
  })

/** Waits in the line of this process; `heard` tells how many signals had been heard before the attempt that was denied. */
const wait = (
  acquisition: Acquisition,
  restore: Restore,
  startedAt: number,
  denial: Denial | undefined,
  heard: number | undefined
): Effect.Effect<Hold, LockTimeout | LockStoreError> => {
  const { client, identity, keys } = acquisition
  return Effect.flatMap(client.lines.join(keys.lock, identity), ([line, waiter]) =>
    Effect.ensuring(
      waitInLine(acquisition, restore, startedAt, denial, heard, line, waiter),
      Effect.suspend(() => {
        client.alarms.cancel(waiter)
        return client.lines.leave(keys.lock, line, waiter)
      })
    )
  )
}

const waitInLine = Effect.fnUntraced(function* (
  acquisition: Acquisition,
  restore: Restore,
  startedAt: number,
  denial: Denial | undefined,
  heard: number | undefined,
  line: Line,
  waiter: Waiter
): Effect.fn.Return<Hold, LockTimeout | LockStoreError> {
  const { client, identity, keys } = acquisition
  const waitsUntil = startedAt + acquisition.waitMillis
  // Not worth asking while this process holds the lock, nor proper while it leaves it to others.
  const isVain = () => client.isHeldHere(keys.lock) || client.now() < line.quietUntil
  let vain = denial === undefined ? isVain() : waiter.isFirst

  while (true) {
    if (!waiter.isFirst) {
      if (waitsUntil < Number.POSITIVE_INFINITY) client.alarms.set(waiter, waitsUntil)
      yield* restore(waiter.turn)
      vain = isVain()
    }
    const mine = client.find(keys.lock, identity)
    if (mine !== undefined) {
      const hold = yield* reenter(acquisition, mine)
      if (hold !== undefined) return hold
    }
    if (waiter.isFirst && !vain) {
      line.clear()
      heard = client.signals.heard(keys.channel)
      const outcome: Hold | Denial = yield* attempt(
        acquisition,
        restore,
        startedAt,
        Effect.succeed<Hold>,
        Effect.succeed<Denial>
      )
      if (outcome instanceof Hold) return outcome
      denial = outcome
    }
    const now = client.now()
    const remaining = waitsUntil - now
    if (remaining <= 0) return yield* timedOut(acquisition, startedAt, denial)
    if (!waiter.isFirst) continue
    // Signals of this process need no subscription.
    if (!line.subscribed && !client.isHeldHere(keys.lock)) {
      const established = yield* subscribe(acquisition, line, waitsUntil)
      if (heard === undefined || heard !== client.signals.heard(keys.channel)) {
        // the release may have been announced before this line could hear it
        yield* restore(established)
        vain = false
        continue
      }
    }
    const quiet = line.quietUntil - now
    client.alarms.set(waiter, now + Math.min(quiet > 0 ? quiet : fallback(client, denial), remaining))
    const wake = yield* restore(Queue.take(line.signals))
    client.alarms.cancel(waiter)
    // a signal may be the message of a release that this process has long made use of
    vain = wake === "signal" && isVain()
  }
})

/** Has the line hear the lock's channel; the inner effect waits until it does, as long as that is worth while. */
const subscribe = ({ client, keys }: Acquisition, line: Line, waitsUntil: number): Effect.Effect<Effect.Effect<void>> =>
  Effect.map(Scope.provide(client.signals.subscribe(keys.channel, line.signals), line.scope), (established) => {
    line.subscribed = true
    const patience = Math.min(client.options.fallbackIntervalMillis, Math.max(0, waitsUntil - client.now()))
    return Effect.asVoid(Effect.timeoutOption(established, patience))
  })

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
