/**
 * What `redis-lock run` holds while the command runs: a lock of some kind, several locks, or a permit.
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import {
  type AcquireError,
  FairLock,
  type Holding,
  Lock,
  type LockReentered,
  type LockTimeout,
  MultiLock,
  PermitSemaphore,
  ReadWriteLock,
  type RedisLock
} from "effect-redis-lock"
import { quoted } from "../visible.ts"

export interface HoldOptions {
  readonly name: string
  /** More locks, which are acquired together with the first one. */
  readonly more: ReadonlyArray<string>
  readonly kind: "plain" | "fair" | "read" | "write"
  /** The total of a semaphore, of which one permit is acquired in place of a lock. */
  readonly permits: Option.Option<number>
  /** The shortest time for which the lock stays held, counted from its acquisition. */
  readonly atLeast: Option.Option<Duration.Duration>
  /** The longest time for which it is renewed, counted from its acquisition. */
  readonly maxHold: Option.Option<Duration.Duration>
}

export interface Hold {
  readonly holding: Pick<Holding, "name" | "ensureHeld" | "remaining" | "renewalFailure" | "awaitLost" | "release">
  /** What it is, at the beginning of a message: `Lock "ledger"`. */
  readonly title: string
  /** Which grant it is, for a message: `token 17`. */
  readonly grant: string
  /** What the command learns of it; undefined removes a variable that redis-lock itself has inherited. */
  readonly variables: Readonly<Record<string, string | undefined>>
}

/** What can be acquired, with a wait or without one. */
export interface Wanted {
  readonly names: ReadonlyArray<string>
  readonly acquire: (
    waitTime: Duration.Duration | undefined
  ) => Effect.Effect<Hold, AcquireError, RedisLock.RedisLock | Scope.Scope>
  /** None if it is taken at this moment. */
  readonly tryAcquire: Effect.Effect<
    Option.Option<Hold>,
    Exclude<AcquireError, LockTimeout>,
    RedisLock.RedisLock | Scope.Scope
  >
}

export const wanted = (options: HoldOptions): Wanted => {
  const { kind, more, name, permits } = options
  const maxHold = Option.getOrUndefined(options.maxHold)
  if (Option.isSome(permits)) return permitOf(name, permits.value, maxHold)
  const names = [name, ...more]
  return more.length === 0
    ? lock(names, oneLock(name, kind), { maxHold, minHold: Option.getOrUndefined(options.atLeast) }, holdOfOne)
    : lock(names, MultiLock.make(names.map((each) => oneLock(each, kind))), { maxHold }, (holding) =>
        holdOfSeveral(names, holding)
      )
}

const lock = <T>(
  names: ReadonlyArray<string>,
  self: Lock.Lock<RedisLock.RedisLock, LockReentered, T>,
  options: Pick<Lock.AcquireOptions, "maxHold" | "minHold">,
  holdOf: (holding: Holding<T>) => Hold
): Wanted => ({
  names,
  // nothing is held yet, so nothing is acquired again
  acquire: (waitTime) =>
    Lock.scoped(self, { waitTime, ...options }).pipe(
      Effect.catchTag("LockReentered", Effect.die),
      Effect.map((holding) => holdOf(holding as Holding<T>))
    ),
  tryAcquire: Lock.tryScoped(self, options).pipe(
    Effect.catchTag("LockReentered", Effect.die),
    Effect.map(Option.map((holding) => holdOf(holding as Holding<T>)))
  )
})

const oneLock = (name: string, kind: HoldOptions["kind"]): Lock.Lock<RedisLock.RedisLock, LockReentered> => {
  switch (kind) {
    case "plain":
      return Lock.make(name)
    case "fair":
      return FairLock.make(name)
    case "read":
      return ReadWriteLock.make(name).readLock
    case "write":
      return ReadWriteLock.make(name).writeLock
  }
}

/** Those of another redis-lock, under which this one may run, must not reach the command. */
const noVariables = {
  REDIS_LOCK_TOKEN: undefined,
  REDIS_LOCK_TOKENS: undefined,
  REDIS_LOCK_OWNER: undefined,
  REDIS_LOCK_PERMIT: undefined
}

const titleOfLock = (name: string): string => `Lock ${quoted(name)}`

const holdOfOne = (holding: Holding): Hold => ({
  holding,
  title: titleOfLock(holding.name),
  grant: `token ${holding.token}`,
  variables: {
    ...noVariables,
    REDIS_LOCK_NAME: holding.name,
    REDIS_LOCK_TOKEN: String(holding.token),
    REDIS_LOCK_OWNER: holding.owner
  }
})

const holdOfSeveral = (names: ReadonlyArray<string>, holding: Holding<Readonly<Record<string, bigint>>>): Hold => {
  const tokens = Object.fromEntries(names.map((name) => [name, String(holding.token[name])]))
  return {
    holding,
    title: titleOfLock(holding.name),
    grant: `tokens ${names.map((name) => tokens[name]).join(", ")}`,
    variables: {
      ...noVariables,
      REDIS_LOCK_NAME: names[0],
      REDIS_LOCK_TOKEN: tokens[names[0]!],
      REDIS_LOCK_TOKENS: JSON.stringify(tokens),
      // each may have one of its own, in the order of the names
      REDIS_LOCK_OWNER: holding.owner.split(", ", 1)[0]
    }
  }
}

const permitOf = (name: string, total: number, maxHold: Duration.Duration | undefined): Wanted => {
  const semaphore = PermitSemaphore.make(name, { permits: total })
  return {
    names: [name],
    acquire: (waitTime) => Effect.map(PermitSemaphore.scoped(semaphore, { waitTime, maxHold }), holdOfPermit),
    tryAcquire: Effect.map(PermitSemaphore.tryScoped(semaphore, { maxHold }), Option.map(holdOfPermit))
  }
}

const holdOfPermit = (permit: PermitSemaphore.Permit): Hold => ({
  holding: permit,
  title: `The permit of semaphore ${quoted(permit.name)}`,
  grant: `permit ${permit.ids[0]}`,
  variables: { ...noVariables, REDIS_LOCK_NAME: permit.name, REDIS_LOCK_PERMIT: permit.ids[0] }
})
