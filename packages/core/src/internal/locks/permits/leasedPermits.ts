/**
 * Acquires permits for the functions of `PermitSemaphore`.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { AcquireOptions } from "../../../AcquireOptions.ts"
import { InvalidLockOptions } from "../../../LockError.ts"
import { notWaiting } from "../../acquire/acquirePermits.ts"
import type { Family, Prepare } from "../../acquire/sections.ts"
import { identityOf } from "../../hold/owner.ts"
import { refuseMinHold } from "../../options/acquireTimes.ts"
import { isInvalid } from "../../options/invalid.ts"
import { checkPermits } from "../../options/permitCount.ts"
import { ownerText } from "../../report/ownerText.ts"
import { labelled } from "../../report/telemetry/spans.ts"
import {
  acquire,
  ask,
  type PermitHold,
  permitSemaphoreOf,
  type PublicPermitSemaphore,
  type PermitAcquireRequest
} from "./PermitSemaphoreImpl.ts"
import { checkedTimes } from "../checkedTimes.ts"
import { resolve } from "../Synchronizer.ts"

/** The most permits that one command can acquire. */
export const mostAtOnce = 10_000

export const leasedPermits: Family<PermitHold> = {
  acquireSpan: "PermitSemaphore.acquire",
  holdSpan: "PermitSemaphore.hold",
  spanAttributes: ({ ids, lease: { client }, owner }) => ({
    "lock.owner": ownerText(owner),
    "lock.permits": ids.length,
    ...labelled(client)
  }),
  warn: ({ name, owner }, problems) =>
    Effect.annotateLogs(
      Effect.logWarning("The scope of permits has closed, but giving them back went wrong.", problems),
      { semaphore: name, ids: ownerText(owner) }
    )
}

/** A request for permits of a semaphore, or of the semaphore of a name. */
export const preparePermits =
  (
    semaphore: PublicPermitSemaphore<unknown> | string,
    permits: number,
    options: AcquireOptions | undefined
  ): Prepare<PermitHold> =>
  (fiber) => {
    const impl = permitSemaphoreOf(semaphore)
    const at = resolve(impl, fiber)
    if (isInvalid(at)) return at
    const invalid = checkPermits("permits", permits, 1) ?? checkMost(permits)
    if (invalid !== undefined) return invalid
    const times = checkedTimes(at.client, options, undefined)
    if (isInvalid(times)) return times
    const kept = refuseMinHold(times, "a permit")
    if (kept !== undefined) return kept
    const { kind, name } = impl
    const request: PermitAcquireRequest = { ...at, kind, name, identity: identityOf(fiber, undefined), ...times }
    return {
      name,
      label: kind.name,
      acquire: (restore) => acquire(request, permits, restore),
      tryAcquire: (restore) =>
        Effect.map(
          ask({ ...request, waitMillis: 0 }, permits, restore, at.client.now(), notWaiting(at.client)),
          ({ granted }) => Option.fromUndefinedOr(granted)
        )
    }
  }

const checkMost = (permits: number): InvalidLockOptions | undefined =>
  permits > mostAtOnce
    ? new InvalidLockOptions({ option: "permits", problem: `it is more than ${mostAtOnce} at once` })
    : undefined
