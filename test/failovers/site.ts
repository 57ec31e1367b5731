/**
 * The servers of one lock, as Sentinel or a cluster runs them, and what happens to their master.
 */
import { RedisCluster, RedisSentinel, type RedisServer } from "@effect-redis-lock/testing"
import { Effect, type Scope } from "effect"
import type { Redis } from "ioredis"
import { eventually } from "../kit/eventually.ts"
import { bare } from "../kit/server/bareRedis.ts"

export const lock = "account"

/** What both deployments have in common. */
export interface Site {
  readonly name: "Sentinel" | "Cluster"
  /** The URL of all of it. */
  readonly url: string
  readonly replicas: number
  /** Its servers, but no sentinels. */
  readonly servers: ReadonlyArray<RedisServer.RedisServer>
  readonly sentinels: ReadonlyArray<RedisServer.RedisServer>
  /** The master that serves the lock. */
  readonly master: Effect.Effect<RedisServer.RedisServer>
  /** Asks for a planned failover, and waits until there is another master. */
  readonly promote: Effect.Effect<void>
}

type Server = RedisServer.RedisServer

/** Looks at a server once. */
export const ask = <A>(server: Server, look: (redis: Redis) => Promise<A>): Effect.Effect<A> =>
  Effect.scoped(Effect.flatMap(bare(server), (redis) => Effect.promise(() => look(redis))))

const hosts = (servers: ReadonlyArray<Server>) => servers.map(({ host, port }) => `${host}:${port}`).join(",")

const patiently = <A, E>(what: string, self: Effect.Effect<A, E>): Effect.Effect<A> =>
  Effect.map(
    eventually(what, Effect.result(self), ({ _tag }) => _tag === "Success"),
    (result) => (result as { readonly success: A }).success
  )

/** The other one of the servers whose master is this one. */
const replicasOf = Effect.fnUntraced(function* (servers: ReadonlyArray<Server>, master: Server) {
  const found: Array<Server> = []
  for (const server of servers) {
    const [role, , port] = (yield* ask(server, (redis) => redis.call("ROLE"))) as ReadonlyArray<unknown>
    if (role === "slave" && port === master.port) found.push(server)
  }
  return found
})

const sentinel = Effect.gen(function* () {
  const deployment = yield* RedisSentinel.start({ sentinels: 3, replicas: 2, downAfter: "500 millis" })
  const master = patiently("the sentinels name a master", deployment.master)
  const site: Site = {
    name: "Sentinel",
    url: `redis+sentinel://${hosts(deployment.sentinels)}/${deployment.name}`,
    replicas: 2,
    servers: deployment.servers,
    sentinels: deployment.sentinels,
    master,
    promote: patiently("a planned failover", deployment.failover)
  }
  return site
})

const cluster = Effect.gen(function* () {
  const deployment = yield* RedisCluster.start({ replicas: 1, nodeTimeout: "1 second" })
  const slot = yield* deployment.slotOf(lock)
  const master = patiently("a node serves the lock", deployment.ownerOf(slot))
  const site: Site = {
    name: "Cluster",
    url: `redis+cluster://${hosts(deployment.nodes)}`,
    replicas: 1,
    servers: deployment.nodes,
    sentinels: [],
    master,
    promote: Effect.gen(function* () {
      const before = yield* master
      const [replica] = yield* replicasOf(deployment.nodes, before)
      yield* ask(replica!, (redis) => redis.call("CLUSTER", "FAILOVER"))
      yield* eventually("the replica is the master", master, (now) => now !== before)
    })
  }
  return site
})

/**
 * - `kill`: the master dies
 * - `cut off`: its replicas hear nothing any more, and then it dies
 * - `stop`: it stands still until another one has taken over
 * - `promote`: a planned failover
 */
export const faults = ["kill", "cut off", "stop", "promote"] as const
export type Fault = (typeof faults)[number]

export interface PlayOptions {
  /** How long the master goes on without its replicas where it is cut off, milliseconds. */
  readonly cutOffMillis: number
  /** Makes everybody let go. */
  readonly quiet: Effect.Effect<unknown>
  /** What happens just before: where the master is cut off, when its replicas hear nothing any more. */
  readonly begins: Effect.Effect<unknown, never, Scope.Scope>
  /** What happens as soon as another one is the master. */
  readonly succeeded: Effect.Effect<unknown>
}

const opened = Effect.fnUntraced(function* (
  start: typeof sentinel | typeof cluster
): Effect.fn.Return<
  Site & { readonly play: (fault: Fault, options: PlayOptions) => Effect.Effect<void, never, Scope.Scope> },
  never,
  Scope.Scope
> {
  const site = yield* Effect.orDie<Effect.Success<typeof sentinel>, unknown, Scope.Scope>(start)
  const { master, replicas, servers } = site

  const isMaster = (server: Server) =>
    ask(server, async (redis) => ((await redis.call("ROLE")) as ReadonlyArray<unknown>)[0] === "master")

  /** Sentinels may name a successor before it knows, and choose another one if it does not answer. */
  const succession = (before: Server) =>
    eventually(
      "another one is the master",
      Effect.flatMap(master, (now) => (now === before ? Effect.succeed(false) : isMaster(now))),
      (succeeded) => succeeded
    )

  /** Every server is back as a replica of the one master. */
  const settled = (before: Server) =>
    Effect.gen(function* () {
      const now = yield* master
      // sentinels would see to it later, and a cluster does
      if (site.name === "Sentinel" && !(yield* replicasOf(servers, now)).includes(before)) {
        yield* ask(before, (redis) => redis.call("REPLICAOF", now.host, now.port))
      }
      yield* eventually(
        "the master has all of its replicas",
        Effect.flatMap(master, (server) => ask(server, (redis) => redis.info("replication"))),
        (info) => (info.match(/state=online/g)?.length ?? 0) === replicas && /^role:master/m.test(info)
      )
    })

  const play = (fault: Fault, { begins, cutOffMillis, quiet, succeeded }: PlayOptions) =>
    Effect.gen(function* () {
      const before = yield* master
      switch (fault) {
        case "cut off":
        case "kill": {
          const others = yield* replicasOf(servers, before)
          if (fault === "cut off") {
            // its successor shall not take the lock for held by somebody who has released it: that would take a lease
            yield* quiet
            yield* eventually(
              "nobody holds the lock",
              ask(before, (redis) => redis.exists(lock)),
              (held) => held === 0
            )
            yield* eventually(
              "the replicas have heard that it is free",
              Effect.forEach(others, (other) => ask(other, async (redis) => (await redis.keys("*")).includes(lock))),
              (held) => !held.includes(true)
            )
            for (const other of others) yield* ask(other, (redis) => redis.config("SET", "masterauth", "wrong"))
            yield* ask(before, (redis) => redis.call("CLIENT", "KILL", "TYPE", "replica"))
          }
          yield* begins
          yield* Effect.sleep(fault === "cut off" ? cutOffMillis : 0)
          yield* before.kill
          for (const other of others) yield* ask(other, (redis) => redis.config("SET", "masterauth", ""))
          yield* succession(before)
          yield* succeeded
          yield* patiently("the old master is started again", before.restart)
          break
        }
        case "stop":
          yield* begins
          yield* Effect.orDie(before.pause)
          yield* succession(before)
          yield* succeeded
          yield* Effect.orDie(before.resume)
          break
        case "promote":
          yield* begins
          yield* site.promote
          yield* succeeded
          break
      }
      yield* settled(before)
    })

  return { ...site, play }
})

export const sites = { Sentinel: opened(sentinel), Cluster: opened(cluster) } as const
