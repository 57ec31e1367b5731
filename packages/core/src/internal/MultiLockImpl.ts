import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { Fiber } from "effect/Fiber"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import type { AcquireOptions, LockState } from "../Lock.ts"
import {
  type AcquireError,
  type InvalidLockName,
  InvalidLockOptions,
  type LockLost,
  type LockStoreError,
  LockTimeout
} from "../LockError.ts"
import type { RedisLock } from "../RedisLock.ts"
import { type Acquisition, type Restore, tryAcquireTogether } from "./acquisition.ts"
import { AnyLock, type Asking, type Held, type Invalid, isInvalid, provideUnbound } from "./AnyLock.ts"
import { AskingOne, type Times, timesOf } from "./lock.ts"
import { MultiHold, releaseAll, type Tokens } from "./MultiHold.ts"

/** After so many rounds without success the members are taken one by one, in an order that is the same for everybody. */
const roundsAtOnce = 3

/** How long one that has some members waits for the next: not for ever, should somebody else's order differ after all. */
const patienceMillis = 2000

/**
 * Several locks as one.
 */
export class MultiLockImpl<R, E, T> extends AnyLock<R, E, Tokens<T>> {
  readonly name: string
  readonly #members: ReadonlyArray<AnyLock<R, E, T>>
  readonly #options: AcquireOptions | undefined

  constructor(members: ReadonlyArray<AnyLock<R, E, T>>, options: AcquireOptions | undefined) {
    super()
    this.name = members.map(({ name }) => name).join(", ")
    this.#members = members
    this.#options = options
  }

  get isBound(): boolean {
    return this.#members.every((member) => member.isBound)
  }

  provide(service: RedisLock["Service"]): MultiLockImpl<Exclude<R, RedisLock>, E, T> {
    return new MultiLockImpl(provideUnbound(this.#members, service), this.#options)
  }

  asking(
    fiber: Fiber<unknown, unknown>,
    scope: Scope.Scope | undefined,
    options: AcquireOptions | undefined
  ): Asking<E, Tokens<T>> | Invalid {
    if (this.#members.length === 0) {
      return new InvalidLockOptions({ option: "MultiLock", problem: "it has no members" })
    }
    const times = timesOf(options, this.#options)
    if (isInvalid(times)) return times
    const lease = times.leaseMillis === undefined ? undefined : { leaseTime: times.leaseMillis }
    const askings: Array<(waitMillis: number) => Asking<E, T>> = []
    const subjects: Array<string> = []
    for (const member of this.#members) {
      const asking = member.asking(fiber, scope, lease)
      if (isInvalid(asking)) return asking
      if (asking.subjects.some((subject) => subjects.includes(subject))) {
        return new InvalidLockOptions({ option: "MultiLock", problem: `"${asking.name}" is among its members twice` })
      }
      subjects.push(...asking.subjects)
      askings.push((waitTime) => member.asking(fiber, scope, { ...lease, waitTime }) as Asking<E, T>)
    }
    return new AskingAll(this.name, subjects, askings, times)
  }

  holding(fiber: Fiber<unknown, unknown>): Effect.Effect<Held<Tokens<T>> | undefined, InvalidLockName> {
    return Effect.map(Effect.all(this.#members.map((member) => member.holding(fiber))), (all) => {
      const held = all.filter((member) => member !== undefined)
      return held.length === 0 || held.length < all.length ? undefined : new MultiHold(this.name, held)
    })
  }

  /** Locked when every member is, for as long as every member is. */
  inspect(fiber: Fiber<unknown, unknown>): Effect.Effect<LockState | undefined, LockStoreError | InvalidLockName> {
    return Effect.map(
      this.#each((member) => member.inspect(fiber)),
      (all) => {
        const states = all.filter((state) => state !== undefined)
        if (states.length === 0 || states.length < all.length) return undefined
        const remaining = states
          .map((state) => state.remaining ?? Duration.infinity)
          .reduce((a, b) => Duration.min(a, b))
        return {
          name: this.name,
          holders: states.flatMap(({ holders }) => holders),
          remaining: Duration.isFinite(remaining) ? remaining : undefined,
          token: undefined
        }
      }
    )
  }

  holdCount(fiber: Fiber<unknown, unknown>): Effect.Effect<number, LockStoreError | InvalidLockName> {
    return Effect.map(
      this.#each((member) => member.holdCount(fiber)),
      (all) => (all.length === 0 ? 0 : Math.min(...all))
    )
  }

  forceRelease(fiber: Fiber<unknown, unknown>): Effect.Effect<boolean, LockStoreError | InvalidLockName> {
    return Effect.map(
      this.#each((member) => member.forceRelease(fiber)),
      (all) => all.some((released) => released)
    )
  }

  #each<A, E2>(f: (member: AnyLock<R, E, T>) => Effect.Effect<A, E2>): Effect.Effect<Array<A>, E2> {
    return Effect.forEach(this.#members, f, { concurrency: "unbounded" })
  }
}

/** The members that were asked for at once: all of them, or the first that was denied. */
type Round = { readonly _tag: "Won" } | { readonly _tag: "Denied"; readonly index: number }

class AskingAll<E, T> implements Asking<E, Tokens<T>> {
  readonly name: string
  readonly subjects: ReadonlyArray<string>
  readonly #members: ReadonlyArray<(waitMillis: number) => Asking<E, T>>
  readonly #times: Times

  constructor(
    name: string,
    subjects: ReadonlyArray<string>,
    members: ReadonlyArray<(waitMillis: number) => Asking<E, T>>,
    times: Times
  ) {
    this.name = name
    this.subjects = subjects
    this.#members = members
    this.#times = times
  }

  get label(): string {
    return "multi"
  }

  tryAcquire(restore: Restore): Effect.Effect<Option.Option<Held<Tokens<T>>>, LockStoreError | E> {
    return Effect.suspend(() => {
      const held: Array<Held<T> | undefined> = this.#members.map(() => undefined)
      const none = Effect.suspend(() => Effect.as(giveBack(held), Option.none<Held<Tokens<T>>>()))
      return this.#orNone(
        held,
        Effect.flatMap(this.#tryRest(held, restore), (round) =>
          round._tag === "Won"
            ? // one member may have run out while another was asked for
              Effect.catchTag(Effect.asSome(this.#complete(held)), "LockLost", () => none)
            : none
        )
      )
    })
  }

  acquire(restore: Restore): Effect.Effect<Held<Tokens<T>>, AcquireError | E> {
    return Effect.suspend(() => {
      const held: Array<Held<T> | undefined> = this.#members.map(() => undefined)
      return this.#orNone(held, this.#rounds(held, restore))
    })
  }

  /** However it fails, what was won is given back. */
  #orNone<A, E2>(held: Array<Held<T> | undefined>, self: Effect.Effect<A, E2>): Effect.Effect<A, E2> {
    return Effect.matchCauseEffect(self, {
      onSuccess: Effect.succeed,
      onFailure: (cause) => Effect.andThen(giveBack(held), Effect.failCause(cause))
    })
  }

  *#canonicalOrder(): Iterable<number> {
    const names = this.#members.map((member, index) => ({ index, name: member(0).name }))
    names.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : a.index - b.index))
    for (const { index } of names) yield index
  }

  readonly #rounds = Effect.fnUntraced(function* (
    this: AskingAll<E, T>,
    held: Array<Held<T> | undefined>,
    restore: Restore
  ): Effect.fn.Return<Held<Tokens<T>>, AcquireError | E> {
    const startedAt = yield* now
    const until = startedAt + this.#times.waitMillis
    let blocker: number | undefined
    for (let round = 0; ; round++) {
      let isDenied = false
      if (round < roundsAtOnce || round % 2 === 1) {
        // the one that was taken is waited for with nothing else in hand
        if (blocker !== undefined) {
          held[blocker] = yield* this.#wait(blocker, until - (yield* now), startedAt, restore)
        }
        const tried: Round = yield* this.#tryRest(held, restore)
        if (tried._tag === "Denied") {
          isDenied = true
          blocker = tried.index
        }
      } else {
        for (const index of this.#canonicalOrder()) {
          const left = until - (yield* now)
          const patience = Math.min(left, this.#patience())
          const waited = yield* Effect.result(this.#wait(index, patience, startedAt, restore))
          if (waited._tag === "Success") {
            held[index] = waited.success
          } else if (patience < left && waited.failure instanceof LockTimeout) {
            isDenied = true
            blocker = index
            break
          } else {
            return yield* Effect.fail(waited.failure)
          }
        }
      }
      if (!isDenied) {
        const completed = yield* Effect.result(this.#complete(held))
        if (completed._tag === "Success") return completed.success
        if (completed.failure._tag !== "LockLost") return yield* Effect.fail(completed.failure)
      }
      yield* giveBack(held)
      const time = yield* now
      if (time >= until) {
        return yield* new LockTimeout({
          name: this.name,
          waited: Duration.millis(time - startedAt),
          holder: undefined
        })
      }
      // those who met here should not meet again
      yield* restore(Effect.sleep(Math.random() * Math.min(2 ** round, 16)))
    }
  })

  #patience(): number {
    const longest = Math.min(patienceMillis, (this.#times.leaseMillis ?? Number.POSITIVE_INFINITY) / 3)
    return longest * (0.5 + Math.random() / 2)
  }

  #wait(
    index: number,
    waitMillis: number,
    startedAt: number,
    restore: Restore
  ): Effect.Effect<Held<T>, AcquireError | E> {
    return Effect.catchCause(this.#members[index]!(Math.max(0, waitMillis)).acquire(restore), (cause) => {
      const timeout = cause.reasons.find((reason) => reason._tag === "Fail" && reason.error instanceof LockTimeout)
      if (timeout === undefined) return Effect.failCause(cause)
      const { holder } = (timeout as unknown as { readonly error: LockTimeout }).error
      return Effect.flatMap(now, (time) =>
        Effect.fail(new LockTimeout({ name: this.name, waited: Duration.millis(time - startedAt), holder }))
      )
    })
  }

  /** Asks for all that is not held yet, at once; those that one command can take, by one command. */
  #tryRest(held: Array<Held<T> | undefined>, restore: Restore): Effect.Effect<Round, LockStoreError | E> {
    const groups = new Map<string, Array<{ readonly index: number; readonly asking: Asking<E, T> }>>()
    for (let index = 0; index < held.length; index++) {
      if (held[index] !== undefined) continue
      const asking = this.#members[index]!(0)
      const group = (asking instanceof AskingOne ? asking.group : undefined) ?? String(index)
      const others = groups.get(group)
      if (others === undefined) groups.set(group, [{ index, asking }])
      else others.push({ index, asking })
    }
    let denied: number | undefined
    const tries = [...groups.values()].map(
      (group) =>
        (restore: Restore): Effect.Effect<void, LockStoreError | E> =>
          group.length === 1
            ? Effect.map(group[0]!.asking.tryAcquire(restore), (hold) => {
                if (Option.isNone(hold)) denied ??= group[0]!.index
                else held[group[0]!.index] = hold.value
              })
            : Effect.map(
                tryAcquireTogether(
                  group.map(({ asking }) => asking as unknown as Acquisition),
                  restore
                ),
                (holds) => {
                  if ("index" in holds) denied ??= group[holds.index]!.index
                  else for (let i = 0; i < group.length; i++) held[group[i]!.index] = holds[i]! as unknown as Held<T>
                }
              )
    )
    const tried =
      tries.length === 1
        ? tries[0]!(restore)
        : // each notes what it got even when the others fail or the whole is interrupted
          restore(Effect.forEach(tries, Effect.uninterruptibleMask, { concurrency: "unbounded", discard: true }))
    return Effect.map(tried, (): Round => (denied === undefined ? { _tag: "Won" } : { _tag: "Denied", index: denied }))
  }

  /** All are held: a fixed lease runs from now on, for each. */
  #complete(held: ReadonlyArray<Held<T> | undefined>): Effect.Effect<Held<Tokens<T>>, LockLost | LockStoreError> {
    const hold = new MultiHold(this.name, held as ReadonlyArray<Held<T>>)
    const { leaseMillis } = this.#times
    const isOneGrant = new Set(hold.holds.map(({ possession }) => possession.acquiredAt)).size === 1
    return Effect.as(
      leaseMillis === undefined || isOneGrant
        ? hold.ensureHeld
        : // the lease has been checked
          Effect.catchTag(hold.renew(leaseMillis), "InvalidLockOptions", Effect.die),
      hold
    )
  }
}

const now = Effect.clockWith((clock) => Effect.sync(() => Number(clock.monotonicTimeNanosUnsafe()) / 1e6))

/** Gives back what was won; whatever becomes of a release, it goes on by itself or the lease ends. */
const giveBack = <T>(held: Array<Held<T> | undefined>): Effect.Effect<void> =>
  Effect.suspend(() => {
    const won = held.filter((member) => member !== undefined)
    held.fill(undefined)
    return won.length === 0 ? Effect.void : Effect.ignore(releaseAll(won))
  })
