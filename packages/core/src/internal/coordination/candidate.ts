/**
 * The candidates of an election: each competes for its lock on its own, and once it leads, its work may re-enter that lock.
 *
 * It looks behind the public modules, since to users an owner that may re-enter a lock is always one that does.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Holding } from "../../Holding.ts"
import * as Lock from "../../Lock.ts"
import type { LockLost, LockStoreError } from "../../LockError.ts"
import * as Sections from "../acquire/sections.ts"
import type { Family, Prepare, Prepared } from "../acquire/sections.ts"
import { type Hold, type InternalHolding } from "../hold/Hold.ts"
import { CurrentOwner, Identity, Owner, sectionsInside } from "../hold/Lease.ts"
import { rollbackHold } from "../hold/rollback.ts"
import { locks, prepareLock } from "../locks/LockImpl.ts"
import { type Invalid, isInvalid } from "../options/acquireOptions.ts"
import { holdingOf } from "./record.ts"

/** An election has spans and log lines of its own; in metrics its lock counts as what it is. */
const candidates: Family<InternalHolding> = {
  ...locks,
  acquireSpan: "LeaderElection.campaign",
  holdSpan: "LeaderElection.lead",
  warn: ({ name, owner }, problems) =>
    Effect.annotateLogs(Effect.logWarning("A leader's scope has closed, but resigning failed.", problems), {
      election: name,
      owner
    })
}

const prepareCandidate =
  (lock: Lock.Lock<unknown>): Prepare<Hold> =>
  (fiber, scope) => {
    const request = prepareLock(lock, { maxHold: Number.POSITIVE_INFINITY })(fiber, scope) as Prepared<Hold> | Invalid
    return isInvalid(request) ? request : Object.defineProperty(request, "label", { value: "election" })
  }

/**
 * Acquires as a candidate of its own: it re-enters nothing, not even what the same fiber or scope holds. Once it holds the lock,
 * that fiber and that scope may re-enter.
 */
export const scopedAsCandidate = <R>(
  lock: Lock.Lock<R>
): Effect.Effect<Holding, LockStoreError | Invalid, R | Scope.Scope> =>
  Effect.withFiber((fiber) =>
    Effect.map(
      Effect.zip(Effect.scope, Lock.withOwner(Sections.scoped(candidates, prepareCandidate(lock)))),
      ([scope, hold]) => {
        hold.by = new Identity(fiber, scope)
        return hold
      }
    )
  ) as Effect.Effect<Holding, LockStoreError | Invalid, R | Scope.Scope>

/** Gives up what {@link scopedAsCandidate} has acquired. As for any acquisition that fails, the caller waits for that only briefly. */
export const giveUpCandidacy = (holding: Holding): Effect.Effect<void> => rollbackHold(holding as Hold)

/** {@link scopedAsCandidate} for a section, which may re-enter the lock, and what the code around it may re-enter. */
export const withCandidate = <A, E, R, R2>(
  lock: Lock.Lock<R>,
  body: (holding: Holding) => Effect.Effect<A, E, R2>
): Effect.Effect<A, E | LockLost | LockStoreError | Invalid, R | R2> =>
  Effect.flatMap(CurrentOwner, ({ explicit, sections }) => {
    const section = Effect.flatMap(holdingOf(lock), (holding) =>
      Effect.provideService(
        body(holding),
        CurrentOwner,
        new Owner(explicit, sectionsInside([holding as Hold], sections))
      )
    )
    return Lock.withOwner(Sections.section(candidates, prepareCandidate(lock), section)) as Effect.Effect<
      A,
      E | LockLost | LockStoreError | Invalid,
      R | R2
    >
  })
