/**
 * A real Redis for a test, a network and a store that fail on demand:
 *
 * - {@link TestRedis} finds a Redis: `REDIS_URL`, a local server, or a container
 * - {@link RedisServer} runs a redis-server process of our own, to be killed, paused and restarted
 * - {@link RedisCluster} and {@link RedisSentinel} run several of them, with failover
 * - {@link TcpProxy} stands between a client and its server and cuts, stalls, delays or drops
 * - {@link FailingStore} stands before a store of locks, whose operations fail as a test says
 * - {@link LockClients} are several clients of one store, as several instances of an application are
 */
export * as FailingStore from "./FailingStore.ts"
export * as LockClients from "./LockClients.ts"
export * as RedisCluster from "./RedisCluster.ts"
export * as RedisSentinel from "./RedisSentinel.ts"
export * as RedisServer from "./RedisServer.ts"
export * as TcpProxy from "./TcpProxy.ts"
export * as TestRedis from "./TestRedis.ts"
