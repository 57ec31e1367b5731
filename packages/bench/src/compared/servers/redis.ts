import { Redis } from "ioredis"
import { setTimeout as sleep } from "node:timers/promises"
import { type RedisServer, startRedis } from "../../servers/RedisServer.ts"
import type { Server } from "./Server.ts"
import { findProgram } from "./serverProcess.ts"

const fsyncAlways = ["--appendonly", "yes", "--appendfsync", "always"]

const redis = (
  setting: string,
  {
    args = [],
    count,
    replicas = 0
  }: { readonly args?: ReadonlyArray<string>; readonly count: number; readonly replicas?: number }
): Server => ({
  setting,
  missing: async () =>
    (await findProgram("redis-server")) === undefined
      ? "there is no redis-server here: apt-get install redis-server"
      : undefined,
  start: async () => {
    const servers: Array<RedisServer> = []
    for (let i = 0; i < count; i++) servers.push(await startRedis(args))
    const [first, ...others] = servers
    const followers: Array<RedisServer> = []
    for (let i = 0; i < replicas; i++) {
      followers.push(await startRedis([...args, "--replicaof", "127.0.0.1", String(first!.port)]))
    }
    const client = new Redis(first!.port)
    // until the replicas have what the master has
    while ((await client.info("replication")).split("state=online").length <= replicas) await sleep(10)
    client.disconnect()
    return {
      version: `Redis ${first!.version}`,
      place: {
        system: "redis",
        port: first!.port,
        otherPorts: others.map(({ port }) => port),
        replicaPorts: followers.map(({ port }) => port)
      },
      clear: async () => {
        await Promise.all(servers.map((server) => server.clear()))
      },
      stop: async () => {
        await Promise.all([...servers, ...followers].map((server) => server.stop()))
      }
    }
  }
})

export const redisFast = redis("no persistence", { count: 1 })
export const redisDurable = redis("`appendfsync always`", { count: 1, args: fsyncAlways })
export const redisReplicated = redis("no persistence, two replicas", { count: 1, replicas: 2 })
export const redisQuorum = redis("three servers, `appendfsync always`", { count: 3, args: fsyncAlways })
