/**
 * Durations of the public options, checked and turned into milliseconds before any command is sent.
 */
import * as Duration from "effect/Duration"
import { InvalidLockOptions } from "../LockError.ts"

const maxMillis = 2 ** 53

const parse = (option: string, input: Duration.Input): number | InvalidLockOptions => {
  let millis: number
  try {
    // a NaN would silently become zero
    millis = typeof input === "number" ? input : Duration.toMillis(Duration.fromInputUnsafe(input))
  } catch {
    return new InvalidLockOptions({ option, problem: `${JSON.stringify(input)} is not a duration` })
  }
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
 * A time to wait: zero is allowed, infinite means without limit.
 */
export const parseWait = parse

/**
 * A period that must end: neither zero nor infinite. Rounded up to whole milliseconds, as Redis has no less.
 */
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
