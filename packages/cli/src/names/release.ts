/**
 * `redis-lock release --force`: frees what somebody else holds.
 */
import * as Effect from "effect/Effect"
import {
  type CommandError,
  FairLock,
  Lock,
  type LockState,
  PermitId,
  ReadWriteLock,
  type RedisLock
} from "effect-redis-lock"
import { createInterface } from "node:readline"
import { ExitCode, ExitWith, type Failure } from "../exit.ts"
import { heldBy, textOf } from "./nameState.ts"
import { locksIn, type Target } from "../redis.ts"
import { print } from "../text.ts"
import { isKept, quoted } from "../visible.ts"

export interface ReleaseOptions extends Target {
  readonly name: string
  readonly yes: boolean
}

export const release = ({ name, yes, ...target }: ReleaseOptions): Effect.Effect<void, ExitWith | Failure> =>
  Effect.gen(function* () {
    const state = yield* Lock.inspect(name)
    const refusal = refusalOf(state)
    if (refusal !== undefined) return yield* refusal
    if (!yes) yield* ask(state)
    const freed = yield* free(state)
    if (freed === 0) {
      return yield* new ExitWith({ code: ExitCode.notHeld, message: yield* whyNothingWasFreed(name) })
    }
    yield* print(`Freed ${whatWasFreed(state, freed)}.${state.held > 0 ? "" : ` It was ${heldBy(state)}.`}\n`)
    if (whoWorksOn(state) === "") return
    yield* print(
      "Redis notifies a holder that has had it for two seconds, if it can (redis-lock doctor); any other notices when it next renews: with a lease of 30 s within 10 s.\n"
    )
    if (unlisted(state) > 0) {
      return yield* new ExitWith({ code: ExitCode.freedSome, message: "not all permits were freed: run this again" })
    }
  }).pipe(Effect.provide(locksIn(target)))

/** How many permits are held beside those that {@link free} gives back: a look lists no more than a thousand. */
const unlisted = ({ held, permits }: LockState): number => held - permits.length

/** The lock that was freed, or how many permits, and how many more there were. */
export const whatWasFreed = (state: LockState, freed: number): string => {
  if (state.held === 0) return quoted(state.name)
  const left = unlisted(state)
  const more = left === 0 ? "" : `; ${left} more ${left === 1 ? "was" : "were"} held`
  return `${freed} permit${freed === 1 ? "" : "s"} of ${quoted(state.name)}${more}`
}

/** What to say if those that were seen hold it no more. */
export const whyNothingWasFreed = (name: string): Effect.Effect<string, CommandError, RedisLock.RedisLock> =>
  Effect.map(Lock.inspect(name), ({ held, holders }) =>
    holders.length === 0 && held === 0
      ? `nobody holds ${quoted(name)} any more`
      : `${quoted(name)} is held by others now: nothing was freed`
  )

/** What to know before it is freed; nothing of a lock that only its minHold keeps. */
export const whoWorksOn = ({ holders }: LockState): string =>
  holders.length > 0 && holders.every(({ owner }) => isKept(owner)) ? "" : "Its holder keeps working until it notices."

/** Why there is nothing to free. */
export const refusalOf = ({ held, holders, kind, name }: LockState): ExitWith | undefined => {
  if (kind === "counter" || kind === "other") {
    return new ExitWith({
      code: ExitCode.notFreeable,
      message: `${quoted(name)} has no holder that Redis knows of, so nothing can be freed: see redis-lock inspect`
    })
  }
  return holders.length === 0 && held === 0 ? notHeld(name) : undefined
}

const notHeld = (name: string) => new ExitWith({ code: ExitCode.notHeld, message: `nobody holds ${quoted(name)}` })

/**
 * Frees a lock from the holders that were seen, or the permits that were listed, but takes nothing from anyone who has acquired it since.
 * Returns the number of permits that were freed, or 1 for a lock.
 */
export const free = (state: LockState): Effect.Effect<number, CommandError, RedisLock.RedisLock> => {
  const { holders, kind, name, permits } = state
  const owners = holders.map(({ owner }) => owner)
  switch (kind) {
    case "permit semaphore":
      // one by one: a permit that was given back meanwhile keeps none of the others
      return Effect.map(
        Effect.forEach(permits, ({ id }) => PermitId.tryRelease(name, [id])),
        (freed) => freed.filter(Boolean).length
      )
    case "read-write lock": {
      const { readLock, writeLock } = ReadWriteLock.make(name)
      const side = holders.some(({ mode }) => mode === "write") ? writeLock : readLock
      return Effect.map(Lock.forceRelease(side, { owners }), Number)
    }
    case "fair lock":
      // its waiters listen to channels of their own
      return Effect.map(Lock.forceRelease(FairLock.make(name), { owners }), Number)
    default:
      return Effect.map(Lock.forceRelease(name, { owners }), Number)
  }
}

/** Asks on the terminal. Ctrl-C and the end of input are a no. */
const ask = (state: LockState): Effect.Effect<void, ExitWith> =>
  Effect.flatMap(
    Effect.callback<string>((resume) => {
      process.stderr.write(`${textOf(state)}\n${[whoWorksOn(state), "Free it? [y/N] "].join(" ").trimStart()}`)
      const input = createInterface({ input: process.stdin })
      input.once("line", (line) => {
        resume(Effect.succeed(line))
        input.close()
      })
      input.once("close", () => resume(Effect.succeed("")))
      return Effect.sync(() => input.close())
    }),
    (answer) =>
      /^y(es)?$/i.test(answer.trim())
        ? Effect.void
        : Effect.fail(new ExitWith({ code: ExitCode.declined, message: "nothing was freed" }))
  )
