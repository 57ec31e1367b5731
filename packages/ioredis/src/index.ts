/**
 * The ioredis driver of effect-redis-lock.
 *
 * @since 0.1.0
 */
export * as IoRedis from "./IoRedis.ts"
export * as RedisUrl from "./RedisUrl.ts"
