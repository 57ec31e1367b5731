/**
 * One process's part in a shared schedule: which tick is due by the server's time, and which process runs it. The last tick is
 * in the record beside the lock of the schedule's name, and is written only under that lock.
 */
import * as Cron from "effect/Cron"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import * as Lock from "../../Lock.ts"
import type { LockLost, LockReentered, LockStoreError } from "../../LockError.ts"
import type { RedisLock } from "../../RedisLock.ts"
import { growing } from "../time/clock.ts"
import { holdingOf, recordOf, restartMaxHold } from "./record.ts"

export interface Job<R> {
  readonly cron: Cron.Cron
  /** Runs the tick of this time, epoch milliseconds. */
  readonly execute: (tick: number) => Effect.Effect<void, never, R>
  readonly overlap: "skip" | "wait" | "allow"
  readonly catchUp: "none" | "latest" | "all"
}

/** Ticks that have come due. */
interface Due {
  /** Oldest first; at least one. */
  readonly ticks: ReadonlyArray<number>
  /** The last tick that any process had begun when these came due. */
  readonly seen: number | undefined
}

/** The longest single sleep: in a month this process's clock may differ from the server's by minutes. */
const longestSleepMillis = 24 * 60 * 60 * 1000

/** The largest number of ticks that are run late: enough for any outage after which the older ones still matter. */
const mostLate = 100

/** The last ticks after `from` up to `now`, oldest first. */
const dueTicks = (cron: Cron.Cron, from: number, now: number, most: number): ReadonlyArray<number> => {
  const ticks: Array<number> = []
  // starts a second later, as a backward search excludes its starting point
  let tick = Cron.prev(cron, new Date(now + 1000)).getTime()
  while (tick > now) tick = Cron.prev(cron, new Date(tick)).getTime()
  for (; tick > from && ticks.length < most; tick = Cron.prev(cron, new Date(tick)).getTime()) ticks.unshift(tick)
  return ticks
}

/** Waits for the next tick and handles it; to be run in a loop. */
export const makeTurn = <R>(lock: Lock.Lock<RedisLock, LockReentered>, { catchUp, cron, execute, overlap }: Job<R>) =>
  Effect.gen(function* () {
    const scope = yield* Effect.scope
    const record = yield* recordOf(lock, "tick")
    /** This process begins no tick up to this time any more, whatever Redis still knows of them. */
    let settled: number | undefined

    const look = Effect.map(record.read, ({ holder, record, serverMicros }) => {
      const [tick, state] = record?.value.split(" ") ?? []
      return {
        now: Math.floor(serverMicros / 1000),
        /** The last tick that any process has begun. */
        last: tick === undefined ? undefined : Number(tick),
        /** Whether the process that has begun it still holds the lock. */
        isRunning: state === "running" && record?.owner === holder
      }
    })

    const note = (tick: number, state: "running" | "done"): Effect.Effect<void, LockLost | LockStoreError, RedisLock> =>
      Effect.gen(function* () {
        const version = tick * 2 + (state === "done" ? 1 : 0)
        const holding = yield* holdingOf(lock)
        // it bounds a tick, and not all that are worked off under one hold
        if (state === "running") restartMaxHold(holding)
        yield* record.write(holding, { value: `${tick} ${state}`, version })
        settled = tick
      })

    /** The ticks that no process has begun by now. */
    const left = ({ seen = 0, ticks }: Due, last = 0): ReadonlyArray<number> =>
      // what was known of them is lost: another process may have begun them, and they run at most once
      last < seen ? [] : ticks.filter((tick) => tick > last)

    /** Runs due ticks one after the other, under the lock. */
    const runAll = (due: Due): Effect.Effect<void, LockLost | LockStoreError, R | RedisLock> =>
      Effect.gen(function* () {
        let { last, now } = yield* look
        for (const tick of left(due, last)) {
          const [spent] = yield* Effect.timed(Effect.andThen(note(tick, "running"), execute(tick)))
          now += Duration.toMillis(spent)
          // ticks that came due meanwhile are skipped, by every process
          const [skipped = tick] = overlap === "skip" && tick === due.ticks.at(-1) ? dueTicks(cron, tick, now, 1) : []
          yield* note(skipped, "done")
        }
      })

    /** Claims due ticks under the lock, and runs them beside those that still run. What is claimed runs even if the release fails. */
    const startAll = (due: Due) =>
      Effect.suspend(() => {
        let claimed: ReadonlyArray<number> = []
        const claim = Effect.gen(function* () {
          const ticks = left(due, (yield* look).last)
          const last = ticks.at(-1)
          if (last === undefined) return
          yield* note(last, "done")
          claimed = ticks
        })
        return Effect.ensuring(
          Lock.withLock(claim, lock),
          Effect.suspend(() =>
            Effect.forEach(claimed, (tick) => Effect.forkIn(execute(tick), scope), { discard: true })
          )
        )
      })

    /** Runs due ticks, unless one is running or another process has begun them. */
    const runUnlessOverlapping = (due: Due) =>
      Effect.gen(function* () {
        const latest = due.ticks.at(-1)!
        const handled = Effect.flatMap(Lock.withLockIfAvailable(runAll(due), lock), (done) =>
          Option.isSome(done)
            ? Effect.succeed(true)
            : Effect.map(look, ({ isRunning, last = 0 }) => isRunning || last >= latest)
        )
        // who holds the lock and has begun nothing is only looking, like this process, or died before it could begin
        const pauses = Schedule.jittered(growing("20 millis", "1 second"))
        yield* Effect.repeat(handled, { until: (isHandled) => isHandled, schedule: pauses })
      })

    return Effect.gen(function* () {
      const { last, now } = yield* look
      const hasBegun = settled !== undefined
      settled = Math.max(settled ?? (catchUp === "none" ? now : (last ?? now)), last ?? 0)
      const next = Cron.next(cron, new Date(settled)).getTime()
      if (next > now) return yield* Effect.sleep(Math.min(next - now, longestSleepMillis))
      // those that came due before this process began have not waited for a run that was still going on
      const waits = overlap === "wait" && hasBegun
      const ticks = dueTicks(cron, settled, now, catchUp === "all" || waits ? mostLate : 1)
      // should its run fail, no earlier one counts as waiting
      if (!hasBegun) settled = ticks[0]! - 1
      const due: Due = { ticks, seen: last }
      if (overlap === "allow") yield* startAll(due)
      else if (overlap === "wait") yield* Lock.withLock(runAll(due), lock)
      else yield* runUnlessOverlapping(due)
      // whichever process has begun them
      settled = Math.max(settled, ticks.at(-1)!)
    })
  })
