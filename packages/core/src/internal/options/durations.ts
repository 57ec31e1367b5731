/**
 * Durations of the public options, checked and turned into milliseconds before any command is sent.
 */
import * as Duration from "effect/Duration"
import { type InvalidLockName, InvalidLockOptions } from "../../LockError.ts"
import { shown } from "../report/shown.ts"

const maxMillis = 2 ** 53

const parts = ["weeks", "days", "hours", "minutes", "seconds", "milliseconds", "microseconds", "nanoseconds"] as const

/** Effect takes any object for a duration of zero, and ignores values that are not numbers. */
const isMeant = (input: unknown): boolean => {
  if (typeof input !== "object" || input === null || Duration.isDuration(input)) return true
  const numbers: ReadonlyArray<unknown> = Array.isArray(input)
    ? input
    : parts.map((part) => (input as Record<string, unknown>)[part]).filter((value) => value !== undefined)
  return numbers.length > 0 && numbers.every((value) => typeof value === "number" && !Number.isNaN(value))
}

const parse = (option: string, input: Duration.Input): number | InvalidLockOptions => {
  let millis: number | undefined
  try {
    // a NaN would silently become zero
    if (typeof input === "number") millis = input
    else if (isMeant(input)) millis = Duration.toMillis(Duration.fromInputUnsafe(input))
  } catch {
    // reported below
  }
  if (millis === undefined) return new InvalidLockOptions({ option, problem: `${shown(input)} is not a duration` })
  const problem = Number.isNaN(millis)
    ? "it is not a number"
    : millis < 0
      ? `it is negative (${millis} ms)`
      : Number.isFinite(millis) && millis > maxMillis
        ? "it is longer than 2^53 ms"
        : undefined
  return problem === undefined ? millis : new InvalidLockOptions({ option, problem })
}

/**
 * A wait time: zero is allowed, infinity means no limit.
 */
export const parseWait = parse

/** A period that must end: neither zero nor infinite. Rounded up to whole milliseconds, the finest unit of Redis. */
export const parsePeriod = (option: string, input: Duration.Input): number | InvalidLockOptions => {
  const millis = parse(option, input)
  if (typeof millis !== "number") return millis
  return millis === 0
    ? new InvalidLockOptions({ option, problem: "it must be longer than zero" })
    : millis === Number.POSITIVE_INFINITY
      ? new InvalidLockOptions({
          option,
          problem:
            option === "leaseTime" ? "it must be finite; leave it out to hold until released" : "it must be finite"
        })
      : Math.ceil(millis)
}

/** A retention time: zero is allowed. */
export const parseRetention = (option: string, input: Duration.Input): number | InvalidLockOptions => {
  const millis = parse(option, input)
  return millis === Number.POSITIVE_INFINITY
    ? new InvalidLockOptions({ option, problem: "it must be finite" })
    : typeof millis === "number"
      ? Math.ceil(millis)
      : millis
}

const longestTimeoutMillis = 24 * 60 * 60 * 1000

/**
 * How long to wait for one answer: a period of at most a day, which every timer can count.
 */
export const parseTimeout = (option: string, input: Duration.Input): number | InvalidLockOptions => {
  const millis = parsePeriod(option, input)
  return typeof millis === "number" && millis > longestTimeoutMillis
    ? new InvalidLockOptions({ option, problem: "it is longer than a day" })
    : millis
}

/**
 * By how much the clocks of two machines may differ in rate, as in the Redlock specification. Twenty times the most that
 * NTP corrects (500 ppm), so nobody has a reason to choose more, and less would gain nothing.
 */
const driftFactor = 0.01

/** The part of a lease that clock drift may consume: by so much its holder counts it as ended before Redis does. */
export const driftMillis = (leaseMillis: number): number => leaseMillis * driftFactor + 2

/** A lease that the drift consumes entirely could never be granted. */
export const checkLease = (option: string, leaseMillis: number): InvalidLockOptions | undefined =>
  leaseMillis > driftMillis(leaseMillis)
    ? undefined
    : new InvalidLockOptions({
        option,
        problem:
          `${leaseMillis} ms are too short: a lease counts as ended ${driftMillis(leaseMillis)} ms early, ` +
          `because clocks may drift`
      })

/** An error in the user's input. */
export type Invalid = InvalidLockName | InvalidLockOptions

export const isInvalid = <A extends object>(checked: A | Invalid): checked is Invalid => "_tag" in checked

/** Redisson counts permits in a Java `int`. */
export const maxPermits = 2_147_483_647

/** A number of permits, checked before any command is sent. */
export const checkPermits = (option: string, permits: number, least: number): InvalidLockOptions | undefined => {
  const problem = !Number.isInteger(permits)
    ? `it is not a whole number (${shown(permits)})`
    : permits < least
      ? `it is less than ${least}`
      : permits > maxPermits
        ? `it is more than ${maxPermits}`
        : undefined
  return problem === undefined ? undefined : new InvalidLockOptions({ option, problem })
}
