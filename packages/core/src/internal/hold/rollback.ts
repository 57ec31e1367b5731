/**
 * Takes back what a request may have created: an acquisition with unknown outcome, a place in a queue.
 */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import type { LockStoreError } from "../../LockError.ts"
import type { LockClient } from "../client/LockClient.ts"
import { type OwnerRef, ownerRefOf, takesPlaces } from "../kinds/kinds.ts"
import { longestPauseMillis, retryRelease } from "../store/failures.ts"
import * as semaphore from "../store/operations/semaphore.ts"
import type { Hold } from "./Hold.ts"
import { releaseUntilConfirmed, releasing } from "./release.ts"

/** How long a caller waits for its rollbacks, which continue in the background. What it ends with then need not be late for 200 ms. */
const rollbackWaitMillis = 150

/**
 * Waits for a rollback, unless an earlier one is overdue: then a store does not answer, and to wait for each would add up. Where one answers
 * late, rollbacks that follow one another share the time: what was waited before counts until as much time has passed.
 */
const awaitRollback = (clients: ReadonlyArray<LockClient>, rolledBack: Effect.Effect<unknown>): Effect.Effect<void> =>
  Effect.suspend(() => {
    if (clients.some(({ overdueRollbacks }) => overdueRollbacks > 0)) return Effect.void
    const { now } = clients[0]!
    const beganAt = now()
    const before = Math.max(0, ...clients.map(({ awaited: { at, millis } }) => millis - (beganAt - at)))
    if (before >= rollbackWaitMillis) return Effect.void
    return Effect.map(Effect.timeoutOption(rolledBack, rollbackWaitMillis - before), (inTime) => {
      const at = now()
      // more only if this process stood still meanwhile
      const awaited = { at, millis: Math.min(before + at - beganAt, rollbackWaitMillis) }
      for (const client of clients) client.awaited = awaited
      if (Option.isSome(inTime)) return
      for (const client of clients) {
        client.overdueRollbacks++
        client.fork(
          Effect.andThen(
            rolledBack,
            Effect.sync(() => void client.overdueRollbacks--)
          )
        )
      }
    })
  })

/**
 * Takes back an acquisition that was granted a lease, before now. Owners are used once, so a release of this owner affects nobody
 * else; it is repeated until confirmed. With an empty `tell` nobody is notified.
 */
export const rollback = (ownerRef: OwnerRef, leaseMillis: number, tell?: ""): Effect.Effect<void> =>
  inBackground(
    ownerRef.client,
    releaseUntilConfirmed(ownerRef, { overAt: ownerRef.client.now() + leaseMillis }, { tell })
  )

/** Gives up a place in the queue of a fair lock, after `after`; calls `onFailure` if the store cannot be reached. */
export const giveBackTurn = (
  ownerRef: OwnerRef,
  after: Effect.Effect<void>,
  onFailure: () => void
): Effect.Effect<void> =>
  inBackground(
    ownerRef.client,
    Effect.andThen(after, Effect.matchCause(releasing(ownerRef), { onSuccess: () => {}, onFailure }))
  )

/** The shortest time for which Redis keeps a place after its last request. */
const placeLifeMillis = 60_000

/** Repeats in the background what gives up a place, for as long as Redis may keep the place. */
const repeatLeaving = (client: LockClient, leave: Effect.Effect<number, LockStoreError>): void => {
  client.fork(Effect.ignore(retryRelease(client, leave, { overAt: client.now() + placeLifeMillis })))
}

/** Gives up a place; undefined if that has failed, and is repeated. */
const leaving = (client: LockClient, leave: Effect.Effect<number, LockStoreError>): Effect.Effect<number | undefined> =>
  Effect.catchCause(leave, () => Effect.sync(() => void repeatLeaving(client, leave)))

/** Gives up the place of an owner, or the lock if it has already been handed over to that owner: from now on, and the result waits for that. */
export const giveBackPlace = (ownerRef: OwnerRef): Effect.Effect<void> =>
  inBackground(ownerRef.client, leaving(ownerRef.client, releasing(ownerRef)))

/**
 * The same with the place of this client among those that wait for permits. If the outcome of its last request is unknown, that may take a place
 * until it can no longer take effect. Fibers that have begun to wait meanwhile keep the place, and give it up when they leave.
 */
export const leavePlace = (client: LockClient, key: string, isUnsure: boolean): Effect.Effect<void> => {
  const { clientId, lines, run, store } = client
  if (!store.handsOver) return Effect.void
  const left = leaving(
    client,
    Effect.suspend(() => {
      const line = lines.get(key, "permit")
      if (line === undefined) {
        // of a fiber that has joined since, as its first request was denied, the place may be gone
        const changed = Effect.sync(() => lines.get(key, "permit")?.changed())
        return Effect.tap(run(semaphore.leave(key, clientId, store)), changed)
      }
      line.mayHavePlace++
      return Effect.succeed(0)
    })
  )
  // what it gives up first may be the place that an earlier request has taken
  return isUnsure ? rollbackUntilSettled(client, () => left, true) : inBackground(client, left)
}

/** How a rollback of an unknown outcome goes about. */
interface RollbackTerms {
  /** Whether the missing permission has been reported already. */
  readonly isForbidden?: boolean
  /** Whether the caller asks again by itself. */
  readonly asksAgain?: boolean
  /** Reports the reply, each time that there is one. */
  readonly onReply?: ((reply: number) => Effect.Effect<void>) | undefined
}

/**
 * Takes back an acquisition whose outcome is unknown. On a quorum, a caller that asks again tells nobody: it would hear the message
 * itself, ask at once, and win the same minority again, without a pause for as long as the majority is away.
 */
export const rollbackUnknown = (
  ownerRef: OwnerRef,
  leaseMillis: number,
  { asksAgain = false, isForbidden = false, onReply = () => Effect.void }: RollbackTerms = {}
): Effect.Effect<void> =>
  Effect.suspend(() => {
    const { client } = ownerRef
    // also a short lease lasts for as long as the command may take effect
    const overAt = client.now() + client.store.commandLifeMillis + Math.max(leaseMillis, longestPauseMillis)
    const tell = asksAgain && client.isQuorum ? "" : undefined
    const hasPlace = takesPlaces(ownerRef)
    const giveBack = (isReported = isForbidden) =>
      Effect.tap(releaseUntilConfirmed(ownerRef, { overAt }, { isReported, tell }), (reply) => {
        if (reply !== undefined) return onReply(reply)
        if (hasPlace && !isForbidden) repeatLeaving(client, releasing(ownerRef))
        return Effect.void
      })
    // a fair lock is handed over as well, and its owner may have sent several requests
    return rollbackUntilSettled(client, giveBack, hasPlace || ownerRef.kind.queued)
  })

/**
 * Takes back what a command with unknown outcome may have taken. The rollback may overtake the command, over another
 * connection or at a server that had stopped: if it finds nothing, it is repeated in the background once the command can no
 * longer take effect; and also if what it has taken back may be something else (`mayBeOther`): a lock that was handed over to this owner before
 * the command has come, or the place of an earlier request. It is told whether its failure has been reported already.
 */
const rollbackUntilSettled = (
  client: LockClient,
  giveBack: (isReported?: boolean) => Effect.Effect<number | undefined>,
  mayBeOther = false
): Effect.Effect<void> => {
  const lastEffectAt = client.now() + client.store.commandLifeMillis
  const first = client.background(giveBack())
  client.fork(
    Effect.gen(function* () {
      const reply = yield* Fiber.join(first)
      // a command takes effect once; in a quorum, some members may not have been reached
      if (!client.isQuorum && !mayBeOther && reply !== undefined && reply >= 1) return
      // it was repeated for as long as it can be of use, or still is
      if (reply === undefined && client.now() >= lastEffectAt) return
      // even if the reply came later than that: the release may have been run before
      yield* Effect.sleep(Math.max(0, lastEffectAt - client.now()) + 1)
      yield* giveBack(reply === undefined)
    })
  )
  return awaitRollback([client], Fiber.await(first))
}

/**
 * An earlier request of the same owner, whose outcome is unknown, may take effect until `until`: if the lock is released before,
 * that request could acquire it again, or queue its owner again, with nobody to release it. So it is released once more then.
 */
export const releaseAgainAfter = ({ lease }: Hold, until: number, leaseMillis: number): void => {
  const { client } = lease
  const left = until - client.now()
  if (left < 0) return
  // what the first release has kept taken, it leaves alone
  const ownerRef = ownerRefOf(lease, lease.owner)
  client.fork(
    Effect.andThen(
      Effect.sleep(left + 1),
      Effect.suspend(() =>
        lease.isHeld() ? Effect.void : releaseUntilConfirmed(ownerRef, { overAt: until + leaseMillis })
      )
    )
  )
}

/** Takes back a hold that nobody has been given: a re-entry that has failed, or an unannounced election. */
export const rollbackHold = (hold: Hold): Effect.Effect<void> =>
  Effect.suspend(() => inBackground(hold.lease.client, Effect.ignore(hold.releaseNow())))

/** Begins at once; the result waits for it as for a rollback. */
const inBackground = (client: LockClient, effect: Effect.Effect<unknown>): Effect.Effect<void> =>
  awaitRollback([client], Fiber.await(client.background(effect)))

/** Releases what a `MultiLock` of these clients has acquired before it failed, or gives it back for a while. */
export const giveBackMembers = (
  clients: ReadonlyArray<LockClient>,
  released: Effect.Effect<void>
): Effect.Effect<void> =>
  // detached: it may release at other clients as well, after one of them has closed
  Effect.flatMap(Effect.forkDetach(released, { startImmediately: true }), (fiber) =>
    awaitRollback(clients, Fiber.await(fiber))
  )
