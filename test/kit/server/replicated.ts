/**
 * A master with replicas, each of which hears from it through a proxy.
 */
import { RedisServer, TcpProxy } from "@effect-redis-lock/testing"
import { Effect } from "effect"
import type { Redis } from "ioredis"
import { eventually } from "../eventually.ts"
import { bare } from "./bareRedis.ts"

/** Waits until the master reports so many replicas as online, and has heard from each. */
export const replicasOnline = (master: Redis, count: number) =>
  eventually(
    `the master has ${count} replicas online`,
    async () => {
      // gives them something to acknowledge at once: a master by itself sends nothing for ten seconds
      await master.publish("acknowledge", "")
      await master.wait(count, 100)
      return master.info("replication")
    },
    (info) =>
      (info.match(/state=online/g)?.length ?? 0) === count && (info.match(/state=online,offset=0,/g)?.length ?? 0) === 0
  )

/** Starts a server, with a bare client of it. */
const node = Effect.fnUntraced(function* (args: ReadonlyArray<string>) {
  const server = yield* RedisServer.start({ args: ["--repl-diskless-sync-delay", "0", ...args] })
  return { server, redis: yield* bare(server) }
})

/** Starts a master and its replicas, and waits until they are in sync. */
export const replicated = Effect.fnUntraced(function* (count: number) {
  const master = yield* node([])
  const replicas = yield* Effect.forEach(
    Array.from({ length: count }),
    Effect.fnUntraced(function* () {
      const link = yield* TcpProxy.make({ target: master.server })
      return { ...(yield* node(["--replicaof", link.host, String(link.port)])), link }
    }),
    { concurrency: "unbounded" }
  )
  yield* replicasOnline(master.redis, count)
  return { master, replicas }
})
