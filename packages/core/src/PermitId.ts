/**
 * Permits of a `PermitSemaphore` by their ids, for services other than their holder: one that was given the ids, by Java or by this
 * library, or one that cleans up. The holder has a `PermitSemaphore.Permit`, and releases and renews that.
 *
 * @since 0.3.0
 */
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import { dual } from "effect/Function"
import type * as Option from "effect/Option"
import * as commands from "./internal/locks/PermitSemaphoreImpl.ts"
import type { CommandError, LockLost } from "./LockError.ts"
import type { SemaphoreOrName, Services } from "./PermitSemaphore.ts"

/**
 * Gives back permits by their ids, such as ids from a Java service: all of them, or none if one is not held
 * (unknown, already given back, or expired). Returns whether they were given back.
 *
 * Fails with `LockStoreError` when the request to Redis failed, `InvalidLockName` and `InvalidLockOptions` before any
 * command.
 *
 * @category mutations
 * @since 0.3.0
 */
export const tryRelease: {
  (
    ids: ReadonlyArray<string>
  ): <S extends SemaphoreOrName>(semaphore: S) => Effect.Effect<boolean, CommandError, Services<S>>
  <S extends SemaphoreOrName>(
    semaphore: S,
    ids: ReadonlyArray<string>
  ): Effect.Effect<boolean, CommandError, Services<S>>
} = dual(2, commands.tryRelease)

/**
 * Gives back one permit by its id; see {@link tryRelease}. Fails with `LockLost` if it is not held.
 *
 * @category mutations
 * @since 0.3.0
 */
export const release: {
  (id: string): <S extends SemaphoreOrName>(semaphore: S) => Effect.Effect<void, LockLost | CommandError, Services<S>>
  <S extends SemaphoreOrName>(semaphore: S, id: string): Effect.Effect<void, LockLost | CommandError, Services<S>>
} = dual(2, commands.release)

/**
 * Sets the lease of a permit by its id, from now, longer or shorter; an infinite lease never ends. Returns `false` if the
 * permit is not held. The holder uses `Permit.renew`.
 *
 * Fails with `LockStoreError` when the request to Redis failed, `InvalidLockName` and `InvalidLockOptions` before any
 * command.
 *
 * @category mutations
 * @since 0.3.0
 */
export const updateLeaseTime: {
  (
    id: string,
    leaseTime: Duration.Input
  ): <S extends SemaphoreOrName>(semaphore: S) => Effect.Effect<boolean, CommandError, Services<S>>
  <S extends SemaphoreOrName>(
    semaphore: S,
    id: string,
    leaseTime: Duration.Input
  ): Effect.Effect<boolean, CommandError, Services<S>>
} = dual(3, commands.updateLeaseTime)

/**
 * How long the lease of the permit with this id still runs, infinite if it never ends; `None` if the permit is not held.
 *
 * Fails with `LockStoreError` when the request to Redis failed, `InvalidLockName` and `InvalidLockOptions` before any
 * command.
 *
 * @category getters
 * @since 0.3.0
 */
export const leaseTime: {
  (
    id: string
  ): <S extends SemaphoreOrName>(
    semaphore: S
  ) => Effect.Effect<Option.Option<Duration.Duration>, CommandError, Services<S>>
  <S extends SemaphoreOrName>(
    semaphore: S,
    id: string
  ): Effect.Effect<Option.Option<Duration.Duration>, CommandError, Services<S>>
} = dual(2, commands.leaseTime)
