/**
 * The options of one acquisition, checked before any command is sent; and the pauses of a waiter that polls.
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type { AcquireOptions } from "../../AcquireOptions.ts"
import { InvalidLockOptions } from "../../LockError.ts"
import { shown } from "../report/shown.ts"
import { type Acknowledgement, parseAcknowledge } from "./ClientOptions.ts"
import { checkLease, parsePeriod, parseRetention, parseWait } from "./durations.ts"

/** In milliseconds: how long to wait (infinite without a limit), and a fixed lease if there is one. */
export interface Times {
  readonly waitMillis: number
  readonly leaseMillis: number | undefined
  /** The shortest time for which the lock stays held; 0 until it is released. */
  readonly minHoldMillis: number
  /** What the grant needs in order to count; undefined for the client's own setting. */
  readonly acknowledge: Acknowledgement | "none" | undefined
}

/** Without any option: waits without limit, and the watchdog renews the client's own lease, which was checked with the client. */
export const defaultTimes: Times = {
  waitMillis: Number.POSITIVE_INFINITY,
  leaseMillis: undefined,
  minHoldMillis: 0,
  acknowledge: undefined
}

/** The times of one acquisition: those of the call, else the lock's own, else the defaults. */
export const timesOf = (
  asked: AcquireOptions | undefined,
  own: AcquireOptions | undefined
): Times | InvalidLockOptions => {
  if (asked === undefined && own === undefined) return defaultTimes
  const waitTime = asked?.waitTime ?? own?.waitTime
  const waitMillis = waitTime === undefined ? Number.POSITIVE_INFINITY : parseWait("waitTime", waitTime)
  if (typeof waitMillis !== "number") return waitMillis
  const leaseTime = asked?.leaseTime ?? own?.leaseTime
  const leaseMillis = leaseTime === undefined ? undefined : parsePeriod("leaseTime", leaseTime)
  if (leaseMillis !== undefined) {
    if (typeof leaseMillis !== "number") return leaseMillis
    const shortLease = checkLease("leaseTime", leaseMillis)
    if (shortLease !== undefined) return shortLease
  }
  const minHold = asked?.minHold ?? own?.minHold
  const minHoldMillis = minHold === undefined ? 0 : parseRetention("minHold", minHold)
  if (typeof minHoldMillis !== "number") return minHoldMillis
  if (leaseMillis !== undefined && minHoldMillis > leaseMillis) {
    const problem = `${minHoldMillis} ms are longer than the leaseTime of ${leaseMillis} ms, after which the lock is lost`
    return new InvalidLockOptions({ option: "minHold", problem })
  }
  const given = asked?.acknowledge ?? own?.acknowledge
  const acknowledge = given === undefined || given === "none" ? given : parseAcknowledge(given)
  if (typeof acknowledge === "object" && "_tag" in acknowledge) return acknowledge
  return { waitMillis, leaseMillis, minHoldMillis, acknowledge }
}

/** The problem with a `minHold` for what cannot stay held after its release; `undefined` without one. */
export const refuseMinHold = (
  { minHoldMillis }: Pick<Times, "minHoldMillis">,
  what: string
): InvalidLockOptions | undefined =>
  minHoldMillis === 0
    ? undefined
    : new InvalidLockOptions({
        option: "minHold",
        problem: `${what} cannot stay held after its release; use an exclusive lock on one server`
      })

const shortestPauseMillis = 1

const problems = new WeakMap<object, InvalidLockOptions>()

/** A placeholder for an invalid schedule: if it runs all the same, it dies with the problem. */
export const invalidBackOff = (problem: InvalidLockOptions): Schedule.Schedule<never> => {
  const schedule: Schedule.Schedule<never> = Schedule.fromStep(Effect.die(problem))
  problems.set(schedule, problem)
  return schedule
}

export const checkBackOff = (schedule: unknown): InvalidLockOptions | undefined =>
  Schedule.isSchedule(schedule)
    ? problems.get(schedule)
    : new InvalidLockOptions({ option: "schedule", problem: `${shown(schedule)} is not a schedule` })

/**
 * Starts a schedule of pauses. The inner effect is the next pause in milliseconds, or undefined when the schedule has
 * ended.
 */
export const backOff = (schedule: Schedule.Schedule<unknown>): Effect.Effect<Effect.Effect<number | undefined>> =>
  Effect.map(Schedule.toStep(schedule), (step) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) =>
      Effect.matchCauseEffect(step(now, undefined), {
        // a schedule without pauses would keep the server busy
        onSuccess: ([, pause]) => Effect.succeed(Math.max(shortestPauseMillis, Duration.toMillis(pause))),
        onFailure: (cause) =>
          cause.reasons.every((reason) => reason._tag === "Fail" && Cause.isDone(reason.error))
            ? Effect.undefined
            : (Effect.failCause(cause) as Effect.Effect<never>)
      })
    )
  )

/**
 * Whether a dual function of (value, options?) was called with its value first. A single plain object is its options, for
 * `pipe`: neither a lock nor a name is one.
 */
export const isDataFirst = (args: IArguments): boolean => args.length > 1 || !isPlainObject(args[0])

const isPlainObject = (u: unknown): boolean => {
  if (typeof u !== "object" || u === null) return false
  const prototype: unknown = Object.getPrototypeOf(u)
  return prototype === Object.prototype || prototype === null
}

/** The same for (semaphore, permits, options?): a leading number is the permits. */
export const isDataFirstOfPermits = (args: IArguments): boolean =>
  typeof args[0] !== "number" || typeof args[1] === "number"
