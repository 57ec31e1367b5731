/**
 * `redis-lock release --force`: frees what somebody else holds.
 */
import * as Effect from "effect/Effect"
import {
  FairLock,
  type InvalidLockName,
  type InvalidLockOptions,
  Lock,
  type LockStoreError,
  type NameState,
  PermitId,
  ReadWriteLock,
  type RedisLock
} from "effect-redis-lock"
import { createInterface } from "node:readline"
import { ExitCode, ExitWith, failed } from "../exit.ts"
import { heldBy, textOf } from "./nameState.ts"
import { locksIn, type Target } from "../redis.ts"
import { print } from "../text.ts"
import { visible } from "../visible.ts"

export interface ReleaseOptions extends Target {
  readonly name: string
  readonly yes: boolean
}

export const release = ({ name, yes, ...target }: ReleaseOptions): Effect.Effect<void, ExitWith> =>
  Effect.gen(function* () {
    const state = yield* Lock.inspectName(name)
    const shown = visible(name)
    const refusal = refusalOf(state)
    if (refusal !== undefined) return yield* refusal
    if (!yes) {
      yield* ask(state)
      if (isHeldByOthers(yield* Lock.inspectName(name), ownersOf(state))) return yield* heldByOthers(shown)
    }
    const freed = yield* free(state)
    if (freed === 0) return yield* notHeld(shown)
    yield* print(
      state.held > 0
        ? `Freed ${freed} permit${freed === 1 ? "" : "s"} of "${shown}".\n`
        : `Freed "${shown}". It was ${heldBy(state)}.\n`
    )
    yield* print(
      "The holder has been told. One that did not hear it learns of it when it next renews: with a lease of 30 s within 10 s.\n"
    )
  }).pipe(
    Effect.provide(locksIn(target)),
    Effect.catchIf((error) => error._tag !== "ExitWith", failed)
  )

export const ownersOf = ({ holders }: NameState): ReadonlyArray<string> => holders.map(({ owner }) => owner)

/** Whether none of the holders is one of those that were seen when somebody chose to free them. */
export const isHeldByOthers = (state: NameState, seen: ReadonlyArray<string>): boolean =>
  state.holders.length > 0 && !ownersOf(state).some((owner) => seen.includes(owner))

const heldByOthers = (name: string) =>
  new ExitWith({ code: ExitCode.notHeld, message: `"${name}" is held by others now: nothing was freed` })

/** Why there is nothing to free. */
export const refusalOf = ({ held, holders, kind, name }: NameState): ExitWith | undefined => {
  const shown = visible(name)
  if (kind === "counter" || kind === "other") {
    return new ExitWith({
      code: ExitCode.notFreeable,
      message: `"${shown}" has no holder whom Redis knows, so nothing can be freed: see redis-lock inspect`
    })
  }
  return holders.length === 0 && held === 0 ? notHeld(shown) : undefined
}

const notHeld = (name: string) => new ExitWith({ code: ExitCode.notHeld, message: `nobody holds "${name}"` })

/** How much was freed: how many permits, or 1 for a lock. */
export const free = (
  state: NameState
): Effect.Effect<number, LockStoreError | InvalidLockName | InvalidLockOptions, RedisLock.RedisLock> => {
  const { holders, kind, name, permits } = state
  switch (kind) {
    case "permit semaphore":
      // one by one: a permit that was given back meanwhile keeps none of the others
      return Effect.map(
        Effect.forEach(permits, ({ id }) => PermitId.tryRelease(name, [id])),
        (freed) => freed.filter(Boolean).length
      )
    case "read-write lock": {
      const { readLock, writeLock } = ReadWriteLock.make(name)
      return Effect.map(Lock.forceRelease(holders.some(({ mode }) => mode === "write") ? writeLock : readLock), Number)
    }
    case "fair lock":
      // its waiters listen to channels of their own
      return Effect.map(Lock.forceRelease(FairLock.make(name)), Number)
    default:
      return Effect.map(Lock.forceRelease(name), Number)
  }
}

/** Asks on the terminal. Ctrl-C and the end of input are a no. */
const ask = (state: NameState): Effect.Effect<void, ExitWith> =>
  Effect.flatMap(
    Effect.callback<string>((resume) => {
      process.stderr.write(`${textOf(state)}\nWho holds it keeps working until it notices. Free it? [y/N] `)
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
