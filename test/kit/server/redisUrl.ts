/**
 * The Redis that the tests share, found by `globalSetup.ts`. Tests that stop, stall or flush a server start their own.
 */
export const redisUrl = process.env["REDIS_URL"]!
