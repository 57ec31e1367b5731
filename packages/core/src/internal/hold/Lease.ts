/**
 * A lock in the hands of this process: one outermost acquisition with all re-entries into it. Whether it still holds is
 * computed from a deadline on the monotonic clock at every check, never remembered. And by what a caller recognises a lease as its own:
 * fiber ids change inside timeouts, races and forks, so what a `withLock` body may re-enter travels in a reference that every child fiber
 * inherits.
 */
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import { LockLost, LockStoreError, type LossReason } from "../../LockError.ts"
import type { LockClient } from "../client/LockClient.ts"
import type { LockProtocol, LockRef, OwnerRef } from "../kinds/kinds.ts"
import { deadlineOf } from "../options/acquireOptions.ts"
import { ownerText } from "../report/shown.ts"
import type { Loss } from "../report/telemetry.ts"
import { longestEffectMillis } from "../store/commands.ts"
import type { LockKeys } from "../store/keys.ts"
import type { StoreCommand } from "../store/operations/StoreOperation.ts"
import type { Due } from "../time/clock.ts"

/** An alarm that is this late means that the process did not run; timers are late by some milliseconds anyway. */
const stallMillis = 100

/** One entry into a lease; see `Hold`. */
export interface LeaseEntry {
  readonly lease: Lease
  /** The identity that acquired it. */
  readonly by: Identity
  /** Whether the watchdog renews for it. */
  readonly renewed: boolean
  released: boolean
}

/** What Redis has granted. */
export interface GrantReply {
  readonly owner: string
  readonly token: number
  /** When the lease was requested, on the monotonic clock. */
  readonly sentAt: number
  readonly leaseMillis: number
}

/**
 * What Redis has granted, until it is released or lost. Its times, on the monotonic clock:
 *
 * - `deadline`: until then it is certainly ours
 * - `heldUntil`: its `maxHold`; `endsAt`, the earlier of the two: then it is lost
 * - `overAt`: Redis may keep it until then, so that is for how long a release is repeated
 * - `keptUntil`: its `minHold`
 */
export class Lease implements Due, OwnerRef {
  readonly client: LockClient
  readonly kind: LockProtocol
  readonly name: string
  readonly keys: LockKeys
  readonly owner: string
  readonly token: number
  /** When the acquisition that Redis granted was sent, on the monotonic clock. */
  readonly askedAt: number
  readonly acquiredAt: number

  /** Monotonic milliseconds until which Redis keeps the lock for us, less the drift allowance. */
  deadline: number
  /**
   * Until when Redis may keep the lock for us beyond the deadline: a re-entry or a renewal may have been granted a longer
   * lease without our knowledge.
   */
  #mayLastUntil = 0
  /**
   * Its holds, outermost first: from when their commands are sent until they begin to release. Redis does not know how many there are: an
   * owner id belongs to one lease, so nobody else can re-enter it. Few locks are ever re-entered.
   */
  outermost: LeaseEntry | undefined = undefined
  #others: Array<LeaseEntry> | undefined = undefined
  /** The write lock under which it reads. */
  writer: Lease | undefined = undefined
  /** Another lease of the same lock in this client: of another reader. */
  alongside: Lease | undefined = undefined
  /** Holds without a fixed lease: while there are any, the watchdog renews. */
  renewedHolds = 0
  /** Until when the lock stays taken even if it is released before, on the monotonic clock; 0 if it does not. */
  keptUntil = 0
  /** Until when the watchdog renews it, on the monotonic clock; undefined without a `maxHold`. */
  heldUntil: number | undefined = undefined
  /** The sections in a row that led to it; undefined for the first. */
  streak: Streak | undefined = undefined
  /** Set once, when the lock turns out to be lost. */
  lost: LockLost | undefined = undefined
  /** Set when the last hold has begun to release. */
  released = false
  /** The last failure of the renewal since it last succeeded. */
  renewalFailure: unknown = undefined
  /** Whether the server is to tell of the next change of its key. */
  isTracked = false
  /** The number of unanswered renewals. */
  renewals = 0
  /** When the first of those was sent, on the monotonic clock. */
  renewsSince = 0
  /**
   * How long a lease it wants, in milliseconds, until Redis has confirmed that: it was handed over with a short one, and the command that
   * extends it is on its way.
   */
  unconfirmed: number | undefined = undefined
  /**
   * What its holder has published beside the lock, if anything: the last that Redis has confirmed. It is sent again with each renewal and after
   * each reconnect, as it may be lost without the lock; no command once the holder has taken it away.
   */
  record: { readonly version: number; readonly command: StoreCommand<number> | undefined } | undefined = undefined
  /** Done when everything has been read that had arrived when an unconfirmed lease was over. */
  #allRead: Deferred.Deferred<void> | undefined = undefined

  due = 0
  heapIndex = -1
  /** The sections and fibers that depend on it: each counts until it unsubscribes. */
  #listeners: Set<() => void> | undefined = undefined

  constructor(subject: LockRef, { owner, sentAt, token }: GrantReply, acquiredAt: number, deadline: number) {
    this.client = subject.client
    this.kind = subject.kind
    this.name = subject.name
    this.keys = subject.keys
    this.owner = owner
    this.token = token
    this.askedAt = sentAt
    this.acquiredAt = acquiredAt
    this.deadline = deadline
  }

  /**
   * The lease of a grant that was requested at `sentAt` and whose reply is read now; undefined if that lease is over already.
   */
  static granted(subject: LockRef, reply: GrantReply, now: number): Lease | undefined {
    const deadline = deadlineOf(reply.sentAt, reply.leaseMillis)
    return now < deadline ? new Lease(subject, reply, now, deadline) : undefined
  }

  /** How many holds there are, re-entries included. */
  get holds(): number {
    return this.outermost === undefined ? 0 : 1 + (this.#others?.length ?? 0)
  }

  /** The first hold for which `f` returns true. */
  find(f: (hold: LeaseEntry) => boolean): LeaseEntry | undefined {
    const { outermost } = this
    return outermost !== undefined && f(outermost) ? outermost : this.#others?.find(f)
  }

  /** When it is lost without another renewal, or in spite of one: at its deadline, or when it has been held for its `maxHold`. */
  get endsAt(): number {
    const { deadline, heldUntil } = this
    return heldUntil === undefined || this.renewedHolds === 0 ? deadline : Math.min(deadline, heldUntil)
  }

  /** The loss, if the lock is lost: noticed earlier, or just now because its time is over. */
  checkLost(now = this.client.now()): LockLost | undefined {
    if (this.lost === undefined && !this.released && now >= this.endsAt && !this.#mayBeConfirmed()) {
      if (now < this.deadline) return this.lose("HeldTooLong")
      if (this.renewals > 0) this.renewalFailure ??= new Error("a renewal was not answered before the lease had ended")
      // the watchdog should have rung before, to renew or at the deadline
      const stalled = now - Math.min(this.due, this.deadline) >= stallMillis
      this.lose(this.renewalFailure === undefined ? "Expired" : "RenewalFailed", stalled)
    }
    return this.lost
  }

  /**
   * Whether the reply that confirms it may lie unread, as the section has blocked the event loop since it began. Then everything that has
   * arrived is read first.
   */
  #mayBeConfirmed(): boolean {
    if (this.unconfirmed === undefined || this.renewals === 0) return false
    this.#allRead ??= this.#readAll()
    return !Deferred.isDoneUnsafe(this.#allRead)
  }

  /** Reads everything that has arrived, and looks again then. */
  #readAll(): Deferred.Deferred<void> {
    const allRead = Deferred.makeUnsafe<void>()
    const look = () => {
      this.client.inMicrotask(() => this.checkLost())
      Deferred.doneUnsafe(allRead, Effect.void)
    }
    // between two timers the event loop reads
    setTimeout(() => setTimeout(look))
    return allRead
  }

  /** A renewal is sent at this time. */
  renews(leaseMillis: number, sentAt: number): void {
    if (this.renewals++ === 0) this.renewsSince = sentAt
    this.asksFor(leaseMillis, sentAt)
  }

  /** Why it was not renewed: the last renewal has failed, or takes longer than a tenth of the time between two. */
  whyNotRenewed(): LockStoreError | undefined {
    if (this.released) return undefined
    const { now, options } = this.client
    const isOverdue = this.renewals > 0 && now() - this.renewsSince > options.renewIntervalMillis / 10
    const cause = this.renewalFailure
    if (cause instanceof LockStoreError || (cause === undefined && !isOverdue)) return cause
    const operation = this.kind.mode === "permit" ? "permit_semaphore/renew" : "renew"
    return new LockStoreError({ operation, lock: this.name, reason: "TimedOut", cause })
  }

  /** Waits until it can be told whether it is lost; undefined if that can be told now, as nearly always. */
  get listening(): Effect.Effect<void> | undefined {
    if (this.unconfirmed === undefined) return undefined
    this.checkLost()
    const allRead = this.#allRead
    return allRead === undefined || Deferred.isDoneUnsafe(allRead) ? undefined : Deferred.await(allRead)
  }

  /** Whether nothing may go on under it: it is lost, or its time is over and a reply is still to be read. */
  isOver(): boolean {
    const now = this.client.now()
    return this.checkLost(now) !== undefined || (now >= this.endsAt && !this.released)
  }

  isHeld(): boolean {
    return !this.released && this.checkLost() === undefined
  }

  /** Records the loss, stops the renewal and notifies everything that depends on the lock. */
  lose(reason: Loss, stalled = false): LockLost {
    if (this.lost !== undefined) return this.lost
    const lost = this.lossOf(reason, stalled)
    // the release in flight finds out whether it was lost, and counts the loss
    if (this.released) return lost
    this.lost = lost
    if (this.client.forget(this, this.client.now())) this.client.telemetry.of(this.kind.name).lost[reason]++
    for (const listener of this.#listeners ?? []) this.client.inMicrotask(listener)
    this.client.lines.wake(this.keys.lock)
    return lost
  }

  lossOf(reason: LossReason, stalled = false): LockLost {
    return new LockLost({
      lock: this.name,
      owner: ownerText(this.owner),
      reason,
      late: Duration.millis(Math.max(0, this.client.now() - this.deadline)),
      ...(stalled ? { stalled } : undefined),
      ...(this.kind.mode === "permit"
        ? { permits: (this as OwnerRef).permits ?? this.owner.split(",").length }
        : undefined),
      ...(this.renewalFailure === undefined ? undefined : { cause: this.renewalFailure })
    })
  }

  /**
   * Calls the listener once, on a call stack of its own, when the lock is lost; soon if it is lost already. The result
   * unsubscribes: call it when the work under the lock has ended.
   */
  onLost(listener: () => void): () => void {
    if (this.lost !== undefined) this.client.inMicrotask(listener)
    const listeners = (this.#listeners ??= new Set())
    listeners.add(listener)
    return () => void listeners.delete(listener)
  }

  get isUnused(): boolean {
    return this.#listeners === undefined || this.#listeners.size === 0
  }

  /**
   * Notes a command, sent at `sentAt`, that asks for a lease: it runs from when the command takes effect, whether or not a
   * reply confirms it.
   */
  asksFor(leaseMillis: number, sentAt: number): void {
    // the key of a writer that also reads lives as long as its longest read
    this.writer?.asksFor(leaseMillis, sentAt)
    this.#mayLastUntil = Math.max(this.#mayLastUntil, sentAt + longestEffectMillis(this.client.store) + leaseMillis)
  }

  /** The latest time at which Redis may still keep the lock for us. */
  get overAt(): number {
    return Math.max(this.deadline, this.#mayLastUntil)
  }

  /** From now on the lock is to be taken for so long at least. */
  keepFor(millis: number): void {
    if (millis > 0) this.keptUntil = Math.max(this.keptUntil, this.client.now() + millis)
  }

  /**
   * To be called when a hold with a fixed lease has prolonged the lease. If the outermost hold has a fixed one as well, re-entries may last as long
   * as the lease, whatever the `maxHold`.
   */
  fix(): void {
    if (this.heldUntil === undefined || this.outermost?.renewed !== false) return
    this.heldUntil = Math.max(this.heldUntil, this.deadline)
  }

  /** Counts a hold: the outermost, which Redis has granted, or a re-entry whose command is about to be sent. */
  add<H extends LeaseEntry>(hold: H): H {
    if (hold.renewed) this.renewedHolds++
    if (this.outermost === undefined) this.outermost = hold
    else (this.#others ??= []).push(hold)
    return hold
  }

  /** Ends a hold. The lease stays as long as it is. */
  remove(hold: LeaseEntry): void {
    if (hold.renewed) this.renewedHolds--
    const others = this.#others ?? []
    if (hold === this.outermost) this.outermost = others.shift()
    else others.splice(others.indexOf(hold), 1)
  }

  /**
   * Redis confirmed a lease that was asked for at `sentAt`, and the reply is read now. The result is the loss, if the lock's lease was over
   * before; no deadline is lowered.
   */
  confirm(sentAt: number, leaseMillis: number): LockLost | undefined {
    const now = this.client.now()
    // nothing can have ended an unconfirmed lease that Redis has extended
    const lost = this.unconfirmed === undefined ? this.checkLost(now) : this.lost
    if (lost !== undefined) return lost
    // a re-entry with a shorter lease is no answer
    if (this.unconfirmed !== undefined && leaseMillis >= this.unconfirmed) this.unconfirmed = undefined
    this.renewalFailure = undefined
    this.deadline = Math.max(this.deadline, deadlineOf(sentAt, leaseMillis))
    return this.checkLost(now)
  }
}

/** Goes on in a microtask, behind the fibers that were woken before: an exception from an observer must not end the task that woke it. */
export const inMicrotask = (client: LockClient): Effect.Effect<void> =>
  Effect.callback((resume) => client.inMicrotask(() => resume(Effect.void)))

/**
 * The sections that this process has had in a row, because each release left the lock to its next waiter. Each lease carries them on to
 * the next: between two of them there may be no waiter, and no queue.
 */
export interface Streak {
  readonly count: number
  /** When the first of them was handed over, on the monotonic clock. */
  readonly since: number
}

/** The holds of `withLock` sections around the running code, innermost first. */
type Sections = ReadonlyArray<LeaseEntry>

/**
 * Those around the body of a section with these holds. Without the sections that have ended: a fiber that outlives its section may begin the next
 * one, and so on without end. Of those that have lost their lock the innermost is kept, to tell of it.
 */
export const sectionsInside = (holds: Sections, around: Sections): Sections => {
  const kept: Array<LeaseEntry> = []
  for (const hold of around) {
    const { lease, released } = hold
    const isOver = released && (lease.lost === undefined || kept.some((inner) => isSameLock(inner.lease, lease)))
    if (!isOver) kept.push(hold)
  }
  return holds.concat(kept)
}

/** Whether a section under one of these leases, of the same client, hides one under the other from the code that it runs. */
export const isSameLock = (one: LockRef, other: LockRef): boolean =>
  one.client === other.client && one.keys.lock === other.keys.lock && one.kind.mode === other.kind.mode

export class Owner {
  /** Made by `Lock.withOwner`: everything below it is one owner, like a thread in Redisson. */
  readonly explicit: object | undefined
  readonly sections: Sections

  constructor(explicit: object | undefined, sections: Sections = []) {
    this.explicit = explicit
    this.sections = sections
  }
}

export const CurrentOwner = Context.Reference<Owner>("effect-redis-lock/CurrentOwner", {
  defaultValue: () => new Owner(undefined)
})

/**
 * Everything by which an acquisition may recognise a holding as its own.
 */
export class Identity {
  readonly owner: Owner
  readonly fiberId: number
  /** Only acquisitions into a scope (`Lock.scoped`) recognise holdings by their scope. */
  readonly scope: Scope.Scope | undefined

  constructor(fiber: Fiber.Fiber<unknown, unknown>, scope: Scope.Scope | undefined) {
    this.owner = fiber.getRef(CurrentOwner)
    this.fiberId = fiber.id
    this.scope = scope
  }
}
