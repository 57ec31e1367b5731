/**
 * The servers of locks, as Sentinel runs them, and what happens to their master.
 */
import { RedisSentinel, type RedisServer } from "@effect-redis-lock/testing"
import { Effect, type Scope } from "effect"
import type { Redis } from "ioredis"
import { eventually } from "../kit/eventually.ts"
import { bare } from "../kit/server/bareRedis.ts"

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

/** The servers whose master is this one. */
const replicasOf = Effect.fnUntraced(function* (servers: ReadonlyArray<Server>, master: Server) {
  const found: Array<Server> = []
  for (const server of servers) {
    const [role, , port] = (yield* ask(server, (redis) => redis.call("ROLE"))) as ReadonlyArray<unknown>
    if (role === "slave" && port === master.port) found.push(server)
  }
  return found
})

interface Steps {
  /** What happens just before: where the master is cut off, when its replicas hear nothing any more. */
  readonly begins: Effect.Effect<unknown, never, Scope.Scope>
  /** What happens as soon as another one is the master. */
  readonly succeeded: Effect.Effect<unknown>
}

export interface Site {
  /** The URL of all of it. */
  readonly url: string
  /** Its servers, but no sentinels. */
  readonly servers: ReadonlyArray<Server>
  readonly sentinels: ReadonlyArray<Server>
  readonly master: Effect.Effect<Server>
  /** A planned failover. */
  readonly promote: (steps: Steps) => Effect.Effect<void, never, Scope.Scope>
  /** The master's replicas hear nothing any more, and then it dies. */
  readonly cutOff: (steps: Steps) => Effect.Effect<void, never, Scope.Scope>
}

export const openSite: Effect.Effect<Site, unknown, Scope.Scope> = Effect.gen(function* () {
  const replicas = 2
  const deployment = yield* RedisSentinel.start({ sentinels: 3, replicas, downAfter: "500 millis" })
  const { name, sentinels, servers } = deployment
  const master = patiently("the sentinels name a master", deployment.master)

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
      // sentinels would see to it later
      if (!(yield* replicasOf(servers, now)).includes(before)) {
        yield* ask(before, (redis) => redis.call("REPLICAOF", now.host, now.port))
      }
      yield* eventually(
        "the master has all of its replicas",
        Effect.flatMap(master, (server) => ask(server, (redis) => redis.info("replication"))),
        (info) => (info.match(/state=online/g)?.length ?? 0) === replicas && /^role:master/m.test(info)
      )
    })

  return {
    url: `redis+sentinel://${hosts(sentinels)}/${name}`,
    ...{ servers, sentinels, master },
    promote: Effect.fnUntraced(function* ({ begins, succeeded }) {
      const before = yield* master
      yield* begins
      yield* patiently("a planned failover", deployment.failover)
      yield* succeeded
      yield* settled(before)
    }),
    cutOff: Effect.fnUntraced(function* ({ begins, succeeded }) {
      const before = yield* master
      const others = yield* replicasOf(servers, before)
      for (const other of others) yield* ask(other, (redis) => redis.config("SET", "masterauth", "wrong"))
      yield* ask(before, (redis) => redis.call("CLIENT", "KILL", "TYPE", "replica"))
      yield* begins
      yield* before.kill
      for (const other of others) yield* ask(other, (redis) => redis.config("SET", "masterauth", ""))
      yield* succession(before)
      yield* succeeded
      yield* patiently("the old master is started again", before.restart)
      yield* settled(before)
    })
  }
})
