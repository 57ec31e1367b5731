/**
 * Effect's cluster on Redis.
 *
 * @since 0.3.0
 */
export * as RedisRunnerStorage from "./RedisRunnerStorage.ts"
