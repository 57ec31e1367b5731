/**
 * How the functions of `PermitSemaphore` come by permits: for a section, or for a scope.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { Fiber } from "effect/Fiber"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import { type AcquireError, InvalidLockOptions, type LockStoreError, type LockTimeout } from "../../LockError.ts"
import type { AcquireOptions } from "../../AcquireOptions.ts"
import type { Permit, PermitSemaphore } from "../../PermitSemaphore.ts"
import { isClosed, type Restore } from "../hold/guard.ts"
import { identityOf } from "../hold/owner.ts"
import { release } from "../hold/release.ts"
import { parsePeriod, parseWait } from "../options/durations.ts"
import { checkPermits } from "../options/permitCount.ts"
import { ownerText } from "../report/ownerText.ts"
import { traced } from "../report/telemetry.ts"
import { checkLeaseOf } from "./LockImpl.ts"
import { acquire, ask, type PermitHold, type PermitSemaphoreImpl, permitSemaphoreOf } from "./PermitSemaphoreImpl.ts"
import { type Invalid, keysOf } from "./Synchronizer.ts"
import type { AcquireRequest } from "../acquire/AcquireRequest.ts"

type SemaphoreOrName = PermitSemaphore<unknown> | string

/** What can be asked for in one command. */
export const mostAtOnce = 10_000

/** A validated acquire request, or why there is none. */
const acquisitionOf = (
  impl: PermitSemaphoreImpl<unknown>,
  fiber: Fiber<unknown, unknown>,
  permits: number,
  options: AcquireOptions | undefined
): AcquireRequest | Invalid => {
  const client = impl.clientOf(fiber)
  if ("_tag" in client) return client
  const invalid =
    checkPermits("permits", permits, 1) ??
    (permits > mostAtOnce
      ? new InvalidLockOptions({ option: "permits", problem: `it is more than ${mostAtOnce} at once` })
      : undefined)
  if (invalid !== undefined) return invalid
  const waitMillis =
    options?.waitTime === undefined ? Number.POSITIVE_INFINITY : parseWait("waitTime", options.waitTime)
  if (typeof waitMillis !== "number") return waitMillis
  const leaseMillis = options?.leaseTime === undefined ? undefined : parsePeriod("leaseTime", options.leaseTime)
  if (leaseMillis !== undefined && typeof leaseMillis !== "number") return leaseMillis
  const shortLease = checkLeaseOf(client, leaseMillis)
  if (shortLease !== undefined) return shortLease
  const keys = keysOf(impl, client)
  if ("_tag" in keys) return keys
  return {
    client,
    kind: impl.kind,
    name: impl.name,
    keys,
    identity: identityOf(fiber, undefined),
    waitMillis,
    leaseMillis
  }
}

/** Acquires permits and goes on with `f`. */
export const acquireWith = <A, E, R>(
  semaphore: SemaphoreOrName,
  permits: number,
  options: AcquireOptions | undefined,
  f: (hold: PermitHold, restore: Restore) => Effect.Effect<A, E, R>
): Effect.Effect<A, E | AcquireError, R> =>
  Effect.withFiber<A, E | AcquireError, R>((fiber) => {
    const acquisition = acquisitionOf(permitSemaphoreOf(semaphore), fiber, permits, options)
    if ("_tag" in acquisition) return Effect.fail(acquisition)
    return Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(
        traced(
          fiber,
          "PermitSemaphore.acquire",
          { name: acquisition.name, label: acquisition.kind.name },
          acquire(acquisition, permits, restore)
        ),
        (hold): Effect.Effect<A, E | LockTimeout | LockStoreError, R> => f(hold, restore)
      )
    )
  }) as Effect.Effect<A, E | AcquireError, R>

/** Asks once, and goes on with `f` if the permits were free. */
export const tryWith = <A, E, R>(
  semaphore: SemaphoreOrName,
  permits: number,
  options: Pick<AcquireOptions, "leaseTime"> | undefined,
  f: (hold: PermitHold, restore: Restore) => Effect.Effect<A, E, R>
): Effect.Effect<Option.Option<A>, E | LockStoreError | Invalid, R> =>
  Effect.withFiber<Option.Option<A>, E | LockStoreError | Invalid, R>((fiber) => {
    const asking = { leaseTime: options?.leaseTime, waitTime: 0 }
    const acquisition = acquisitionOf(permitSemaphoreOf(semaphore), fiber, permits, asking)
    if ("_tag" in acquisition) return Effect.fail(acquisition)
    return Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(
        ask(acquisition, permits, restore, acquisition.client.now()),
        ({ granted }): Effect.Effect<Option.Option<A>, E | LockStoreError, R> =>
          granted === undefined ? Effect.succeedNone : Effect.asSome(f(granted, restore))
      )
    )
  }) as Effect.Effect<Option.Option<A>, E | LockStoreError | Invalid, R>

/** Keeps permits until the scope closes. */
export const keep = (hold: PermitHold): Effect.Effect<Permit, never, Scope.Scope> =>
  Effect.withFiber((fiber) =>
    Effect.as(
      Scope.addFinalizer(
        Context.getUnsafe(fiber.context as Context.Context<Scope.Scope>, Scope.Scope),
        Effect.catchCause(release(hold), (problems) =>
          isClosed(problems)
            ? Effect.void
            : Effect.annotateLogs(
                Effect.logWarning("The scope of permits has closed, but giving them back went wrong.", problems),
                { semaphore: hold.name, ids: ownerText(hold.owner) }
              )
        )
      ),
      hold
    )
  )
