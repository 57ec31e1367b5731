/**
 * Watches every holding of a client: renews those without a fixed lease every third of the lease, in
 * batches, and declares lost what has passed its deadline.
 */
import * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { type LockLost, LockStoreError } from "../../LockError.ts"
import type { LockClient } from "../client/LockClient.ts"
import { sizeOf } from "../kinds/kinds.ts"
import { deadlineOf, leaseUntil } from "../options/acquireOptions.ts"
import type { Leases } from "../store/operations/lock.ts"
import { type StoreCommand, undecided } from "../store/operations/StoreOperation.ts"
import { fromCallback, start } from "../store/startable.ts"
import { type Alarm, DueQueue } from "../time/clock.ts"
import type { Lease } from "./Lease.ts"

/** Keys and permits per renewal command: enough to be cheap, few enough not to hold up the server. */
const batchSize = 200

/**
 * Leases that fall due within this share of the interval are renewed along with what is due, so that renewals gather into
 * batches.
 */
const gather = 0.1

export class Watchdog implements Alarm {
  readonly #client: LockClient
  readonly #queue = new DueQueue<Lease>()
  /** How long before its deadline a lease is renewed, in milliseconds: a third of it after it began to run. */
  readonly #leadMillis: number
  due = 0
  heapIndex = -1

  constructor(client: LockClient) {
    this.#client = client
    const { renewIntervalMillis, watchdogLeaseMillis } = client.options
    this.#leadMillis = deadlineOf(0, watchdogLeaseMillis) - renewIntervalMillis
  }

  get #isOnCluster(): boolean {
    const { store } = this.#client
    return store.slot("a") !== store.slot("b")
  }

  /** Begins to watch, or takes note of a changed deadline. */
  watch(lease: Lease): void {
    if (!lease.kind.isLeased) return
    this.#client.tracking.wrote(lease)
    this.reschedule(lease)
  }

  /** Takes note of a changed deadline, or of a hold that came or went. */
  reschedule(lease: Lease): void {
    if (lease.unconfirmed !== undefined) return
    const { deadline, endsAt, renewedHolds } = lease
    this.#put(lease, renewedHolds > 0 ? Math.min(endsAt, deadline - this.#leadMillis) : deadline)
  }

  /**
   * Begins to watch a lease that was handed over: the command that extends it to the lease that was asked for is sent at once. Returns
   * whether it was.
   */
  extend(lease: Lease): boolean {
    this.#renew([lease], this.#client.now())
    if (lease.renewalFailure === undefined && lease.lost === undefined) return true
    this.unwatch(lease)
    return false
  }

  unwatch(lease: Lease): void {
    if (!lease.kind.isLeased) return
    this.#client.tracking.wrote(lease)
    // The alarm stays: it finds nothing due, and is rarely worth moving.
    this.#queue.remove(lease)
  }

  /**
   * Another server may answer now, which does not know some leases, and of a lock that was handed over perhaps the short one alone. What
   * somebody has given a permit is left to it.
   */
  verifyAll(): void {
    const { leases } = this
    this.verify(leases.filter(({ kind }) => kind.mode === "permit"))
    this.verifyLength(leases.filter(({ kind }) => kind.mode !== "permit"))
  }

  /** Checks at once that Redis still has these leases. A lease that is there keeps its length, and the time of its next renewal. */
  verify(leases: ReadonlyArray<Lease>): void {
    this.inBatches(held(leases), batchSize, (batch) => this.#verify(batch, 0))
  }

  /**
   * {@link verify} for leases that somebody may have shortened: extends them again, until Redis keeps them as long as they last here.
   */
  verifyLength(leases: ReadonlyArray<Lease>): void {
    const now = this.#client.now()
    this.inBatches(held(leases), batchSize, (batch) => {
      const lengths = batch.map((lease) => Math.max(0, leaseUntil(lease.deadline, now)))
      for (let i = 0; i < batch.length; i++) batch[i]!.asksFor(lengths[i]!, now)
      this.#verify(batch, lengths)
    })
  }

  get leases(): ReadonlyArray<Lease> {
    return this.#queue.items
  }

  #put(lease: Lease, due: number): void {
    lease.due = due
    this.#queue.put(lease)
    if (this.heapIndex === -1 || due < this.due) this.#client.alarms.set(this, due)
  }

  /** Serves what is due, and sets the alarm for what is due next. */
  ring(now: number): void {
    const horizon = now + this.#client.options.renewIntervalMillis * gather
    const renewals: Array<Lease> = []
    for (let next = this.#queue.first; next !== undefined; next = this.#queue.first) {
      // one that was handed over asks for its own lease, alone and not early
      const isAlone = next.unconfirmed !== undefined
      const toRenew = (isAlone || next.renewedHolds > 0) && next.due < next.endsAt
      if (next.due > (toRenew && !isAlone ? horizon : now)) break
      this.#queue.remove(next)
      if (next.checkLost(now) !== undefined) continue
      if (!toRenew) {
        // due early for a renewal that nobody needs any more
        if (now < next.endsAt) this.#put(next, next.endsAt)
      } else if (isAlone) {
        this.#renew([next], now)
      } else {
        renewals.push(next)
      }
    }
    this.inBatches(renewals, batchSize, (batch) => this.#renew(batch, now))
    this.#client.tracking.track(renewals)
    // changes nothing where it is still there; a failure leaves it to the next renewal
    const send = (command: StoreCommand<unknown>) => Effect.ignore(this.#client.run(command))
    const records = recordsOf(renewals)
    if (records.length > 0) this.#client.fork(Effect.forEach(records, send, { concurrency: batchSize, discard: true }))
    const { first } = this.#queue
    if (first !== undefined) this.#client.alarms.set(this, first.due)
  }

  /** One command serves leases of one mode and slot, together of at most this size; `sizeOfOne` says what each counts. */
  inBatches(
    leases: Iterable<Lease>,
    size: number,
    send: (batch: ReadonlyArray<Lease>) => void,
    sizeOfOne = sizeOf
  ): void {
    const groups = Arr.groupBy(leases, ({ keys, kind }) => `${kind.mode} ${this.#client.store.slot(keys.lock)}`)
    for (const group of Object.values(groups)) {
      while (group.length > 0) {
        let left = size
        const end = group.findIndex((lease, i) => (left -= sizeOfOne(lease)) < 0 && i > 0)
        send(group.splice(0, end === -1 ? group.length : end))
      }
    }
  }

  /**
   * A renewal by nothing writes nothing, but its reply says which leases are still held. A failure says nothing; what may have been shortened
   * is extended the next time.
   */
  #verify(batch: ReadonlyArray<Lease>, leases: Leases): void {
    this.#client.fork(
      Effect.matchCause(this.#client.run(batch[0]!.kind.renew(batch, leases)), {
        onSuccess: (replies) => {
          for (let i = 0; i < batch.length; i++) {
            const lease = batch[i]!
            if (replies[i] === 0 && !lease.released) lease.lose("NotOwner")
          }
        },
        onFailure: () => {
          if (leases !== 0) this.#client.tracking.writes(batch.map(({ keys }) => keys.lock))
        }
      })
    )
  }

  /** Renews a lease for one of its holds. An interruption only ends the wait. */
  renew(lease: Lease, leaseMillis: number, isRenewed: boolean): Effect.Effect<void, LockLost | LockStoreError> {
    const { now, tracking } = this.#client
    return fromCallback((resume) => {
      tracking.wrote(lease)
      this.#renew([lease], now(), leaseMillis, (exit) => {
        const [reply] = Exit.isSuccess(exit) ? exit.value : []
        if (reply === 1 && !isRenewed) lease.fix()
        if (reply === 0) resume(Effect.fail(lease.lose("NotOwner")))
        else resume(Effect.asVoid(exit))
      })
      return { cancel: () => {} }
    })
  }

  /**
   * Sends one batch, in this turn: a section that was handed the lock may block the next one. A server that hangs must not hold up the others,
   * nor the deadlines.
   */
  #renew(
    batch: ReadonlyArray<Lease>,
    sentAt: number,
    leaseMillis = batch[0]!.unconfirmed ?? this.#client.options.watchdogLeaseMillis,
    then?: (exit: Exit.Exit<ReadonlyArray<number>, LockStoreError>) => void
  ): void {
    // until the reply is there, the deadline is what is due
    for (const lease of batch) {
      lease.renews(leaseMillis, sentAt)
      this.#put(lease, lease.endsAt)
    }
    const command = batch[0]!.kind.renew(batch, leaseMillis)
    start(this.#client.run(command), (exit) => {
      const goApart = Exit.isFailure(exit) && batch.length > 1 && this.#isOnCluster && isUnserved(exit.cause)
      for (let i = 0; i < batch.length; i++) {
        const lease = batch[i]!
        // released or lost while the renewal was under way: its reply means nothing
        if (lease.released || lease.lost !== undefined) continue
        if (Exit.isFailure(exit)) this.#failed(lease, Cause.squash(exit.cause), goApart)
        else if (exit.value[i] === 0) lease.lose("NotOwner")
        else if (exit.value[i] === undecided) this.#failed(lease, new Error(noMajority))
        else if (lease.confirm(sentAt, leaseMillis) === undefined) {
          lease.renewals--
          this.reschedule(lease)
          // its holder has extended it to less than was asked for
          if (lease.unconfirmed !== undefined) this.#put(lease, Math.min(lease.endsAt, this.#client.now() + 100))
        }
      }
      then?.(exit)
    })
  }

  /** Tries again at once and alone, or well before the deadline, and not all at once. */
  #failed(lease: Lease, failure: unknown, alone = false): void {
    const { options, telemetry } = this.#client
    const now = this.#client.now()
    lease.renewals--
    lease.renewalFailure = failure
    if (alone) {
      if (lease.checkLost(now) === undefined) this.#renew([lease], now)
      return
    }
    telemetry.of(lease.kind.name).renewalFailures++
    const interval = lease.unconfirmed === undefined ? options.renewIntervalMillis : 1000
    this.#put(lease, Math.min(lease.endsAt, now + interval * (0.1 + 0.1 * Math.random())))
  }
}

const noMajority = "no majority of the servers confirmed the renewal"

/**
 * While a slot moves, the master refuses a command whose keys have moved only in part (`TRYAGAIN`), though it serves one of each lease
 * alone. The driver tries again for as long as a command may take, so it may also be late in the end.
 */
const isUnserved = (cause: Cause.Cause<unknown>): boolean => {
  const error = Cause.squash(cause)
  return error instanceof LockStoreError && (error.reason === "ClusterDown" || error.reason === "TimedOut")
}

/** What their holders have published. */
export const recordsOf = (leases: ReadonlyArray<Lease>): ReadonlyArray<StoreCommand<unknown>> =>
  leases.flatMap(({ record }) => record?.command ?? [])

const held = (leases: ReadonlyArray<Lease>): ReadonlyArray<Lease> =>
  leases.filter((lease) => lease.checkLost() === undefined)
