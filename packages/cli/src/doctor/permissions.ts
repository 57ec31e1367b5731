/**
 * What `redis-lock doctor` finds out of permissions: by trying.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import {
  CountDownLatch,
  FairLock,
  type InvalidLockOptions,
  LeaderElection,
  Lock,
  type LockReentered,
  MultiLock,
  PermitSemaphore,
  ReadWriteLock,
  type RedisDriver,
  RedisLock,
  RunOnce,
  Semaphore
} from "effect-redis-lock"
import { randomUUID } from "node:crypto"
import { type Check, type Driver, ok, problem, scriptOf, type Trouble, warning, wordsOf } from "./check.ts"
import { commandProbe } from "./commandProbe.ts"

const probe = scriptOf("doctor/commands", commandProbe)

/** Each command that the library's scripts use, on keys that expire. */
export const commands = (driver: Driver, name: string): Effect.Effect<Check> =>
  Effect.match(
    driver.eval(
      probe,
      ["string", "hash", "list", "zset"].map((type) => `${name}:${type}`),
      [driver.publish]
    ),
    {
      onSuccess: (reply) => {
        const refused = [...new Set(reply as ReadonlyArray<string>)]
        return refused.length === 0
          ? ok("commands", "all that the locks need are permitted")
          : warning(
              "commands",
              `refused: ${refused.join(", ")}. Some kind of lock needs them: ACL SETUSER ... ${refused.map((text) => `+${text.toLowerCase()}`).join(" ")}`
            )
      },
      onFailure: (error) => problem("commands", remedyOf(error))
    }
  )

const remedyOf = (error: Trouble): string =>
  error.reason === "NoPermission"
    ? `${wordsOf(error)}. The README of @effect-redis-lock/ioredis lists the permissions that each kind of lock needs; with a key pattern, give --prefix.`
    : error.message

type AnyLock = Lock.Lock<RedisLock.RedisLock, LockReentered>

/** Nobody else knows the names: what is not acquired at once is refused. */
const options = { waitTime: 0, leaseTime: "8 seconds" } as const

/** Waits for a lock that is held, until it gives up: waiters need more than holders. */
const contended = (held: AnyLock, wanted: AnyLock): Effect.Effect<void, Trouble, RedisLock.RedisLock> =>
  Effect.gen(function* () {
    yield* Lock.scoped(held, options)
    yield* Lock.withLock(Effect.void, wanted, { waitTime: "20 millis", leaseTime: "8 seconds" }).pipe(
      Lock.withOwner,
      Effect.catchTag("LockTimeout", () => Effect.void)
    )
  }).pipe(Effect.scoped)

/** Acquires and releases each kind, which needs all of its keys and channels. */
export const kinds = (prefix: string): Effect.Effect<ReadonlyArray<Check>, never, RedisDriver.RedisDriver> => {
  const name = (kind: string) => `redis-lock:doctor:${randomUUID()}:${kind}`
  const { readLock, writeLock } = ReadWriteLock.make(name("read-write"))
  const plain = Lock.make(name("lock"))
  const fair = FairLock.make(name("fair"))
  const semaphore = name("semaphore")
  const latch = name("latch")
  const permits = name("permits")
  const trials: Readonly<Record<string, Effect.Effect<unknown, Trouble, RedisLock.RedisLock>>> = {
    lock: contended(plain, plain),
    "fair lock": contended(fair, fair),
    "read lock": contended(writeLock, readLock),
    "write lock": contended(readLock, writeLock),
    "several locks": Lock.withLock(
      Effect.void,
      MultiLock.make([`{${name("several")}}:a`, `{${name("several")}}:b`]),
      options
    ),
    semaphore: Effect.andThen(
      Semaphore.trySetPermits(semaphore, 1, { timeToLive: "8 seconds" }),
      Semaphore.withPermits(Effect.void, semaphore, 1, { waitTime: 0 })
    ),
    "permit semaphore": Effect.andThen(
      Semaphore.trySetPermits(permits, 1, { timeToLive: "8 seconds" }),
      PermitSemaphore.withPermit(Effect.void, permits, options)
    ),
    latch: Effect.andThen(
      Semaphore.trySetPermits(latch, 1, { timeToLive: "8 seconds" }),
      CountDownLatch.countDown(latch)
    ),
    // without a time limit of their own, both try again while Redis is away
    election: Effect.timeout(
      Effect.scoped(LeaderElection.campaign(LeaderElection.make(name("election")))),
      "3 seconds"
    ),
    "run once": Effect.timeout(
      RunOnce.run(
        Effect.succeed(1),
        RunOnce.make(name("run-once"), { timeToLive: "8 seconds", result: Schema.Number })
      ),
      "3 seconds"
    ),
    list: Stream.runDrain(Lock.list("redis-lock:doctor:*"))
  }
  return Effect.forEach(Object.entries(trials), ([kind, trial]) =>
    Effect.match(trial, {
      onSuccess: () => ok(kind, "works"),
      onFailure: (error) =>
        // a user may be meant to have no more than plain locks
        kind !== "lock" && error.reason === "NoPermission"
          ? warning(kind, remedyOf(error))
          : problem(kind, remedyOf(error))
    })
  ).pipe(
    Effect.provide(RedisLock.layer({ keyPrefix: prefix, tokenRetention: "1 second", watchdogLeaseTime: "8 seconds" })),
    Effect.catch(({ message }: InvalidLockOptions) => Effect.succeed([problem("prefix", message)]))
  )
}

export const subscription = (driver: Driver, name: string): Effect.Effect<Check> =>
  driver.subscribe(`redisson_lock__channel:${name}`).pipe(
    Stream.runHead,
    Effect.timeout("3 seconds"),
    Effect.match({
      onSuccess: () => ok("subscribe", "works"),
      onFailure: (error) =>
        problem(
          "subscribe",
          `${wordsOf(error)}. Waiters then ask once a second in place of being woken: allow SUBSCRIBE, and the channels redisson_*.`
        )
    })
  )

export const tracking = ({ invalidations = Stream.empty }: Driver): Effect.Effect<Check> =>
  Stream.runHead(invalidations).pipe(
    Effect.timeout("3 seconds"),
    Effect.match({
      onSuccess: () => ok("tracking", "a holder is notified at once when its lock is gone"),
      onFailure: (error) =>
        warning(
          "tracking",
          `${wordsOf(error)}. A holder whose lock somebody else has deleted then notices at its next renewal: allow CLIENT ID, TRACKING and CACHING, and the channel __redis__:invalidate.`
        )
    })
  )
