/**
 * Acquires all members of a `MultiLock`: at once if all are free. If one is taken, waits for that one, and requests the others then. If
 * another is taken by then, acquires them one after the other and keeps what it has, in the same order everywhere, so that two MultiLocks
 * do not wait for each other. Each wait is that of a single lock, with its place in the queue.
 *
 * Other code may nest the members against that order. So if such a wait takes too long, the members that are held meanwhile are given
 * back, and the wait goes on. If the others are not free when it ends, that member is given back as well, and all are acquired in order again:
 * two MultiLocks that kept to different orders would wait for each other.
 */
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Order from "effect/Order"
import { type AcquireError, LockStoreError, LockTimeout, QuorumNotReached } from "../../LockError.ts"
import type { AcquireRequest, Restore } from "../acquire/ask.ts"
import { pauseAfterFailure, waitedSince } from "../acquire/untilServed.ts"
import type { Hold, InternalHolding } from "../hold/Hold.ts"
import { giveBackMembers } from "../hold/rollback.ts"
import { matchOutcome } from "../store/commands.ts"
import { failureThat, isRetryable } from "../store/failures.ts"
import { Outage } from "../wait/Outage.ts"
import type { PreparedAcquire } from "./AnyLock.ts"
import { MultiHold, releaseAll, type Tokens } from "./MultiHold.ts"
import { groupsOf, tryAcquireTogether } from "./together.ts"

/** The outcome of a request for all members: the member that was denied, if there was one. */
type Attempt<T> = MultiHold<T> | Denied

export class PreparedMultiAcquire<E, T> implements PreparedAcquire<E, Tokens<T>> {
  readonly name: string
  /** In spans: in metrics its members count, each as its own kind. */
  readonly label = "multi"
  readonly subjects: ReadonlyArray<AcquireRequest>
  /** The members, requested at once. */
  readonly #members: ReadonlyArray<PreparedAcquire<E, T>>
  /** Prepares a member with a limited wait. */
  readonly #waiting: (index: number, waitMillis: number) => PreparedAcquire<E, T>
  readonly #waitMillis: number
  readonly #now: () => number
  readonly #startedAt: number
  readonly #held: Array<InternalHolding<T> | undefined>
  /** The order in which the members are acquired. */
  #order: ReadonlyArray<number>
  readonly #patience = new Patience()

  constructor(
    name: string,
    members: ReadonlyArray<PreparedAcquire<E, T>>,
    waiting: (index: number, waitMillis: number) => PreparedAcquire<E, T>,
    waitMillis: number
  ) {
    this.name = name
    this.subjects = Arr.flatMap(members, ({ subjects }) => subjects)
    this.#members = members
    this.#waiting = waiting
    this.#waitMillis = waitMillis
    this.#now = this.subjects[0]!.client.now
    this.#startedAt = this.#now()
    this.#held = members.map(() => undefined)
    this.#order = [...members.keys()]
  }

  tryAcquire(restore: Restore): Effect.Effect<InternalHolding<Tokens<T>> | undefined, LockStoreError | E> {
    // a member of a nested lock may be requested more than once
    this.#held.fill(undefined)
    const asked = Effect.flatMap(this.#attempt(restore), (attempt) =>
      attempt instanceof MultiHold ? Effect.succeed(attempt) : Effect.as(this.#giveBack(), undefined)
    )
    return Effect.tapCause(asked, () => this.#giveBack())
  }

  acquire(restore: Restore): Effect.Effect<InternalHolding<Tokens<T>>, AcquireError | E> {
    const asked = Effect.flatMap(
      this.#askForRest(restore),
      (attempt): Effect.Effect<InternalHolding<Tokens<T>>, AcquireError | E> =>
        attempt instanceof MultiHold ? Effect.succeed(attempt) : Effect.gen(() => this.#again(attempt, restore))
    )
    return Effect.tapCause(asked, () => this.#giveBack())
  }

  /**
   * Releases the acquired members, except those `kept`: in the background, which it awaits as it does a rollback. A release that fails is
   * retried until its lease ends.
   */
  #giveBack(kept: ReadonlyArray<InternalHolding<T> | undefined> = []): Effect.Effect<void> {
    return Effect.suspend(() => {
      const released: Array<Hold> = []
      for (const [index, member] of this.#held.entries()) {
        if (member === undefined || member === kept[index]) continue
        released.push(...member.holds)
        this.#held[index] = undefined
      }
      if (released.length === 0) return Effect.void
      const clients = [...new Set(this.subjects.map(({ client }) => client))]
      return giveBackMembers(clients, Effect.ignore(releaseAll(released)))
    })
  }

  /** Continues after a denied first attempt. */
  *#again(first: Denied, restore: Restore): Effect.fn.Return<InternalHolding<Tokens<T>>, AcquireError | E> {
    const until = this.#startedAt + this.#waitMillis
    const outage = new Outage<Denied["failure"]>()
    this.#order = commonOrder(this.#members)
    let denied = first
    while (true) {
      const { blocker, failure } = denied
      const left = until - this.#now()
      if (left <= 0 && blocker === undefined) {
        // a member that can fail this way declares it in its type
        if (failure !== undefined) return yield* Effect.fail(failure as AcquireError | E)
        // no member has counted this one
        const { client, kind } = this.subjects[0]!
        client.telemetry.of(kind.name).timedOut++
        return yield* Effect.fail(this.#timedOut(undefined))
      }
      if (failure === undefined) {
        outage.answered()
      } else {
        outage.failed(failure)
        yield* pauseAfterFailure(this.subjects[0]!.client, outage, left, restore)
      }
      // at first it holds nothing while it waits: others may use the rest, which is often free again by then; at last only this one matters
      if (blocker !== undefined && (denied === first || left <= 0)) {
        this.#held[blocker] = yield* this.#waitFor(blocker, until, restore)
        // where nothing was in the way, as a lease had ended too soon, all are requested at once again
      } else if (blocker !== undefined || failure !== undefined) {
        yield* this.#gather(blocker, until, restore)
      }
      const attempt = yield* this.#askForRest(restore)
      if (attempt instanceof MultiHold) return attempt
      denied = attempt
      if (!this.#isInOrder) yield* this.#giveBack()
    }
  }

  /** Waits for one member after the other, in order, up to the one that was taken. */
  *#gather(blocker: number | undefined, until: number, restore: Restore): Effect.fn.Return<void, AcquireError | E> {
    for (const index of this.#order) {
      if (this.#held[index] !== undefined) continue
      this.#held[index] = yield* this.#waitFor(index, until, restore)
      // behind the one that was taken the rest may be free; after it has given way, those before it
      if (index === blocker || !this.#isInOrder) return
    }
  }

  /** Whether no member is held before an earlier one. */
  get #isInOrder(): boolean {
    const isHeld = (index: number) => this.#held[index] !== undefined
    return this.#order.findLastIndex(isHeld) === this.#order.filter(isHeld).length - 1
  }

  /** Waits for a member. If that takes too long, gives back those that it holds, and waits on. */
  #waitFor(index: number, until: number, restore: Restore): Effect.Effect<InternalHolding<T>, AcquireError | E> {
    const asked = Effect.suspend(() => this.#waiting(index, Math.max(0, until - this.#now())).acquire(restore))
    const wait = Effect.mapError(asked, (error) =>
      error instanceof LockTimeout ? this.#timedOut(error.holder) : error
    )
    if (this.#held.every((member) => member === undefined)) return wait
    const minding = Effect.flatMap(this.#untilImpatient, () => {
      this.#patience.wasTooShort()
      // the wait, which may end meanwhile, neither breaks it off nor waits for it
      return Effect.forkDetach(this.#giveBack(), { startImmediately: true })
    })
    return Effect.flatMap(Effect.forkChild(minding), (fiber) => Effect.ensuring(wait, Fiber.interrupt(fiber)))
  }

  /** Ends when the members that are held have been kept for long enough; until then, their fixed leases are renewed. */
  get #untilImpatient(): Effect.Effect<void> {
    const renewals = this.#fixedLeases.map(({ leaseMillis, renewal }) =>
      Effect.forever(Effect.delay(Effect.ignore(renewal), leaseMillis / 3))
    )
    return Effect.raceAllFirst([Effect.sleep(this.#patience.millis), ...renewals])
  }

  /** The fixed leases of the members that are held, whether the `MultiLock` or a member's own lock fixes them. */
  get #fixedLeases() {
    return this.#members.flatMap(({ subjects }, index) =>
      subjects.flatMap(({ isRenewed, leaseMillis }, i) => {
        const hold = this.#held[index]?.holds[i]
        return hold === undefined || isRenewed ? [] : [{ leaseMillis, renewal: hold.renew(leaseMillis) }]
      })
    )
  }

  #timedOut(holder: LockTimeout["holder"]): LockTimeout {
    const waited = waitedSince(this.#startedAt, this.#now(), this.#waitMillis)
    return new LockTimeout({ lock: this.name, waited, holder })
  }

  /** {@link #attempt} of a caller that waits: acquires all that it requests or nothing, and turns a transient failure into a value. */
  #askForRest(restore: Restore): Effect.Effect<Attempt<T>, LockStoreError | E> {
    const kept = [...this.#held]
    const fallBack = (denied: Denied) => Effect.as(this.#giveBack(kept), denied)
    return matchOutcome(
      this.#attempt(restore),
      (attempt): Effect.Effect<Attempt<T>> =>
        attempt instanceof MultiHold ? Effect.succeed(attempt) : fallBack(attempt),
      (cause) => {
        const failure = failureThat(mayPass, cause)
        return failure === undefined ? Effect.failCause(cause) : fallBack({ blocker: undefined, failure })
      }
    )
  }

  /** Requests all members that are not held yet, at once. Run it at once. */
  #attempt(restore: Restore): Effect.Effect<Attempt<T>, LockStoreError | E> {
    const missing = this.#order.filter((index) => this.#held[index] === undefined)
    const groups = groupsOf(this.#members, missing)
    const asked =
      groups.length === 1
        ? this.#ask(groups[0]!, restore)
        : // each request records its grant even if others fail or the whole is interrupted
          Effect.map(
            restore(
              Effect.forEach(
                groups,
                (group) => Effect.uninterruptibleMask((restore) => Effect.suspend(() => this.#ask(group, restore))),
                { concurrency: "unbounded" }
              )
            ),
            (denied) => denied.find((index) => index !== undefined)
          )
    return Effect.flatMap(asked, (blocker): Effect.Effect<Attempt<T>, LockStoreError> =>
      blocker === undefined ? this.#complete(restore) : Effect.succeed({ blocker, failure: undefined })
    )
  }

  /** Requests a group of members by one command: the one that was denied, if there is one. */
  #ask(group: ReadonlyArray<number>, restore: Restore): Effect.Effect<number | undefined, LockStoreError | E> {
    const [only] = group as readonly [number]
    if (group.length === 1) {
      return Effect.map(this.#members[only]!.tryAcquire(restore), (hold) => {
        this.#held[only] = hold
        return hold === undefined ? only : undefined
      })
    }
    const requests = group.map((index) => this.#members[index]!.subjects[0]!)
    return Effect.map(tryAcquireTogether(requests, restore), (holds) => {
      if (typeof holds === "number") return group[holds]
      for (const [i, index] of group.entries()) this.#held[index] = holds[i] as unknown as InternalHolding<T>
      return undefined
    })
  }

  /** All members are held: each fixed lease starts now. A lease may have run out while another member was requested. */
  #complete(restore: Restore): Effect.Effect<Attempt<T>, LockStoreError> {
    const hold = new MultiHold(this.name, this.#held as ReadonlyArray<InternalHolding<T>>)
    const [first] = hold.holds as readonly [Hold]
    // one command acquired them all just now
    if (hold.holds.every(({ lease }) => lease.acquiredAt === first.lease.acquiredAt)) return Effect.succeed(hold)
    const renewals = this.#fixedLeases.map(({ renewal }) => renewal)
    const renewed = restore(Effect.all(renewals, { concurrency: "unbounded", discard: true }))
    return Effect.andThen(renewed, hold.ensureHeld).pipe(
      Effect.as<Attempt<T>>(hold),
      Effect.catchTags({
        // all over again
        LockLost: () => Effect.as(this.#giveBack(), { blocker: undefined, failure: undefined }),
        InvalidLockOptions: Effect.die // the lease has been checked
      })
    )
  }
}

const [shortestMillis, longestMillis] = [1000, 8000]

/**
 * For how long a `MultiLock` keeps some members while it waits for the next one: twice as long each time that it was not enough, as a turn
 * may just take long. After the longest time it begins again, and goes further then: of two that wait for each other, one soon has less
 * patience than the other.
 */
class Patience {
  #millis = shortestMillis
  #longestMillis = longestMillis

  /** So long, and up to half as long again at random. */
  get millis(): number {
    return this.#millis * (1 + Math.random() / 2)
  }

  wasTooShort(): void {
    if (this.#millis < this.#longestMillis) {
      this.#millis *= 2
    } else {
      this.#millis = shortestMillis
      this.#longestMillis *= 2
    }
  }
}

/** A member was denied, or its store failed for a reason that may pass. */
interface Denied {
  readonly blocker: number | undefined
  /** The transient failure of the store that hides the blocker. */
  readonly failure: LockStoreError | QuorumNotReached | undefined
}

const mayPass = (error: unknown): error is LockStoreError | QuorumNotReached =>
  error instanceof LockStoreError ? isRetryable(error) : error instanceof QuorumNotReached && error.isTransient

/** The indices of the members in an order that is the same for all clients: that of their keys. */
const commonOrder = (members: ReadonlyArray<PreparedAcquire>): ReadonlyArray<number> => {
  const keys = members.map(({ subjects }) => subjects.map(({ keys }) => keys.lock).sort()[0]!)
  return [...members.keys()].sort(Order.mapInput(Order.String, (index) => keys[index]!))
}
