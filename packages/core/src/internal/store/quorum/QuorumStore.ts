/**
 * A store that is kept by a majority of independent stores, as the Redlock specification describes
 * (https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/). Every operation goes to all members at once; what
 * a majority says counts. What the specification says of validity, the owner and the watchdog needs nothing here: a client
 * counts a lease from before the operation was sent, uses each owner once, and takes back what it was not granted.
 *
 * Fencing tokens: a member's token is greater than every token that it has granted or been told. A grant counts only when a
 * majority has its token, or a greater one, on record. Any two majorities have a member in common, so the next grant of the name
 * is greater, however much the members' clocks differ.
 */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import { LockStoreError, QuorumNotReached } from "../../../LockError.ts"
import type { LockStore, Operation } from "../../../LockStore.ts"
import type { Reply, Signal } from "../../../RedisDriver.ts"
import type { Alarm, AlarmClock } from "../../AlarmClock.ts"
import { decide, type Outcome } from "./decide.ts"

export interface Member {
  /** For messages. */
  readonly label: string
  readonly store: LockStore["Service"]
  /** A key or channel of the quorum's lock, as it is called on this member. */
  readonly keyOf: (key: string) => string
}

export interface QuorumSettings {
  /** How long a member may take; undefined: small against the lease. */
  readonly memberTimeoutMillis: number | undefined
  /** The longest pause after a vote that nobody has won. */
  readonly retryMillis: number
  /** The lease of what is asked for without one. */
  readonly watchdogLeaseMillis: number
}

/** These take a lower bound for the token as their last argument. */
const bounded: ReadonlySet<Operation> = new Set<Operation>(["lock/acquire", "write_lock/acquire"])

/** A member of ours may be ahead of the highest clock seen by so much before a second round is needed. */
const boundMarginMicros = 2000

/** A token further ahead of another's is no clock's: somebody has granted or written it under this name. */
const longestSkewMicros = 1_000_000

const shortestTimeoutMillis = 100

/** The outcome of a member whose answer nobody waits for any more. */
const unread: Outcome = Result.succeed(0)

const resubscribe = Schedule.min([Schedule.exponential("100 millis"), Schedule.spaced("5 seconds")])

export class QuorumStore {
  readonly members: ReadonlyArray<Member>
  readonly required: number
  readonly #settings: QuorumSettings
  readonly #alarms: AlarmClock
  readonly #now: () => number
  readonly #fork: (effect: Effect.Effect<void>) => void
  /**
   * The highest clock of the members, less our monotonic one, microseconds: learnt from tokens of members that disagree. Where they
   * agree they have been told by a client, and would be ahead of that client the next time.
   */
  #clockOffset: number | undefined = undefined
  /** Acquisitions that are decided but that some members have not answered yet, by owner. */
  readonly #unanswered = new Map<string, Alarm>()

  constructor(
    members: ReadonlyArray<Member>,
    settings: QuorumSettings,
    alarms: AlarmClock,
    now: () => number,
    fork: (effect: Effect.Effect<void>) => void
  ) {
    this.members = members
    this.required = Math.floor(members.length / 2) + 1
    this.#settings = settings
    this.#alarms = alarms
    this.#now = now
    this.#fork = fork
  }

  get service(): LockStore["Service"] {
    const first = this.members[0]!
    return {
      run: (operation, keys, args) =>
        operation.endsWith("lock/acquire") ? this.#acquire(operation, keys, args) : this.#vote(operation, keys, args),
      subscribe: (channel) => this.#merge((member) => subscription(member, channel)),
      scan: (pattern) => this.#merge((member) => member.store.scan(pattern)),
      publish: first.store.publish,
      slot: (key) => first.store.slot(first.keyOf(key))
    }
  }

  #merge<A>(f: (member: Member) => Stream.Stream<A, LockStoreError>): Stream.Stream<A, LockStoreError> {
    return Stream.mergeAll(this.members.map(f), { concurrency: "unbounded" })
  }

  /** A member's time to answer: long enough for a round trip, small against the lease. */
  #timeout(leaseMillis: number): number {
    return (
      this.#settings.memberTimeoutMillis ?? Math.min(leaseMillis / 4, Math.max(shortestTimeoutMillis, leaseMillis / 50))
    )
  }

  /** Asks all members, until the outcomes so far suffice; what is late counts as failed. */
  #ask<A>(
    operation: Operation,
    keys: ReadonlyArray<string>,
    args: ReadonlyArray<string | number>,
    timeoutMillis: number,
    conclude: (outcomes: ReadonlyArray<Outcome | undefined>, isLast: boolean) => A | undefined,
    acquirer?: string
  ): Effect.Effect<A> {
    return Effect.withFiber((caller) =>
      Effect.callback<A>((resume) => {
        const outcomes: Array<Outcome | undefined> = this.members.map(() => undefined)
        const fibers: Array<Fiber.Fiber<Outcome>> = []
        let pending = this.members.length
        let isOver = false
        const settle = (i: number, outcome: Outcome) => {
          if (outcomes[i] !== undefined) return
          outcomes[i] = outcome
          if (--pending === 0) {
            this.#alarms.cancel(alarm)
            if (acquirer !== undefined) this.#unanswered.delete(acquirer)
          }
          if (isOver) return
          const conclusion = conclude(outcomes, pending === 0)
          if (conclusion === undefined) return
          isOver = true
          if (acquirer !== undefined && pending > 0) this.#unanswered.set(acquirer, alarm)
          resume(Effect.succeed(conclusion))
        }
        const alarm: Alarm = {
          due: 0,
          place: -1,
          ring: () => {
            for (let i = 0; i < fibers.length; i++) {
              if (outcomes[i] !== undefined) continue
              fibers[i]!.interruptUnsafe()
              // an error with its stack is dear, and what is decided reads none
              settle(i, isOver ? unread : Result.fail(this.#late(operation, keys[0]!, timeoutMillis)))
            }
          }
        }
        this.#alarms.set(alarm, this.#now() + timeoutMillis)
        for (let i = 0; i < this.members.length; i++) {
          const { keyOf, store } = this.members[i]!
          const fiber = Effect.runForkWith(caller.context)(Effect.result(store.run(operation, keys.map(keyOf), args)))
          fibers.push(fiber)
          fiber.addObserver((exit) => {
            if (exit._tag === "Success") settle(i, exit.value)
          })
        }
        return Effect.sync(() => {
          this.#alarms.cancel(alarm)
          for (const fiber of fibers) fiber.interruptUnsafe()
        })
      })
    )
  }

  #late(operation: string, name: string, timeoutMillis: number): LockStoreError {
    return new LockStoreError({
      operation,
      name,
      reason: "TimedOut",
      cause: new Error(`no answer within the member timeout of ${Math.round(timeoutMillis)} ms`)
    })
  }

  /** Everything but acquiring. */
  #vote(
    operation: Operation,
    keys: ReadonlyArray<string>,
    args: ReadonlyArray<string | number>
  ): Effect.Effect<Reply, LockStoreError> {
    const timeout = this.#timeout(this.#settings.watchdogLeaseMillis)
    // a member that has to be sent the script once more would be asked to acquire after it was asked to release
    if (operation.endsWith("/release")) this.#unanswered.get(String(args[0]))?.ring(this.#now())
    return Effect.flatMap(
      this.#ask(operation, keys, args, timeout, (outcomes, isLast) =>
        decide(operation, outcomes, this.required, isLast)
      ),
      (decision): Effect.Effect<Reply, LockStoreError> => {
        if (decision._tag === "Undecided") return this.#notReached(operation, keys[0]!, decision.outcomes, 0)
        if (operation.endsWith("/release")) this.#releaseLater(operation, keys, args, decision.outcomes)
        return Effect.succeed(decision.reply)
      }
    )
  }

  /** Members that could not be told of a release are told when they answer again, so that no ghost keeps others out. */
  #releaseLater(
    operation: Operation,
    keys: ReadonlyArray<string>,
    args: ReadonlyArray<string | number>,
    outcomes: ReadonlyArray<Outcome | undefined>
  ): void {
    for (let i = 0; i < outcomes.length; i++) {
      const outcome = outcomes[i]
      if (outcome === undefined || Result.isSuccess(outcome)) continue
      const { keyOf, store } = this.members[i]!
      const again = Effect.retry(store.run(operation, keys.map(keyOf), args), {
        while: (error) => error.isTransient,
        schedule: Schedule.min([Schedule.exponential("50 millis"), Schedule.spaced("1 second")]),
        // a key outlives that only if its lease does
        times: Math.ceil(this.#settings.watchdogLeaseMillis / 1000)
      })
      // the majority has confirmed: what is left there frees itself when its lease ends
      this.#fork(Effect.ignore(again))
    }
  }

  #acquire(
    operation: Operation,
    keys: ReadonlyArray<string>,
    args: ReadonlyArray<string | number>
  ): Effect.Effect<Reply, LockStoreError> {
    const lease = Number(args[1])
    const sentAt = this.#now()
    const bound =
      bounded.has(operation) && this.#clockOffset !== undefined
        ? Math.floor(sentAt * 1000 + this.#clockOffset + boundMarginMicros)
        : undefined
    return Effect.flatMap(
      this.#ask(
        operation,
        keys,
        bound === undefined ? args : [...args, bound],
        this.#timeout(lease),
        (outcomes, isLast) => this.#count(outcomes, isLast),
        String(args[0])
      ),
      (vote): Effect.Effect<Reply, LockStoreError> => {
        switch (vote._tag) {
          case "Won": {
            if (operation === "read_lock/acquire") return Effect.succeed(vote.token)
            if (vote.onRecord < this.required && vote.lowest > 1e15) {
              this.#clockOffset = Math.min(vote.token, vote.lowest + longestSkewMicros) - sentAt * 1000
            }
            return Effect.as(
              vote.onRecord >= this.required
                ? Effect.void
                : this.#record(operation, keys, vote.token, Number(args[2] ?? 0), lease),
              vote.token
            )
          }
          case "Lost":
            return Effect.succeed([
              vote.isSplit ? 0 : vote.remaining,
              vote.owner,
              vote.isPartial ? 1 : 0,
              vote.isSplit ? Math.random() * this.#settings.retryMillis : 0
            ])
          case "Failed":
            return this.#notReached(operation, keys[0]!, vote.outcomes, vote.acquired)
        }
      }
    )
  }

  /** Has a majority take note of a token before its grant counts. */
  #record(
    operation: Operation,
    keys: ReadonlyArray<string>,
    token: number,
    life: number,
    lease: number
  ): Effect.Effect<void, LockStoreError> {
    return Effect.flatMap(
      this.#ask("lock/raise_token", [keys[0]!, keys[1]!], [token, life], this.#timeout(lease), (outcomes, isLast) =>
        decide("lock/raise_token", outcomes, this.required, isLast)
      ),
      (decision) =>
        decision._tag === "Undecided" ? this.#notReached(operation, keys[0]!, decision.outcomes, 0) : Effect.void
    )
  }

  #count(outcomes: ReadonlyArray<Outcome | undefined>, isLast: boolean): Vote | undefined {
    let granted = 0
    let failed = 0
    let pending = 0
    let token = 0
    let lowest = Number.POSITIVE_INFINITY
    let onRecord = 0
    let remaining = -1
    const deniedBy = new Map<string, number>()
    for (const outcome of outcomes) {
      if (outcome === undefined) {
        pending++
      } else if (Result.isFailure(outcome)) {
        failed++
      } else if (typeof outcome.success === "number") {
        granted++
        if (outcome.success > token) onRecord = 0
        token = Math.max(token, outcome.success)
        lowest = Math.min(lowest, outcome.success)
        if (outcome.success === token) onRecord++
      } else {
        const [left, owner] = outcome.success as readonly [number, string]
        deniedBy.set(owner, (deniedBy.get(owner) ?? 0) + 1)
        if (left >= 0) remaining = remaining < 0 ? left : Math.min(remaining, left)
      }
    }
    if (granted >= this.required) return { _tag: "Won", token, lowest, onRecord }
    if (granted + pending >= this.required) return undefined
    if (failed > outcomes.length - this.required) {
      return isLast ? { _tag: "Failed", outcomes, acquired: granted } : undefined
    }
    let holder = ""
    for (const [owner, votes] of deniedBy) if (votes > (deniedBy.get(holder) ?? 0)) holder = owner
    const hasMajority = (deniedBy.get(holder) ?? 0) >= this.required
    if (!hasMajority && granted + failed === 0 && pending > 0) return undefined
    const isPartial = granted + failed + pending > 0
    return {
      _tag: "Lost",
      remaining,
      owner: holder,
      isPartial,
      // where every member has a holder there is somebody to wait for: others whose votes are split, or readers, of whom each
      // member names one
      isSplit: isPartial && !hasMajority
    }
  }

  #notReached(
    operation: string,
    name: string,
    outcomes: ReadonlyArray<Outcome | undefined>,
    acquired: number
  ): Effect.Effect<never, LockStoreError> {
    const failures = outcomes.flatMap((outcome, i) =>
      outcome !== undefined && Result.isFailure(outcome)
        ? [{ member: this.members[i]!.label, reason: outcome.failure.reason, message: outcome.failure.message }]
        : []
    )
    return Effect.fail(
      new LockStoreError({
        operation,
        name,
        reason: failures[0]?.reason ?? "Failed",
        cause: new QuorumNotReached({ name, acquired, required: this.required, failures })
      })
    )
  }
}

type Vote =
  /** A majority has granted; `onRecord` of them know this token, the lowest of theirs is `lowest`. */
  | { readonly _tag: "Won"; readonly token: number; readonly lowest: number; readonly onRecord: number }
  /** Somebody else has it, or nobody. */
  | {
      readonly _tag: "Lost"
      readonly remaining: number
      readonly owner: string
      /** Whether some member may have granted it. */
      readonly isPartial: boolean
      /** Whether nobody is known to have a majority, so that asking again soon may help. */
      readonly isSplit: boolean
    }
  | { readonly _tag: "Failed"; readonly outcomes: ReadonlyArray<Outcome | undefined>; readonly acquired: number }

/** A member's signals, for as long as anybody listens: one member that is down must not silence the others. */
const subscription = ({ keyOf, label, store }: Member, channel: string): Stream.Stream<Signal, LockStoreError> => {
  let isDown = false
  return store.subscribe(keyOf(channel)).pipe(
    Stream.tap(() =>
      Effect.sync(() => {
        isDown = false
      })
    ),
    Stream.tapError((error) =>
      Effect.suspend(() => {
        if (isDown) return Effect.void
        isDown = true
        return Effect.annotateLogs(Effect.logWarning("No wake-up signals from one server of the quorum.", error), {
          member: label
        })
      })
    ),
    Stream.retry(resubscribe)
  )
}
