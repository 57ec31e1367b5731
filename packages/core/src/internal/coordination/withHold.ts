/**
 * Sections under one lock whose body is given the hold, so that it can write a record as the holder.
 */
import * as Effect from "effect/Effect"
import type * as Option from "effect/Option"
import type { AcquireError, LockLost, LockStoreError } from "../../LockError.ts"
import { section, trySection } from "../acquire/sections.ts"
import type { Hold } from "../hold/Hold.ts"
import { CurrentOwner } from "../hold/owner.ts"
import { locks, prepareLock } from "../locks/heldLocks.ts"
import type { LockImpl } from "../locks/LockImpl.ts"
import type { Invalid } from "../options/invalid.ts"

/** Runs `f` with the hold of the innermost section around the running code. */
const underHold = <A, E, R>(f: (hold: Hold) => Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.flatMap(CurrentOwner, ({ sections }) => f(sections!.hold as Hold))

/** Waits for the lock. */
export const withHold = <E, A, E2, R>(
  lock: LockImpl<unknown, E>,
  f: (hold: Hold) => Effect.Effect<A, E2, R>
): Effect.Effect<A, AcquireError | LockLost | E | E2, R> => section(locks, prepareLock(lock, undefined), underHold(f))

/** `None` if another owner holds the lock. */
export const withHoldIfAvailable = <E, A, E2, R>(
  lock: LockImpl<unknown, E>,
  f: (hold: Hold) => Effect.Effect<A, E2, R>
): Effect.Effect<Option.Option<A>, LockStoreError | Invalid | LockLost | E | E2, R> =>
  trySection(locks, prepareLock(lock, undefined), underHold(f))
