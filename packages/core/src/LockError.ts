/**
 * Every way in which working with a lock can fail, as tagged errors.
 *
 * They are schema classes: RPC sends them as their schemas encode them, and logs show them as JSON with their message,
 * which says what happened, to which lock, and what to do about it. Their field `lock` is the name of the lock.
 *
 * @since 0.1.0
 */
import * as Duration from "effect/Duration"
import * as Schema from "effect/Schema"
import { causeText, isError, jsonWithMessage, kept, nameOf, shown, seconds } from "./internal/report/shown.ts"
import { consequences, storeReasons } from "./internal/report/storeReasons.ts"

/**
 * The holder of a lock, as far as known: the owner (`<client uuid>:<id>`) and how long its lease still runs. `remaining` is
 * absent for a key without expiry. `label` is that of its client (see `RedisLock.layer`), and `since` for how long it has held
 * the lock; absent for clients of Redisson, where a client has held and waited for less than a second, and where the caller
 * has waited for less than that: it does not ask then.
 *
 * @category models
 * @since 0.1.0
 */
export const Holder = Schema.Struct({
  owner: Schema.String,
  remaining: Schema.UndefinedOr(Schema.Duration),
  label: Schema.optional(Schema.String),
  since: Schema.optional(Schema.Duration)
})

/**
 * The type of {@link Holder}.
 *
 * @category models
 * @since 0.1.0
 */
export type Holder = typeof Holder.Type

const holderText = ({ label, owner, since }: Holder): string =>
  label === undefined ? owner : `${label} (${owner})${since === undefined ? "" : ` for ${seconds(since)}`}`

/**
 * The lock was not free within `waitTime`. A value to catch, not a fault: nothing was acquired and nothing is left
 * behind. `waited` is zero if `waitTime` was.
 *
 * `holder` is the last holder seen. A fair lock may have been free, with another waiter ahead of this one: then there is no
 * holder, and `next` is the owner that was first in the queue. A semaphore has no single holder: `permits` says how many
 * were wanted, and how many were free at the last request.
 *
 * @example
 * ```ts
 * import { Effect } from "effect"
 * import { Lock } from "effect-redis-lock"
 *
 * const report = Effect.succeed("written")
 *
 * const program = report.pipe(
 *   Lock.withLock("report", { waitTime: "2 seconds" }),
 *   Effect.catchTag("LockTimeout", (timeout) => Effect.succeed(`busy: ${timeout.holder?.owner}`))
 * )
 * ```
 *
 * @category errors
 * @since 0.1.0
 */
export class LockTimeout extends Schema.TaggedError<LockTimeout>("effect-redis-lock/LockTimeout")("LockTimeout", {
  lock: Schema.String,
  waited: Schema.Duration,
  holder: Schema.UndefinedOr(Holder),
  next: Schema.optional(Schema.String),
  permits: Schema.optional(
    Schema.Struct({
      wanted: Schema.Number,
      available: Schema.UndefinedOr(Schema.Number),
      /** False if there was no such semaphore. */
      exists: Schema.optional(Schema.Boolean)
    })
  )
}) {
  override get message(): string {
    const within = withinText(this.waited)
    if (this.permits !== undefined) return noPermitsText(this.lock, within, this.permits)
    if (this.next !== undefined) {
      return `Lock "${this.lock}" was free, but ${this.next} is first in its queue${within && `, and did not acquire it${within}`}.`
    }
    const held =
      this.holder === undefined
        ? ""
        : `; held by ${holderText(this.holder)}` +
          (this.holder.remaining === undefined
            ? " without expiry"
            : `; its lease runs for another ${seconds(this.holder.remaining)}` +
              // nobody renews what a minHold keeps
              (this.holder.owner.endsWith(kept) ? "" : ", longer if it is renewed"))
    return `Lock "${this.lock}" was not free${within}${held}.`
  }
}

/** Nothing for a caller that did not wait: how long its one request took says nothing. */
const withinText = (waited: Duration.Duration): string => (Duration.isZero(waited) ? "" : ` within ${seconds(waited)}`)

const noPermitsText = (
  semaphore: string,
  within: string,
  { available, exists, wanted }: NonNullable<LockTimeout["permits"]>
): string =>
  exists === false
    ? `Semaphore "${semaphore}" did not exist${within}. Create it with trySetPermits, or pass permits to make.`
    : `Semaphore "${semaphore}" did not have ${wanted} free permit${wanted === 1 ? "" : "s"}${within}` +
      (available === undefined ? "." : `; it had ${available}.`)

/**
 * The latch did not open within `waitTime`. `count` is its count when it was last read. A value to catch, not a fault.
 *
 * @example
 * ```ts
 * import { Effect } from "effect"
 * import { CountDownLatch } from "effect-redis-lock"
 *
 * const program = CountDownLatch.await("imports-done", { waitTime: "1 minute" }).pipe(
 *   Effect.catchTag("LatchTimeout", (timeout) => Effect.log(`${timeout.count} imports still run`))
 * )
 * ```
 *
 * @category errors
 * @since 0.2.0
 */
export class LatchTimeout extends Schema.TaggedError<LatchTimeout>("effect-redis-lock/LatchTimeout")("LatchTimeout", {
  latch: Schema.String,
  waited: Schema.Duration,
  count: Schema.Number
}) {
  override get message(): string {
    return `Latch "${this.latch}" did not open${withinText(this.waited)}; its count was ${this.count}.`
  }
}

/**
 * How a lock was lost.
 *
 * - `Expired`: the lease ran out: a fixed `leaseTime` was too short, or the process was stopped or blocked for longer
 *   than the lease (`stalled`).
 * - `NotOwner`: Redis says that the lock is not ours: it was force-released, deleted or evicted, or Redis lost its data.
 * - `RenewalFailed`: the renewals failed, or were not answered, until the lease ran out.
 * - `HeldTooLong`: it was held for its `maxHold`, and was not renewed any longer.
 * - `ClientClosed`: the scope of its client (of the layer) was closed, which releases all locks.
 * - `Released`: it was released, not lost: `ensureHeld` or `renew` was called on a holding that has ended.
 *
 * @category models
 * @since 0.1.0
 */
export const LossReason = Schema.Literals([
  "Expired",
  "NotOwner",
  "RenewalFailed",
  "HeldTooLong",
  "ClientClosed",
  "Released"
])

/**
 * The type of {@link LossReason}.
 *
 * @category models
 * @since 0.1.0
 */
export type LossReason = typeof LossReason.Type

/** How a lock was lost, and what to do about it. */
const lossText = ({ cause, permits, reason, stalled }: LockLost): string => {
  switch (reason) {
    case "Expired":
      return stalled === true
        ? "its lease ran out while the process was stopped or blocked"
        : "its lease ran out before it was released. Renew it (leave out leaseTime), or choose a longer lease"
    case "NotOwner":
      return (
        (permits === undefined
          ? "Redis no longer has it under this owner: it was force-released, deleted or evicted"
          : "Redis no longer has it: it was released by its id, or its semaphore was force-released, deleted or evicted") +
        ", or Redis lost its data. Find out who did that; INFO tells evicted_keys and uptime_in_seconds"
      )
    case "RenewalFailed":
      return `it was not renewed before its lease ran out: ${renewalText(cause)}`
    case "HeldTooLong":
      return "it was held for its maxHold. Find out why its section takes so long, or choose a longer maxHold"
    case "ClientClosed":
      return "its client was closed while it was held, and released it. Close it after the work"
    case "Released":
      return "its own holder has released it"
  }
}

const renewalText = (cause: unknown): string =>
  isError(cause) && cause instanceof LockStoreError
    ? storeReasons[cause.reason]
    : isError(cause)
      ? causeText(cause)
      : "the renewal failed"

/**
 * A lock that was held is no longer held. The work under it was interrupted (`withLock`) or must stop (`scoped`); somebody
 * else may hold the lock by now.
 *
 * `late` is how long after the deadline the loss was noticed, zero if it was noticed before; `cause` is the last failure of
 * the renewal. `stalled` is true if this process is known to have been stopped or blocked: its own timer for the end of the
 * lease fired late. Of permits, `permits` is their number, and `owner` lists their ids: the first ones, and how many more there are.
 *
 * @category errors
 * @since 0.1.0
 */
export class LockLost extends Schema.TaggedError<LockLost>("effect-redis-lock/LockLost")("LockLost", {
  lock: Schema.String,
  owner: Schema.String,
  reason: LossReason,
  late: Schema.Duration,
  stalled: Schema.optional(Schema.Boolean),
  permits: Schema.optional(Schema.Number),
  cause: Schema.optional(Schema.Defect())
}) {
  override get message(): string {
    const what =
      this.permits === undefined
        ? `Lock "${this.lock}"`
        : `The hold of ${this.permits} permit${this.permits === 1 ? "" : "s"} of semaphore "${this.lock}"`
    const late =
      Duration.toMillis(this.late) < 1
        ? ""
        : ` Noticed ${seconds(this.late)} after the lease had ended` +
          (this.stalled === true && this.reason !== "Expired" ? ", as the process was stopped or blocked." : ".")
    return `${what} was lost: ${lossText(this)}.${late}`
  }
}

/**
 * The operation needs a lock that the current owner does not hold; with `isElection`, a leadership that `LeaderElection.whileLeader` did
 * not give to the running code.
 *
 * @category errors
 * @since 0.1.0
 */
export class NotLockOwner extends Schema.TaggedError<NotLockOwner>("effect-redis-lock/NotLockOwner")("NotLockOwner", {
  lock: Schema.String,
  isElection: Schema.optionalKey(Schema.Literal(true))
}) {
  override get message(): string {
    return this.isElection
      ? `The running code is not the work of a LeaderElection.whileLeader of election "${this.lock}". ` +
          `Ask inside that work; LeaderElection.campaign returns its leadership instead.`
      : `Lock "${this.lock}" is not held by the current owner. ` +
          `Ask inside Lock.withLock, in the fiber or scope that acquired it, or under Lock.withOwner.`
  }
}

/**
 * The current owner already holds the lock in a way that cannot be extended: waiting would be a deadlock with itself.
 *
 * - `reenter`: the holder of a `NonReentrantLock` tried to acquire it again.
 * - `upgrade`: a reader of a `ReadWriteLock` tried to acquire the write lock. Release the read lock first, or acquire the
 *   write lock from the start: a writer may read.
 *
 * @category errors
 * @since 0.2.0
 */
export class LockReentered extends Schema.TaggedError<LockReentered>("effect-redis-lock/LockReentered")(
  "LockReentered",
  {
    lock: Schema.String,
    attempt: Schema.Literals(["reenter", "upgrade"])
  }
) {
  override get message(): string {
    return this.attempt === "upgrade"
      ? `The current owner reads under lock "${this.lock}" and cannot write as well. ` +
          `Release the read lock first, or acquire the write lock from the start: a writer may read.`
      : `Lock "${this.lock}" is already held by the current owner, and this kind of lock cannot be acquired twice.`
  }
}

/**
 * The name is not a valid name. No command was sent.
 *
 * @category errors
 * @since 0.1.0
 */
export class InvalidLockName extends Schema.TaggedError<InvalidLockName>("effect-redis-lock/InvalidLockName")(
  "InvalidLockName",
  {
    lock: Schema.String,
    problem: Schema.String
  }
) {
  override get message(): string {
    return `${shown(this.lock)} cannot name a lock: ${this.problem}.`
  }
}

/**
 * An option is out of range. No command was sent.
 *
 * @category errors
 * @since 0.1.0
 */
export class InvalidLockOptions extends Schema.TaggedError<InvalidLockOptions>("effect-redis-lock/InvalidLockOptions")(
  "InvalidLockOptions",
  {
    option: Schema.String,
    problem: Schema.String
  }
) {
  override get message(): string {
    return `${this.option}: ${this.problem}.`
  }
}

/**
 * Why Redis could not run an operation.
 *
 * After `ConnectionLost` and `TimedOut` the outcome is unknown: the command may have run. The library rolls back an acquisition
 * that ends this way.
 *
 * @category models
 * @since 0.1.0
 */
export const StoreReason = Schema.Literals(Object.keys(storeReasons) as ReadonlyArray<keyof typeof storeReasons>)

/**
 * The type of {@link StoreReason}.
 *
 * @category models
 * @since 0.1.0
 */
export type StoreReason = typeof StoreReason.Type

/** What has the name in the field `lock`; a grant is confirmed alike whatever was granted. */
const nounOf = (operation: string): string => {
  if (/^(permit_)?semaphore\/|^release \(the permits/.test(operation)) return "Semaphore"
  if (operation.startsWith("latch/")) return "Latch"
  return operation.startsWith("grant/") ? "Grant of" : "Lock"
}

/**
 * Redis, or another store, could not run an operation. `reason` distinguishes the cases, `operation` names the attempted
 * operation.
 *
 * **Gotchas**
 *
 * A section fails with it also after its work has succeeded, if Redis does not confirm the release: then `workDone` is true, and `isTransient`
 * is false whatever the reason, so that a retry like that below does not do the work twice.
 *
 * @example
 * ```ts
 * import { Effect, Schedule } from "effect"
 * import { Lock } from "effect-redis-lock"
 *
 * // a waiting caller outlives a restart of Redis anyway; one that tries only once has to retry
 * const patient = Effect.succeed("written").pipe(
 *   Lock.withLock("report", { waitTime: 0 }),
 *   Effect.retry({
 *     while: (error) => error._tag === "LockStoreError" && error.isTransient,
 *     schedule: Schedule.spaced("500 millis"),
 *     times: 20
 *   })
 * )
 * ```
 *
 * @category errors
 * @since 0.1.0
 */
export class LockStoreError extends Schema.TaggedError<LockStoreError>("effect-redis-lock/LockStoreError")(
  "LockStoreError",
  {
    operation: Schema.String,
    lock: Schema.String,
    reason: StoreReason,
    /** With `WrongType`: the type expected under this name, and the type found there. */
    expected: Schema.optional(Schema.String),
    found: Schema.optional(Schema.String),
    /**
     * True if some servers of a quorum have run the command, or may have, though too few; or if a grant could not be confirmed
     * (`acknowledge`), as its server refused or did not answer. Whatever the reason.
     */
    mayHaveRun: Schema.optional(Schema.Boolean),
    /**
     * True if the work under the lock is done, but Redis has not confirmed its release, or that the result of a `RunOnce` is stored. Running
     * the section again would repeat the work.
     */
    workDone: Schema.optional(Schema.Boolean),
    cause: Schema.optional(Schema.Defect())
  }
) {
  override get message(): string {
    if (this.expected !== undefined && this.found !== undefined) {
      return (
        `"${this.lock}" is not a ${this.expected}: the name is taken by ${this.found} (WRONGTYPE). ` +
        `Choose another name, or a key prefix.`
      )
    }
    // their texts say everything about an acquisition
    const name = nameOf(this.cause)
    const isAcquisition = this.workDone !== true && !this.operation.startsWith("release")
    if (
      isAcquisition &&
      (name === "effect-redis-lock/QuorumNotReached" || name === "effect-redis-lock/LockNotReplicated")
    ) {
      return causeText(this.cause)
    }
    const cause = isError(this.cause) ? ` (${causeText(this.cause)})` : ""
    const done = this.workDone === true ? " (the work is done)" : ""
    return `${nounOf(this.operation)} "${this.lock}"${done}, ${this.operation}: ${storeReasons[this.reason]}.${cause}`
  }

  /**
   * Whether the command may have run although it failed; of a quorum, on any of its servers.
   */
  get isOutcomeUnknown(): boolean {
    return this.mayHaveRun === true || consequences[this.reason].ran === "unknown"
  }

  /**
   * Whether the same call may succeed a little later, and has done nothing yet: never with `workDone`.
   */
  get isTransient(): boolean {
    return this.workDone !== true && consequences[this.reason].again === "soon"
  }
}

/**
 * A lock on several servers could not be acquired, because too many of them failed: fewer than `required` of the `members`
 * can have granted it (`acquired` did, and were released again; zero for a re-entry, after which the lock is held as before).
 * `failures` says why each of the others failed. Try again when more servers answer.
 *
 * @category errors
 * @since 0.2.0
 */
export class QuorumNotReached extends Schema.TaggedError<QuorumNotReached>("effect-redis-lock/QuorumNotReached")(
  "QuorumNotReached",
  {
    lock: Schema.String,
    acquired: Schema.Int,
    required: Schema.Int,
    members: Schema.Int,
    failures: Schema.Array(Schema.Struct({ member: Schema.String, reason: StoreReason, message: Schema.String }))
  }
) {
  /**
   * Whether the same call may succeed a little later: without the servers that failed for permanent reasons there is still
   * a majority.
   */
  get isTransient(): boolean {
    const lasting = this.failures.filter(({ reason }) => consequences[reason].again !== "soon")
    return this.members - lasting.length >= this.required
  }

  override get message(): string {
    const failures = memberFailuresText(this.failures)
    // a re-entry grants nothing, nor does a look at the lock
    const granted = this.acquired === 0 ? "too few agreed" : `${this.acquired} granted it`
    return `Lock "${this.lock}" needs ${this.required} servers, and ${granted}.${failures}`
  }
}

/** The failures of a quorum's members, grouped by reason; without repeating a text. */
const memberFailuresText = (all: QuorumNotReached["failures"]): string => {
  const reasons = new Map<StoreReason, Map<string, Array<string>>>()
  for (const { member, message, reason } of all) {
    const texts = reasons.get(reason) ?? new Map<string, Array<string>>()
    reasons.set(reason, texts.set(message, [...(texts.get(message) ?? []), member]))
  }
  const failures = [...reasons].map(([reason, texts]) => {
    const members = [...texts].map(([message, members]) => `${members.join(", ")} (${message})`)
    return ` ${members.join(", ")}: ${storeReasons[reason]}.`
  })
  return failures.join("")
}

/**
 * A lock or permits were granted, but too few replicas acknowledged the grant in time. The grant was rolled back. See the option
 * `acknowledge`. It is the `cause` of a `LockStoreError` with the reason `NotReplicated`.
 *
 * `wanted` and `acknowledged` are numbers of replicas. A waiter does not
 * retry by itself: the caller decides whether to retry.
 *
 * @example
 * ```ts
 * import { Effect } from "effect"
 * import { Lock, LockNotReplicated } from "effect-redis-lock"
 *
 * const payOut = Effect.succeed("paid")
 *
 * const program = payOut.pipe(
 *   Lock.withLock("payout", { acknowledge: { replicas: "all", within: "500 millis" } }),
 *   Effect.catchIf(
 *     (error) => error._tag === "LockStoreError" && error.cause instanceof LockNotReplicated,
 *     () => Effect.succeed("later: a replica is down")
 *   )
 * )
 * ```
 *
 * @category errors
 * @since 0.3.0
 */
export class LockNotReplicated extends Schema.TaggedError<LockNotReplicated>("effect-redis-lock/LockNotReplicated")(
  "LockNotReplicated",
  {
    lock: Schema.String,
    wanted: Schema.Int,
    acknowledged: Schema.Int,
    within: Schema.Duration
  }
) {
  override get message(): string {
    const { acknowledged, lock, wanted, within } = this
    return (
      `Lock "${lock}" was granted, but only ${acknowledged} of the ${wanted} replica${wanted === 1 ? "" : "s"} that it needs ` +
      `acknowledged it within ${seconds(within)}, so the grant was undone. Look at the replicas (INFO replication on the ` +
      `master), give them more time (acknowledge.within), or ask for fewer.`
    )
  }
}

/**
 * The failures of everything that sends a command: `InvalidLockName` and `InvalidLockOptions` before it is sent, then `LockStoreError`.
 *
 * @category errors
 * @since 0.3.0
 */
// looked up in an object type, so that editors show the failures and not this name
export type CommandError = { readonly union: LockStoreError | InvalidLockName | InvalidLockOptions }["union"]

/**
 * The failures of acquiring a lock of any kind.
 *
 * @category errors
 * @since 0.1.0
 */
export type AcquireError = LockTimeout | CommandError

/**
 * The failure that a limited wait adds to those of acquiring: a `Timeout`, or none without a `waitTime`, when the wait has no
 * limit.
 *
 * @category type-level
 * @since 0.3.0
 */
export type TimeoutOf<WaitTime, Timeout = LockTimeout> = [WaitTime] extends [undefined] ? never : Timeout

/**
 * The `waitTime` of some options, `undefined` if they have none.
 *
 * @category type-level
 * @since 0.3.0
 */
export type WaitTimeOf<Options> = "waitTime" extends keyof Options ? Options["waitTime"] : undefined

for (const error of [
  LockTimeout,
  LatchTimeout,
  LockLost,
  NotLockOwner,
  LockReentered,
  InvalidLockName,
  InvalidLockOptions,
  LockStoreError,
  QuorumNotReached,
  LockNotReplicated
])
  jsonWithMessage(error)
