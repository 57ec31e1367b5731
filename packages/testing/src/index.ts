/**
 * A real Redis for a test, and a network and a lock store that fail on demand:
 *
 * - {@link TestRedis} finds a Redis: `REDIS_URL`, a local server, or a container
 * - {@link RedisServer} runs a redis-server process that a test kills, pauses and restarts
 * - {@link RedisCluster} and {@link RedisSentinel} run several of them, with failover
 * - {@link TcpProxy} sits between a client and its server, and cuts, stalls, delays or drops
 * - {@link FailingStore} wraps a lock store, whose operations then fail as the test demands
 * - {@link LockClients} makes several clients of one store, like several instances of an application
 */
export * as FailingStore from "./FailingStore.ts"
export * as LockClients from "./LockClients.ts"
export * as RedisCluster from "./RedisCluster.ts"
export * as RedisSentinel from "./RedisSentinel.ts"
export * as RedisServer from "./RedisServer.ts"
export * as TcpProxy from "./TcpProxy.ts"
export * as TestRedis from "./TestRedis.ts"
