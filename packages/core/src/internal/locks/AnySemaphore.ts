/**
 * What both kinds of semaphore have in common: they are values, of which permits are acquired.
 */
import * as Effect from "effect/Effect"
import type { Fiber } from "effect/Fiber"
import type { AcquireOptions } from "../../AcquireOptions.ts"
import type { LockStoreError } from "../../LockError.ts"
import { acquire, type PermitHold, tryAcquire } from "../acquire/acquirePermits.ts"
import type { Family, Prepared } from "../acquire/sections.ts"
import type { LockClient } from "../client/LockClient.ts"
import type { Service } from "../client/RedisLock.ts"
import type { InternalHolding } from "../hold/Hold.ts"
import { identityOf } from "../hold/Lease.ts"
import type { PermitProtocol } from "../kinds/kinds.ts"
import { checkPermits, type Invalid, isInvalid, refuseMinHold } from "../options/acquireOptions.ts"
import { ownerText } from "../report/shown.ts"
import { labelled } from "../report/spans.ts"
import type { StoreCommand } from "../store/operations/StoreOperation.ts"
import { checkedTimes } from "./LockImpl.ts"
import { type Resolved, Synchronizer } from "./Synchronizer.ts"

export abstract class AnySemaphore extends Synchronizer {
  readonly kind: PermitProtocol

  constructor(name: string, kind: PermitProtocol, service: Service | undefined, invalid?: Invalid) {
    const { initial } = kind
    super(name, service, invalid ?? (initial === undefined ? undefined : checkPermits("permits", initial, 1)))
    this.kind = kind
  }

  get title(): string {
    return this.kind.title
  }

  /** {@link run} for a command that carries a number of permits, at least this many. */
  runWith<A>(
    permits: number,
    least: number,
    command: (key: string, store: LockClient["store"]) => StoreCommand<A>
  ): Effect.Effect<A, LockStoreError | Invalid> {
    const invalid = checkPermits("permits", permits, least)
    return invalid === undefined ? this.run(command) : Effect.fail(this.invalid ?? invalid)
  }

  /** A fiber's request for permits; of anonymous ones, the lease is the life of their marker. */
  request(
    { client, keys }: Resolved,
    fiber: Fiber<unknown, unknown>,
    permits: number,
    options: AcquireOptions | undefined,
    marked?: { readonly isHeld: boolean; readonly leaseMillis: number }
  ): Prepared<PermitHold> | Invalid {
    const times = checkedTimes(client, options, undefined)
    if (isInvalid(times)) return times
    const kept = refuseMinHold(times, "a permit")
    if (kept !== undefined) return kept
    const { kind, name } = this
    const identity = identityOf(fiber, undefined)
    const request = { ...times, isHeld: true, ...marked, client, keys, kind, name, permits, identity }
    return {
      name,
      label: kind.name,
      acquire: (restore) => acquire(request, restore),
      tryAcquire: (restore) => tryAcquire({ ...request, waitMillis: 0 }, restore)
    }
  }
}

/** How permits are held, of a semaphore with this title. */
export const permitsOf = <H extends InternalHolding>(title: string): Family<H> => ({
  acquireSpan: `${title}.acquire`,
  holdSpan: `${title}.hold`,
  spanAttributes: ({ holds: [hold], owner }) =>
    hold === undefined
      ? { "lock.permits": 0 }
      : {
          "lock.owner": ownerText(owner),
          "lock.permits": (hold as PermitHold).permits,
          ...labelled(hold.lease.client)
        },
  warn: ({ name, owner }, problems) =>
    Effect.annotateLogs(
      Effect.logWarning("The scope of permits has closed, but giving them back went wrong.", problems),
      { semaphore: name, owner: ownerText(owner) }
    )
})
