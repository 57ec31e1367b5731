/**
 * The ioredis driver of effect-redis-lock.
 *
 * @since 0.1.0
 */
export * as IoRedis from "./IoRedis.ts"
