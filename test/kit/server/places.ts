/**
 * The places of clients that wait for a lock.
 */
import { Effect } from "effect"
import type { Redis } from "ioredis"
import type { Client } from "../clients.ts"
import { eventually } from "../eventually.ts"
import { queueUp } from "../sections.ts"
import { subscribers } from "./conditions.ts"

/** How many clients have a place in the queue of lock "report". */
export const placesTaken = (redis: Redis) => redis.zcard("effect_redis_lock_places:{report}")

/** Queues up for lock "report", and waits until the client has a place behind so many others and hears that it is handed the lock. */
export const takesPlace = Effect.fnUntraced(function* (who: Client, redis: Redis, ahead: number) {
  const waiter = yield* queueUp(who, "report")
  yield* subscribers(redis, "report", ahead + 1)
  yield* eventually(
    `${ahead + 1} clients have places`,
    () => placesTaken(redis),
    (taken) => taken === ahead + 1
  )
  return waiter
})
