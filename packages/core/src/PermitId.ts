/**
 * Permits of a `PermitSemaphore` by their ids, for services other than their holder: one that was given the ids, by Java or by this
 * library, or one that cleans up. The holder has a `PermitSemaphore.Permit`, and releases and renews that.
 *
 * @since 0.3.0
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { dual } from "effect/Function"
import * as Option from "effect/Option"
import { mostAtOnce, permitSemaphoreOf } from "./internal/locks/semaphores.ts"
import { invalidIf, parsePeriod, parseWait } from "./internal/options/acquireOptions.ts"
import { shown } from "./internal/report/shown.ts"
import { mayHaveRun, runOrDescribe } from "./internal/store/failures.ts"
import * as operations from "./internal/store/operations/permitSemaphore.ts"
import { type CommandError, type InvalidLockOptions, LockLost } from "./LockError.ts"
import type { SemaphoreOrName, Services } from "./PermitSemaphore.ts"

/** The problem with ids from the caller. */
const checkIds = (ids: ReadonlyArray<unknown>): InvalidLockOptions | undefined => {
  if (!Array.isArray(ids)) return invalidIf("ids", `${shown(ids)} is not an array of ids`)
  if (ids.length > mostAtOnce) return invalidIf("ids", `there are more than ${mostAtOnce}`)
  const bad = ids.findIndex((id) => typeof id !== "string" || !/^[0-9a-f]{32}$/i.test(id))
  return invalidIf("ids", bad === -1 ? undefined : `${shown(ids[bad])} is not an id of 32 hexadecimal digits`)
}

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
} = dual(2, (semaphore: SemaphoreOrName, given: ReadonlyArray<string>) => {
  const impl = permitSemaphoreOf(semaphore)
  const problem = checkIds(given)
  // as Redis has them
  const ids = problem === undefined ? [...new Set(given.map((id) => id.toLowerCase()))] : []
  return impl.use((client, key) => {
    if (ids.length === 0) return Effect.succeed(true)
    const command = operations.tryRelease(key, ids, client.store)
    const released = Effect.map(runOrDescribe(client, impl.kind.title, command), (count) => count === ids.length)
    // one that was refused gives nothing back: sent again, it could take what is in use
    return Effect.onExit(released, (exit) =>
      Effect.sync(() => {
        if (Exit.isSuccess(exit) && !exit.value) client.releases?.withdraw(command)
        else if (Exit.isSuccess(exit) || mayHaveRun(exit.cause)) client.releases?.add(command)
      })
    )
  }, problem)
})

/**
 * Gives back one permit by its id; see {@link tryRelease}. Fails with `LockLost` if it is not held.
 *
 * @category mutations
 * @since 0.3.0
 */
export const release: {
  (id: string): <S extends SemaphoreOrName>(semaphore: S) => Effect.Effect<void, LockLost | CommandError, Services<S>>
  <S extends SemaphoreOrName>(semaphore: S, id: string): Effect.Effect<void, LockLost | CommandError, Services<S>>
} = dual(2, (semaphore: SemaphoreOrName, id: string) =>
  Effect.flatMap(tryRelease(semaphore, [id]), (released) => {
    const { name } = permitSemaphoreOf(semaphore)
    return released
      ? Effect.void
      : Effect.fail(new LockLost({ lock: name, owner: id, reason: "NotOwner", late: Duration.zero, permits: 1 }))
  })
)

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
} = dual(3, (semaphore: SemaphoreOrName, id: string, leaseTime: Duration.Input) => {
  const isEndless = parseWait("leaseTime", leaseTime) === Number.POSITIVE_INFINITY
  const lease = isEndless ? -1 : parsePeriod("leaseTime", leaseTime)
  if (typeof lease !== "number") return Effect.fail(lease)
  return permitSemaphoreOf(semaphore).run((key) => operations.updateLease(key, id.toLowerCase(), lease), checkIds([id]))
})

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
} = dual(2, (semaphore: SemaphoreOrName, id: string) =>
  Effect.map(
    permitSemaphoreOf(semaphore).run((key) => operations.lease(key, id.toLowerCase()), checkIds([id])),
    (left) => (left === -2 ? Option.none() : Option.some(left === -1 ? Duration.infinity : Duration.millis(left)))
  )
)
