/**
 * Acquires permits for the functions of `Semaphore`.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { AcquireOptions } from "../../../AcquireOptions.ts"
import { acquire, notWaiting } from "../../acquire/acquirePermits.ts"
import type { Family, Held, Prepare, Prepared } from "../../acquire/sections.ts"
import { AnonymousPermits, type ReturnedBy, semaphoreKind } from "../../hold/AnonymousPermits.ts"
import { timesOf } from "../../options/acquireTimes.ts"
import { isInvalid } from "../../options/invalid.ts"
import { checkPermits } from "../../options/permitCount.ts"
import { semaphoreChannel } from "../../store/keys.ts"
import type { Restore } from "../../hold/guard.ts"
import type { Asking } from "../../store/operations/counters/permitPlaces.ts"
import { labelled } from "../../report/telemetry/spans.ts"
import { type PublicSemaphore, semaphoreOf } from "./SemaphoreImpl.ts"
import { resolve } from "../Synchronizer.ts"

export const anonymousPermits: Family<Held> = {
  acquireSpan: "Semaphore.acquire",
  holdSpan: "Semaphore.hold",
  spanAttributes: (held) =>
    held instanceof AnonymousPermits
      ? { "lock.owner": held.owner, "lock.permits": held.permits, ...labelled(held.client) }
      : { "lock.permits": 0 },
  warn: (held, problems) =>
    Effect.annotateLogs(Effect.logWarning("Giving permits back went wrong.", problems), {
      semaphore: held.name,
      ...(held instanceof AnonymousPermits ? { permits: held.permits } : undefined)
    })
}

/** A request for permits of a semaphore, given as a value or by its name. `returnedBy` says who will give them back. */
export const prepareAnonymous =
  (
    semaphore: PublicSemaphore<unknown> | string,
    permits: number,
    options: Pick<AcquireOptions, "waitTime"> | undefined,
    returnedBy: ReturnedBy
  ): Prepare<Held> =>
  (fiber) => {
    const impl = semaphoreOf(semaphore)
    const at = resolve(impl, fiber)
    if (isInvalid(at)) return at
    const invalid = checkPermits("permits", permits, 0)
    if (invalid !== undefined) return invalid
    const times = timesOf({ waitTime: options?.waitTime }, undefined)
    if (isInvalid(times)) return times
    const { name, permits: initial } = impl
    if (permits === 0) return nothing(name)
    const { client, keys } = at
    const key = keys.lock
    const ask = (restore: Restore, startedAt: number, asking: Asking) =>
      new AnonymousPermits(client, name, key, permits, returnedBy).ask(restore, startedAt, initial, asking)
    return {
      name,
      label: semaphoreKind.name,
      acquire: (restore) =>
        acquire(
          {
            client,
            kind: semaphoreKind,
            name,
            key,
            channel: semaphoreChannel(key),
            permits,
            waitMillis: times.waitMillis,
            ask
          },
          restore
        ),
      tryAcquire: (restore) =>
        Effect.map(ask(restore, client.now(), notWaiting(client)), ({ granted }) => Option.fromUndefinedOr(granted))
    }
  }

/** Zero permits are always granted, without a command. */
const nothing = (name: string): Prepared<Held> => {
  const held: Held = {
    name,
    checkLost: () => undefined,
    onLost: () => () => {},
    releaseNow: () => Effect.void,
    release: Effect.void
  }
  return {
    name,
    label: semaphoreKind.name,
    acquire: () => Effect.succeed(held),
    tryAcquire: () => Effect.succeedSome(held)
  }
}
