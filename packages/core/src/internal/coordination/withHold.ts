/**
 * Sections under one lock whose body is given the hold, so that it can write a record as the holder.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { AcquireError, LockLost, LockStoreError } from "../../LockError.ts"
import { type Prepare, section, trySection } from "../acquire/sections.ts"
import type { Hold } from "../hold/Hold.ts"
import { locks } from "../locks/heldLocks.ts"
import type { LockImpl } from "../locks/LockImpl.ts"
import { type Invalid, isInvalid } from "../options/invalid.ts"

/** A request that reports its hold before the section begins. */
const telling =
  <E>(lock: LockImpl<unknown, E>, tell: (hold: Hold) => void): Prepare<Hold, E> =>
  (fiber, scope) => {
    const prepared = lock.prepare(fiber, scope, undefined)
    if (isInvalid(prepared)) return prepared
    return {
      name: prepared.name,
      label: prepared.label,
      acquire: (restore) => Effect.tap(prepared.acquire(restore), (hold) => Effect.sync(() => tell(hold))),
      tryAcquire: (restore) =>
        Effect.tap(prepared.tryAcquire(restore), (hold) =>
          Effect.sync(() => {
            if (Option.isSome(hold)) tell(hold.value)
          })
        )
    }
  }

/** Waits for the lock. */
export const withHold = <E, A, E2, R>(
  lock: LockImpl<unknown, E>,
  f: (hold: Hold) => Effect.Effect<A, E2, R>
): Effect.Effect<A, AcquireError | LockLost | E | E2, R> =>
  Effect.suspend(() => {
    let held: Hold
    return section(
      locks,
      telling(lock, (hold) => (held = hold)),
      Effect.suspend(() => f(held))
    )
  })

/** `None` if another owner holds the lock. */
export const withHoldIfAvailable = <E, A, E2, R>(
  lock: LockImpl<unknown, E>,
  f: (hold: Hold) => Effect.Effect<A, E2, R>
): Effect.Effect<Option.Option<A>, LockStoreError | Invalid | LockLost | E | E2, R> =>
  Effect.suspend(() => {
    let held: Hold
    return trySection(
      locks,
      telling(lock, (hold) => (held = hold)),
      Effect.suspend(() => f(held))
    )
  })
