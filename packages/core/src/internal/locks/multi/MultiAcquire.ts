/**
 * Acquires all members of a `MultiLock`: at once while that may succeed, then one by one in a common order.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { type AcquireError, type LockStoreError, LockTimeout } from "../../../LockError.ts"
import type { AcquireRequest } from "../../acquire/AcquireRequest.ts"
import { type PreparedAcquire, type Subject } from "../AnyLock.ts"
import { tryAcquireTogether } from "../../acquire/acquireOnce.ts"
import type { Hold, InternalHolding } from "../../hold/Hold.ts"
import { PreparedLockAcquire } from "../LockImpl.ts"
import type { Times } from "../../options/acquireTimes.ts"
import { noteSpreadSlots } from "./spreadSlots.ts"
import { type Denied, isNotForGood, isStoreFailure, isTimeout, orTransient } from "./memberFailures.ts"
import { MultiHold, multiKind, releaseAll, type Tokens } from "./MultiHold.ts"
import { countWaiting } from "../../acquire/waiting/countWaiting.ts"
import { pauseAfterFailure } from "../../acquire/waiting/pauseAfterFailure.ts"
import { Outage } from "../../wait/Outage.ts"
import type { Restore } from "../../hold/guard.ts"

/** After this many rounds without success the members are acquired one by one, in the same order everywhere. */
const roundsAtOnce = 3

/** The most members that one command acquires: while it runs, the server does nothing else. */
const membersPerCommand = 1000

/** How long a holder of some members waits for the next one: limited, in case another client's order differs after all. */
const longestMemberWaitMillis = 2000

/** The outcome of a request for all members: the member that was denied, if there was one. */
type Attempt<T> = MultiHold<T> | Denied

const lostMeanwhile: Denied = { blocker: undefined, failure: undefined }

export class PreparedMultiAcquire<E, T> implements PreparedAcquire<E, Tokens<T>> {
  readonly name: string
  readonly subjects: ReadonlyArray<Subject>
  /** The members, requested at once. */
  readonly #members: ReadonlyArray<PreparedAcquire<E, T>>
  /** Prepares a member with a limited wait. */
  readonly #waiting: (index: number, waitMillis: number) => PreparedAcquire<E, T>
  readonly #times: Times
  readonly #now: () => number
  readonly #startedAt: number
  readonly #held: Array<InternalHolding<T> | undefined>

  constructor(
    name: string,
    subjects: ReadonlyArray<Subject>,
    members: ReadonlyArray<PreparedAcquire<E, T>>,
    waiting: (index: number, waitMillis: number) => PreparedAcquire<E, T>,
    times: Times
  ) {
    this.name = name
    this.subjects = subjects
    this.#members = members
    this.#waiting = waiting
    this.#times = times
    this.#now = subjects[0]!.client.now
    this.#startedAt = this.#now()
    this.#held = members.map(() => undefined)
  }

  get label(): string {
    return multiKind
  }

  tryAcquire(restore: Restore): Effect.Effect<Option.Option<InternalHolding<Tokens<T>>>, LockStoreError | E> {
    return Effect.suspend(() => {
      // a member of a nested lock may be requested more than once
      this.#held.fill(undefined)
      return this.#orNone(
        Effect.flatMap(this.#attempt(restore), (attempt) =>
          attempt instanceof MultiHold ? Effect.succeedSome(attempt) : Effect.as(this.#giveBack, Option.none())
        )
      )
    })
  }

  acquire(restore: Restore): Effect.Effect<InternalHolding<Tokens<T>>, AcquireError | E> {
    const waits = this.#times.waitMillis > 0
    const attempt = this.#attempt(restore)
    return this.#orNone(
      Effect.flatMap(
        waits ? orTransient(attempt) : attempt,
        (attempt): Effect.Effect<InternalHolding<Tokens<T>>, AcquireError | E> =>
          attempt instanceof MultiHold
            ? Effect.succeed(attempt)
            : countWaiting(
                this.subjects[0]!.client,
                multiKind,
                Effect.gen(() => this.#again(attempt, restore))
              )
      )
    )
  }

  /** Releases the acquired members on any failure. */
  #orNone<A, E2>(self: Effect.Effect<A, E2>): Effect.Effect<A, E2> {
    return Effect.catchCause(self, (cause) => {
      const { client, isMember } = this.subjects[0]!
      if (isMember !== true && cause.reasons.some(isTimeout)) client.telemetry.timedOut(multiKind)
      return Effect.andThen(this.#giveBack, Effect.failCause(cause))
    })
  }

  /** Releases the acquired members. A release that fails is retried in the background until its lease ends. */
  get #giveBack(): Effect.Effect<void> {
    return Effect.suspend(() => {
      const won = this.#held.filter((member) => member !== undefined)
      this.#held.fill(undefined)
      return won.length === 0 ? Effect.void : Effect.ignore(releaseAll(won))
    })
  }

  *#canonicalOrder(): Iterable<number> {
    const names = this.#members.map(({ name }, index) => ({ index, name }))
    names.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : a.index - b.index))
    for (const { index } of names) yield index
  }

  /** Continues after a denied first attempt. */
  *#again(first: Denied, restore: Restore): Effect.fn.Return<InternalHolding<Tokens<T>>, AcquireError | E> {
    const until = this.#startedAt + this.#times.waitMillis
    const outage = new Outage<Denied["failure"]>()
    let denied = first
    for (let round = 1; ; round++) {
      yield* this.#giveBack
      const left = until - this.#now()
      // a member that can fail this way declares it in its type
      if (left <= 0) return yield* Effect.fail((denied.failure ?? this.#timedOut(undefined)) as AcquireError | E)
      if (denied.failure === undefined) {
        outage.answered()
        // clients that collided here should not collide again
        yield* restore(Effect.sleep(Math.random() * Math.min(2 ** (round - 1), 16)))
      } else {
        outage.failed(denied.failure)
        yield* pauseAfterFailure(this.subjects[0]!.client, outage, left, restore)
      }
      const isAtOnce = round < roundsAtOnce || round % 2 === 1
      const attempt = isAtOnce
        ? yield* this.#atOnce(denied.blocker, until, restore)
        : yield* this.#oneByOne(until, restore)
      if (attempt instanceof MultiHold) return attempt
      denied = { blocker: attempt.blocker ?? denied.blocker, failure: attempt.failure }
    }
  }

  /** Waits for the blocker while holding nothing else, then requests all others at once. */
  *#atOnce(
    blocker: number | undefined,
    until: number,
    restore: Restore
  ): Effect.fn.Return<Attempt<T>, AcquireError | E> {
    if (blocker !== undefined) this.#held[blocker] = yield* this.#wait(blocker, until - this.#now(), restore)
    return yield* orTransient(this.#attempt(restore))
  }

  /** Waits for the members one after the other, for each only briefly: one that is not granted in time is the blocker. */
  *#oneByOne(until: number, restore: Restore): Effect.fn.Return<Attempt<T>, AcquireError | E> {
    for (const index of this.#canonicalOrder()) {
      const left = until - this.#now()
      const waitMillis = Math.min(left, this.#memberWaitMillis())
      const waited = yield* Effect.result(this.#wait(index, waitMillis, restore))
      if (waited._tag === "Success") {
        this.#held[index] = waited.success
      } else if (waitMillis < left && isNotForGood(waited.failure)) {
        return { blocker: index, failure: isStoreFailure(waited.failure) ? waited.failure : undefined }
      } else {
        return yield* Effect.fail(waited.failure)
      }
    }
    return yield* orTransient(this.#complete)
  }

  #timedOut(holder: LockTimeout["holder"]): LockTimeout {
    return new LockTimeout({ lock: this.name, waited: Duration.millis(this.#now() - this.#startedAt), holder })
  }

  #memberWaitMillis(): number {
    const longest = Math.min(longestMemberWaitMillis, (this.#times.leaseMillis ?? Number.POSITIVE_INFINITY) / 3)
    return longest * (0.5 + Math.random() / 2)
  }

  #wait(index: number, waitMillis: number, restore: Restore): Effect.Effect<InternalHolding<T>, AcquireError | E> {
    return Effect.catchCause(this.#waiting(index, Math.max(0, waitMillis)).acquire(restore), (cause) => {
      const timeout = cause.reasons.find(isTimeout)
      if (timeout === undefined) return Effect.failCause(cause)
      const { holder } = timeout.error
      return Effect.suspend(() => Effect.fail(this.#timedOut(holder)))
    })
  }

  /** Requests all members that are not held yet, at once. */
  #attempt(restore: Restore): Effect.Effect<Attempt<T>, LockStoreError | E> {
    return Effect.suspend(() => {
      const attempt: { denied: number | undefined } = { denied: undefined }
      const asked = this.#groups().map((group) => this.#ask(group, attempt))
      return Effect.flatMap(
        asked.length === 1
          ? asked[0]!(restore)
          : Effect.andThen(
              noteSpreadSlots(this.name, this.#members),
              // each request records its grant even if others fail or the whole is interrupted
              restore(Effect.forEach(asked, Effect.uninterruptibleMask, { concurrency: "unbounded", discard: true }))
            ),
        (): Effect.Effect<Attempt<T>, LockStoreError> =>
          attempt.denied === undefined
            ? this.#complete
            : Effect.succeed({ blocker: attempt.denied, failure: undefined })
      )
    })
  }

  /** The members that are not held yet, grouped by the commands that can acquire them. */
  #groups(): ReadonlyArray<Array<number>> {
    const groups: Array<Array<number>> = []
    for (let index = 0; index < this.#members.length; index++) {
      if (this.#held[index] !== undefined) continue
      const asking = this.#members[index]
      const group =
        asking instanceof PreparedLockAcquire && asking.isJoinable
          ? groups.find((group) => group.length < membersPerCommand && isOneCommand(this.#members[group[0]!]!, asking))
          : undefined
      if (group === undefined) groups.push([index])
      else group.push(index)
    }
    return groups
  }

  #ask(
    group: ReadonlyArray<number>,
    attempt: { denied: number | undefined }
  ): (restore: Restore) => Effect.Effect<void, LockStoreError | E> {
    const [only] = group as readonly [number]
    return group.length === 1
      ? (restore) =>
          Effect.map(this.#members[only]!.tryAcquire(restore), (hold) => {
            if (Option.isNone(hold)) attempt.denied ??= only
            else this.#held[only] = hold.value
          })
      : (restore) =>
          Effect.map(
            tryAcquireTogether(
              group.map((index) => this.#members[index] as unknown as AcquireRequest),
              restore
            ),
            (holds) => {
              if ("index" in holds) attempt.denied ??= group[holds.index]!
              else
                for (let i = 0; i < group.length; i++) this.#held[group[i]!] = holds[i] as unknown as InternalHolding<T>
            }
          )
  }

  /** All members are held: a fixed lease now starts for each. One may have run out while another was requested. */
  get #complete(): Effect.Effect<Attempt<T>, LockStoreError> {
    return Effect.suspend((): Effect.Effect<Attempt<T>, LockStoreError> => {
      const hold = new MultiHold(this.name, this.#held as ReadonlyArray<InternalHolding<T>>)
      const { leaseMillis } = this.#times
      const [first] = hold.holds as readonly [Hold]
      // one command acquired them all just now
      if (hold.holds.every(({ lease }) => lease.acquiredAt === first.lease.acquiredAt)) {
        return Effect.succeed(this.#count(hold))
      }
      if (leaseMillis === undefined) {
        return Effect.succeed(hold.checkLost() === undefined ? this.#count(hold) : lostMeanwhile)
      }
      return Effect.map(hold.renew(leaseMillis), () => this.#count(hold)).pipe(
        Effect.catchTag("LockLost", () => Effect.succeed(lostMeanwhile)),
        Effect.catchTag("InvalidLockOptions", Effect.die) // the lease has been checked
      )
    })
  }

  #count(hold: MultiHold<T>): MultiHold<T> {
    hold.count(this.subjects[0]!.client, this.#startedAt)
    return hold
  }
}

/** Whether two single locks share a client and a slot. */
const isOneCommand = (first: PreparedAcquire, second: PreparedLockAcquire<unknown>): boolean =>
  first instanceof PreparedLockAcquire &&
  first.client === second.client &&
  first.client.store.slot(first.keys.lock) === second.client.store.slot(second.keys.lock) &&
  first.isJoinable
