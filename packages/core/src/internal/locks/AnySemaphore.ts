/**
 * What both kinds of semaphore have in common: they are values, of which permits are acquired.
 */
import * as Effect from "effect/Effect"
import type { Fiber } from "effect/Fiber"
import type { AcquireError, LockStoreError } from "../../LockError.ts"
import { acquire, type PermitHold, type PermitRequest, tryAcquire } from "../acquire/acquirePermits.ts"
import type { Restore } from "../acquire/ask.ts"
import type { Family } from "../acquire/sections.ts"
import type { LockClient, Resolved } from "../client/LockClient.ts"
import type { Service } from "../client/RedisLock.ts"
import type { InternalHolding } from "../hold/Hold.ts"
import { Identity } from "../hold/Lease.ts"
import type { PermitProtocol } from "../kinds/kinds.ts"
import { checkPermits, type Invalid, type Times } from "../options/acquireOptions.ts"
import { ownerText } from "../report/shown.ts"
import { labelled } from "../report/spans.ts"
import type { StoreCommand } from "../store/operations/StoreOperation.ts"
import { PreparedLockAcquire } from "./LockImpl.ts"
import { Synchronizer } from "./Synchronizer.ts"

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
}

/** A request for permits; of anonymous ones, the lease is the life of their marker. */
export class PreparedPermits extends PreparedLockAcquire<never> implements PermitRequest {
  declare readonly kind: PermitProtocol
  readonly permits: number
  readonly isHeld: boolean

  constructor(
    semaphore: AnySemaphore,
    { client, keys }: Resolved,
    fiber: Fiber<unknown, unknown>,
    times: Times,
    { isHeld, permits }: Pick<PermitRequest, "isHeld" | "permits">
  ) {
    super(semaphore, client, keys, new Identity(fiber, undefined), times)
    this.permits = permits
    this.isHeld = isHeld
  }

  override acquire(restore: Restore): Effect.Effect<PermitHold, AcquireError> {
    return acquire(this, restore)
  }

  override tryAcquire(restore: Restore): Effect.Effect<PermitHold | undefined, LockStoreError> {
    return tryAcquire(this, restore)
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
