import { Effect } from "effect"
import type { Redis } from "ioredis"

/** The server's clock, whole milliseconds. */
export const serverTime = (redis: Redis) =>
  Effect.promise(async () => {
    const [seconds, micros] = await redis.time()
    return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000)
  })
