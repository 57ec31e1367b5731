/**
 * The options of one acquisition, checked before any command is sent, with durations in milliseconds; and the pauses of a waiter that polls.
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Pull from "effect/Pull"
import * as Schedule from "effect/Schedule"
import type { AcknowledgeOptions, AcquireOptions } from "../../AcquireOptions.ts"
import { type InvalidLockName, InvalidLockOptions } from "../../LockError.ts"
import { shown } from "../report/shown.ts"

/** An error in the user's input. */
export type Invalid = InvalidLockName | InvalidLockOptions

export const isInvalid = <A extends object>(checked: A | Invalid): checked is Invalid => "_tag" in checked

/** The error of an option that has a problem; undefined if it has none. */
export const invalidIf = (option: string, problem: string | undefined): InvalidLockOptions | undefined =>
  problem === undefined ? undefined : new InvalidLockOptions({ option, problem })

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

/**
 * A wait time: zero is allowed, infinity means no limit.
 */
export const parseWait = (option: string, input: Duration.Input): number | InvalidLockOptions => {
  // of a number itself: as a duration, a NaN would silently become zero
  const millis = typeof input === "number" ? input : millisOf(input)
  if (millis === undefined) return new InvalidLockOptions({ option, problem: `${shown(input)} is not a duration` })
  const problem = Number.isNaN(millis)
    ? "it is not a number"
    : millis < 0
      ? `it is negative (${millis} ms)`
      : Number.isFinite(millis) && millis > maxMillis
        ? "it is longer than 2^53 ms"
        : undefined
  return invalidIf(option, problem) ?? millis
}

const millisOf = (input: Duration.Input): number | undefined =>
  isMeant(input) ? Option.getOrUndefined(Option.map(Duration.fromInput(input), Duration.toMillis)) : undefined

/** In whole milliseconds, the finest unit of Redis, rounded up. The last two are the problems with zero and infinity, where there is one. */
const parseWhole = (
  option: string,
  input: Duration.Input,
  ifZero: string | undefined,
  ifInfinite: string | undefined
): number | InvalidLockOptions => {
  const millis = parseWait(option, input)
  if (typeof millis !== "number") return millis
  const problem = millis === 0 ? ifZero : millis === Number.POSITIVE_INFINITY ? ifInfinite : undefined
  return invalidIf(option, problem) ?? Math.ceil(millis)
}

const tooShort = "it must be longer than zero"
const endless = "it must be finite"

/** A period that must end: neither zero nor infinite. */
export const parsePeriod = (option: string, input: Duration.Input) => parseWhole(option, input, tooShort, endless)

/** The longest hold: longer than zero; infinity means no limit. */
export const parseMaxHold = (input: Duration.Input) => parseWhole("maxHold", input, tooShort, undefined)

/** A retention time: zero is allowed. */
export const parseRetention = (option: string, input: Duration.Input) => parseWhole(option, input, undefined, endless)

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
const driftMillis = (leaseMillis: number): number => leaseMillis * driftFactor + 2

/** The deadline of a lease that was requested at `sentAt`: counted from before the command was sent, less the drift. */
export const deadlineOf = (sentAt: number, leaseMillis: number): number =>
  sentAt + leaseMillis - driftMillis(leaseMillis)

/** The lease to ask for now so that its deadline is no earlier than this one. */
export const leaseUntil = (deadline: number, now: number): number =>
  Math.ceil((deadline - now + driftMillis(0)) / (1 - driftFactor))

/** A lease: a period that clock drift does not consume entirely, as it could never be granted then. */
export const parseLease = (
  option: string,
  input: Duration.Input,
  ifInfinite = endless
): number | InvalidLockOptions => {
  const millis = parseWhole(option, input, tooShort, ifInfinite)
  if (typeof millis !== "number" || millis > driftMillis(millis)) return millis
  const early = `${millis} ms are too short: a lease counts as ended ${driftMillis(millis)} ms early`
  return new InvalidLockOptions({ option, problem: `${early}, because clocks may drift` })
}

/** Redisson counts permits in a Java `int`. */
export const maxPermits = 2_147_483_647

/** A number of permits, checked before any command is sent. */
export const checkPermits = (permits: number, least: number): InvalidLockOptions | undefined => {
  const problem = !Number.isInteger(permits)
    ? `it is not a whole number (${shown(permits)})`
    : permits < least
      ? `it is less than ${least}`
      : permits > maxPermits
        ? `it is more than ${maxPermits}`
        : undefined
  return invalidIf("permits", problem)
}

/** In milliseconds: how long to wait (infinite without a limit), and a fixed lease if there is one. */
export interface Times {
  readonly waitMillis: number
  readonly leaseMillis: number | undefined
  /** The shortest time for which the lock stays held; 0 until it is released. */
  readonly minHoldMillis: number
  /** The longest hold that the watchdog renews, infinite without a limit; undefined for the client's own setting. */
  readonly maxHoldMillis: number | undefined
  /** What the grant needs in order to count; undefined for the client's own setting. */
  readonly acknowledge: Acknowledgement | "none" | undefined
}

/** Without any option: waits without limit, and the watchdog renews the client's own lease, which was checked with the client. */
const defaultTimes: Times = {
  waitMillis: Number.POSITIVE_INFINITY,
  leaseMillis: undefined,
  minHoldMillis: 0,
  maxHoldMillis: undefined,
  acknowledge: undefined
}

/** The times of one acquisition: those of the call, else the lock's own, else the defaults; or the problem with them, also at this store. */
export const timesOf = (
  asked: AcquireOptions | undefined,
  own: AcquireOptions | undefined,
  canAcknowledge = true
): Times | InvalidLockOptions => {
  if (asked === undefined && own === undefined) return defaultTimes
  const waitMillis = parseWait("waitTime", asked?.waitTime ?? own?.waitTime ?? Number.POSITIVE_INFINITY)
  if (typeof waitMillis !== "number") return waitMillis
  const leaseTime = asked?.leaseTime ?? own?.leaseTime
  const endless = "it must be finite; leave it out to hold until released"
  const leaseMillis = leaseTime === undefined ? undefined : parseLease("leaseTime", leaseTime, endless)
  if (typeof leaseMillis === "object") return leaseMillis
  const minHoldMillis = parseRetention("minHold", asked?.minHold ?? own?.minHold ?? 0)
  if (typeof minHoldMillis !== "number") return minHoldMillis
  if (leaseMillis !== undefined && minHoldMillis > leaseMillis) {
    const problem = `${minHoldMillis} ms are longer than the leaseTime of ${leaseMillis} ms, after which the lock is lost`
    return new InvalidLockOptions({ option: "minHold", problem })
  }
  const maxHold = asked?.maxHold ?? own?.maxHold
  const maxHoldMillis = maxHold === undefined ? undefined : parseMaxHold(maxHold)
  if (typeof maxHoldMillis === "object") return maxHoldMillis
  const given = asked?.acknowledge ?? own?.acknowledge
  const acknowledge = given === undefined || given === "none" ? given : parseAcknowledge(given, canAcknowledge)
  if (typeof acknowledge === "object" && "_tag" in acknowledge) return acknowledge
  return { waitMillis, leaseMillis, minHoldMillis, maxHoldMillis, acknowledge }
}

/** The problem with a `minHold` for what cannot stay held after its release; `undefined` without one. */
export const refuseMinHold = (
  { minHoldMillis }: Pick<Times, "minHoldMillis">,
  what: string
): InvalidLockOptions | undefined =>
  invalidIf(
    "minHold",
    minHoldMillis === 0 ? undefined : `${what} cannot stay held after its release; use an exclusive lock on one server`
  )

const shortestPauseMillis = 1

/**
 * Starts a schedule of pauses. The inner effect is the next pause in milliseconds, or undefined when the schedule has
 * ended.
 */
export const backOff = (schedule: Schedule.Schedule<unknown>): Effect.Effect<Effect.Effect<number | undefined>> =>
  Effect.map(Schedule.toStep(schedule), (step) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) =>
      Pull.matchEffect(step(now, undefined), {
        // a schedule without pauses would keep the server busy
        onSuccess: ([, pause]) => Effect.succeed(Math.max(shortestPauseMillis, Duration.toMillis(pause))),
        onFailure: Effect.failCause,
        onDone: () => Effect.undefined
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

/** The same for (effect, …). */
export const isEffectFirst = (args: IArguments): boolean => Effect.isEffect(args[0])

/** The same for (semaphore, permits, options?): a leading number is the permits. */
export const isDataFirstOfPermits = (args: IArguments): boolean =>
  typeof args[0] !== "number" || typeof args[1] === "number"

/** The replicas that must have a grant before it counts. */
export interface Acknowledgement {
  readonly replicas: number | "all" | "majority"
  readonly withinMillis: number
}

/** The option `acknowledge`, checked, of a store that can wait for replicas or cannot. */
export const parseAcknowledge = (
  given: AcknowledgeOptions,
  canAcknowledge: boolean
): Acknowledgement | InvalidLockOptions => {
  if (typeof given !== "object" || given === null) {
    return new InvalidLockOptions({ option: "acknowledge", problem: `${shown(given)} is not an object` })
  }
  const { replicas, within = 500 } = given
  if (replicas !== "all" && replicas !== "majority" && !(Number.isSafeInteger(replicas) && replicas >= 1)) {
    return new InvalidLockOptions({
      option: "acknowledge.replicas",
      problem: `${shown(replicas)} is neither "all", "majority" nor a whole number of at least 1`
    })
  }
  const withinMillis = parseTimeout("acknowledge.within", within)
  if (typeof withinMillis !== "number") return withinMillis
  if (canAcknowledge) return { replicas, withinMillis }
  return new InvalidLockOptions({
    option: "acknowledge",
    problem:
      "this store cannot wait for replicas. Use a layer of @effect-redis-lock/ioredis; on a quorum, give the option to the " +
      "layers of its members"
  })
}

/** How many replicas must have a grant while this many are `online`; at least one for `"all"` and `"majority"`. */
export const wantedOf = (replicas: Acknowledgement["replicas"], online: number): number =>
  replicas === "all" ? Math.max(1, online) : replicas === "majority" ? Math.floor(online / 2) + 1 : replicas
