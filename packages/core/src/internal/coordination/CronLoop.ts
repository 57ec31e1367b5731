/**
 * One process's part in a shared schedule: which tick is due by the server's time, and which process runs it. The last tick
 * is a record beside the lock of the schedule's name, written only under that lock.
 */
import * as Cron from "effect/Cron"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import type { AcquireError, LockLost, LockReentered, LockStoreError } from "../../LockError.ts"
import type { LockClient } from "../client/LockClient.ts"
import type { Hold } from "../hold/Hold.ts"
import type { LockImpl } from "../locks/LockImpl.ts"
import type { LockKeys } from "../store/keys.ts"
import { type LockRecord, read } from "../store/operations/record.ts"
import { jittered } from "../time/schedules.ts"
import { writeRecord } from "./Leadership.ts"
import { withHold, withHoldIfAvailable } from "./withHold.ts"

export interface CronJob<R> {
  readonly cron: Cron.Cron
  /** Runs the tick of this time, epoch milliseconds. */
  readonly execute: (tick: number) => Effect.Effect<void, never, R>
  readonly overlap: "skip" | "wait" | "allow"
  readonly catchUp: "none" | "latest" | "all"
  readonly maxCatchUp: number
  readonly retryDied: boolean
}

/** What Redis knows of a schedule. Times are the server's, epoch milliseconds. */
interface Seen {
  readonly now: number
  /** The last tick that any process has begun, and whether it has ended. */
  readonly last: number | undefined
  readonly isDone: boolean
  /** Whether the process that has begun it still holds the lock. */
  readonly isRunning: boolean
}

type CronError = AcquireError | LockLost | LockReentered

/** The longest single sleep, as timers have a limit. */
const longestSleepMillis = 24 * 60 * 60 * 1000

/** The first pause while another process holds the lock but has begun nothing: it may only be looking, like this one. */
const firstPauseMillis = 20

const tickOf = (record: LockRecord | undefined): Pick<Seen, "last" | "isDone"> => {
  const [tick, state] = record?.value.split(" ") ?? []
  return { last: tick === undefined ? undefined : Number(tick), isDone: state !== "running" }
}

/** The last ticks after `from` up to `now`, oldest first. */
export const dueTicks = (cron: Cron.Cron, from: number, now: number, most: number): ReadonlyArray<number> => {
  const ticks: Array<number> = []
  // starts a second later, as a backward search excludes its starting point
  let tick = Cron.prev(cron, new Date(now + 1000)).getTime()
  while (tick > now) tick = Cron.prev(cron, new Date(tick)).getTime()
  for (; tick > from && ticks.length < most; tick = Cron.prev(cron, new Date(tick)).getTime()) ticks.unshift(tick)
  return ticks
}

export class CronLoop<R> {
  readonly #client: LockClient
  readonly #keys: LockKeys
  readonly #lock: LockImpl<unknown, LockReentered>
  readonly #job: CronJob<R>
  readonly #scope: Scope.Scope
  /** This process is done with all ticks up to this one. */
  #settled: number | undefined = undefined

  constructor(
    client: LockClient,
    keys: LockKeys,
    lock: LockImpl<unknown, LockReentered>,
    job: CronJob<R>,
    scope: Scope.Scope
  ) {
    this.#client = client
    this.#keys = keys
    this.#lock = lock
    this.#job = job
    this.#scope = scope
  }

  get #look(): Effect.Effect<Seen, LockStoreError> {
    return Effect.map(this.#client.store.run(read(this.#keys, "tick")), ({ holder, record, serverMicros }) => {
      const { isDone, last } = tickOf(record)
      return { now: Math.floor(serverMicros / 1000), last, isDone, isRunning: !isDone && record?.owner === holder }
    })
  }

  /** Waits for the next tick and handles it; to be run in a loop. */
  get turn(): Effect.Effect<void, CronError, R> {
    return Effect.flatMap(this.#look, (seen): Effect.Effect<void, CronError, R> => {
      const { catchUp, cron, maxCatchUp, overlap, retryDied } = this.#job
      const { isDone, last, now } = seen
      this.#settled ??= catchUp === "none" ? now : (last ?? now)
      // the process that runs it holds the lock: wait until it has finished, or died
      if (retryDied && last !== undefined && !isDone) return withHold(this.#lock, (hold) => this.#runAll(hold, []))
      const from = Math.max(this.#settled, last ?? 0)
      const next = Cron.next(cron, new Date(from)).getTime()
      if (next > now) return Effect.sleep(Math.min(next - now, longestSleepMillis))
      const due = dueTicks(cron, from, now, catchUp === "all" || overlap === "wait" ? maxCatchUp : 1)
      switch (overlap) {
        case "allow":
          return this.#startAll(due)
        case "wait":
          return withHold(this.#lock, (hold) => this.#runAll(hold, due))
        case "skip":
          return this.#tryRunAll(due)
      }
    })
  }

  /** Runs the due ticks, or skips them if a run is under way. */
  #tryRunAll(due: ReadonlyArray<number>, pauseMillis = firstPauseMillis): Effect.Effect<void, CronError, R> {
    return Effect.flatMap(
      withHoldIfAvailable(this.#lock, (hold) => this.#runAll(hold, due)),
      (done): Effect.Effect<void, CronError, R> => {
        if (Option.isSome(done)) return Effect.void
        return Effect.flatMap(this.#look, ({ isRunning, last }) => {
          const tick = due.at(-1)!
          if (isRunning || (last !== undefined && last >= tick)) return Effect.sync(() => void (this.#settled = tick))
          // another process is looking, or died before it could begin
          const { fallbackIntervalMillis } = this.#client.options
          return Effect.andThen(
            Effect.sleep(jittered(pauseMillis)),
            Effect.suspend(() => this.#tryRunAll(due, Math.min(pauseMillis * 2, fallbackIntervalMillis)))
          )
        })
      }
    )
  }

  /** The due ticks that no process has begun, after the one whose process has died, if it is to be retried. */
  #left(due: ReadonlyArray<number>, { isDone, last = 0 }: Seen): ReadonlyArray<number> {
    const left = due.filter((tick) => tick > last)
    return this.#job.retryDied && !isDone ? [last, ...left] : left
  }

  #note(hold: Hold, tick: number, state: "running" | "done"): Effect.Effect<void, LockLost | LockStoreError> {
    const version = tick * 2 + (state === "done" ? 1 : 0)
    return writeRecord(this.#client, hold, "tick", { value: `${tick} ${state}`, version, lifeMillis: 0 })
  }

  #runAll(hold: Hold, due: ReadonlyArray<number>): Effect.Effect<void, LockLost | LockStoreError, R> {
    return Effect.flatMap(this.#look, (seen) => {
      const lookedAt = this.#client.now()
      const { cron, execute, overlap } = this.#job
      const ticks = this.#left(due, seen)
      return Effect.forEach(
        ticks,
        (tick) =>
          Effect.gen({ self: this }, function* () {
            yield* this.#note(hold, tick, "running")
            yield* execute(tick)
            const now = Math.floor(seen.now + this.#client.now() - lookedAt)
            const isLast = tick === ticks.at(-1)
            // ticks that came due meanwhile are skipped, by every process
            const [skipped = tick] = overlap === "skip" && isLast ? dueTicks(cron, tick, now, 1) : []
            yield* this.#note(hold, skipped, "done")
          }),
        { discard: true }
      )
    })
  }

  /** Claims the due ticks, and runs them beside those that still run. */
  #startAll(due: ReadonlyArray<number>): Effect.Effect<void, CronError, R> {
    const { execute } = this.#job
    const taken = withHold(this.#lock, (hold) =>
      Effect.flatMap(this.#look, (seen) => {
        const left = this.#left(due, seen)
        const tick = left.at(-1)
        return tick === undefined ? Effect.succeed(left) : Effect.as(this.#note(hold, tick, "done"), left)
      })
    )
    return Effect.flatMap(taken, (ticks) =>
      Effect.forEach(ticks, (tick) => Effect.forkIn(execute(tick), this.#scope), { discard: true })
    )
  }
}
