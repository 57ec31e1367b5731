/**
 * States of Redis and of clients that tests wait for.
 */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { type Holding, Lock } from "effect-redis-lock"
import type { Redis } from "ioredis"
import type { Client } from "../clients.ts"
import { eventually } from "../eventually.ts"

/** Waits until the client has a connection. */
export const connected = ({ run }: Client) =>
  eventually(
    "the client is connected",
    () => Effect.runPromise(Effect.result(run(Lock.isLocked("any")))),
    (result) => result._tag === "Success"
  )

/** Waits until the client has none. */
export const disconnected = ({ run }: Client) =>
  eventually(
    "the client is disconnected",
    () => Effect.runPromise(Effect.result(run(Lock.isLocked("any")))),
    (result) =>
      result._tag === "Failure" && result.failure._tag === "LockStoreError" && result.failure.reason === "NotConnected"
  )

/** Waits until the lock's key is there, or is gone. */
export const lockKey = (redis: Redis, lock: string, is: "there" | "gone") =>
  eventually(
    `the key of lock "${lock}" is ${is}`,
    () => redis.exists(lock),
    (count) => count === (is === "there" ? 1 : 0)
  )

/** Waits until the server is to tell of the changes of so many keys. */
export const isTracked = (redis: Redis, keys = 1) =>
  eventually(
    `${keys} keys are tracked`,
    async () => Number(/tracking_total_keys:(\d+)/.exec(await redis.info("stats"))?.[1] ?? 0),
    (count) => count >= keys
  )

/** Waits until the lock has been renewed so many times more: its key's time to live, which only shrinks otherwise, has grown. */
export const renewed = (redis: Redis, lock: string, times: number) =>
  growsBy(`lock "${lock}" is renewed ${times} times`, () => redis.pttl(lock), times)

/** {@link renewed} for any time that is left. */
export const growsBy = (what: string, left: () => Promise<number>, times: number) => {
  let seen = 0
  let last = Number.POSITIVE_INFINITY
  return eventually(what, left, (left) => {
    assert.isAbove(left, 0, "it has ended instead")
    if (left > last) seen++
    last = left
    return seen >= times
  })
}

/** Waits until so many scripts have been run by their SHA since the server started, or were unknown to it. */
const scriptsRun = (redis: Redis, count: number) =>
  eventually(
    `${count} scripts have been run`,
    () => redis.info("commandstats"),
    (stats) => Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1]) >= count
  )

/** Waits until so many connections are subscribed to the lock's channel. */
export const subscribers = (redis: Redis, lock: string, count: number, prefix = "redisson_lock__channel") =>
  eventually(
    `${count} connections are subscribed to the channel of lock "${lock}"`,
    () => redis.pubsub("NUMSUB", `${prefix}:{${lock}}`) as Promise<ReadonlyArray<unknown>>,
    ([, subscribed]) => Number(subscribed) === count
  )

/**
 * Waits until a waiter for a held lock sleeps. Only the holder and that waiter may have run scripts on this server, and no others than to acquire:
 * neither has a label, and the holder is not told of losses.
 */
export const waiterSleeps = Effect.fnUntraced(function* (redis: Redis, lock: string) {
  // each client's first, refused because the server's clock is not known yet; the holder's; the waiter's before and after it
  // has subscribed
  yield* scriptsRun(redis, 5)
  yield* subscribers(redis, lock, 1)
})

/** In Redis the lock belongs to this holding, once, and to nobody else. */
export const belongsTo = Effect.fnUntraced(function* (redis: Redis, lock: string, holding: Pick<Holding, "owner">) {
  const fields = yield* Effect.promise(() => redis.hgetall(lock))
  assert.deepStrictEqual({ ...fields }, { [holding.owner]: "1" })
})
