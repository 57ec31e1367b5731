/**
 * The servers of a run, and the way of each client to them, through proxies of its own.
 */
import { RedisCluster, RedisSentinel, RedisServer } from "@effect-redis-lock/testing"
import { Effect, type Scope } from "effect"
import { Redis } from "ioredis"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type ClientSettings, lockOf, now } from "./events.ts"
import { LateProxy } from "./LateProxy.ts"
import { startSkewed } from "./skewedServer.ts"

export type ServerKind = ClientSettings["server"]

type Server = RedisServer.RedisServer

/** The way of one client to the servers. */
export interface Way extends Pick<ClientSettings, "urls" | "natMap"> {
  readonly proxies: ReadonlyArray<LateProxy>
}

export interface Site {
  readonly kind: ServerKind
  /** Those that have the locks, and those that have copies. */
  readonly servers: ReadonlyArray<Server>
  /** A bare client of each, by port. */
  readonly redises: ReadonlyMap<number, Redis>
  readonly ways: ReadonlyArray<Way>
  /** Whoever serves the locks now: of a quorum, the member of that number. */
  readonly master: (member: number) => Effect.Effect<Server>
  /** Asks for a planned failover, and waits until there is another master. */
  readonly promote: Effect.Effect<void>
  /** Sets the clock of the server at that port, so many milliseconds ahead; of servers that were started for that. */
  readonly clocks: ReadonlyMap<number, (millis: number) => Effect.Effect<void>>
  /** Moves the slot of the locks to another master of a cluster, with so many milliseconds between the keys and the end of it. */
  readonly migrate?: (millis: number) => Effect.Effect<void>
  /** Waits until everything is as in the beginning: every server answers, and the master has its replicas. */
  readonly whole: Effect.Effect<void>
}

export const sleeping = <A>(look: () => Promise<A>, isReached: (value: A) => boolean): Effect.Effect<A> =>
  Effect.promise(async () => {
    while (true) {
      const value = await look().catch(() => undefined)
      if (value !== undefined && isReached(value)) return value
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  })

/** A bare client of a server, which waits for it. */
export const bare = (url: string): Effect.Effect<Redis, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const redis = new Redis(url, { retryStrategy: () => 50, maxRetriesPerRequest: null })
      redis.on("error", () => {})
      return redis
    }),
    (redis) => Effect.sync(() => redis.disconnect())
  )

const redisesOf = (servers: ReadonlyArray<Server>) =>
  Effect.map(
    Effect.forEach(servers, ({ port, url }) => Effect.map(bare(url), (redis) => [port, redis] as const)),
    (redises) => new Map(redises)
  )

/** The options of a server that keeps its data over a restart. */
export const durable = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "chaos-"))),
    (directory) => Effect.sync(() => rmSync(directory, { recursive: true, force: true }))
  ),
  (directory) => ["--dir", directory, "--appendonly", "yes", "--appendfsync", "always"]
)

const debug = ["--enable-debug-command", "yes"]

const independent = (kind: "single" | "quorum", clients: number, late: Late, withClocks: boolean) =>
  Effect.gen(function* () {
    const count = kind === "single" ? 1 : 3
    const clocks = new Map<number, (millis: number) => Effect.Effect<void>>()
    const servers = yield* Effect.forEach(
      Array.from({ length: count }),
      Effect.fnUntraced(function* () {
        const args = [...(yield* durable), ...debug]
        if (!withClocks) return yield* RedisServer.start({ args })
        const { server, setClock } = yield* startSkewed(0, args)
        clocks.set(server.port, setClock)
        return server
      })
    )
    const redises = yield* redisesOf(servers)
    const ways = yield* Effect.forEach(Array.from({ length: clients }), (_, client) =>
      Effect.map(
        Effect.forEach(servers, ({ port }) => LateProxy.make(port, (bytes) => late(client, bytes))),
        (proxies): Way => ({ proxies, urls: proxies.map(({ url }) => url) })
      )
    )
    const site: Site = {
      ...{ kind, servers, redises, ways, clocks },
      master: (member) => Effect.succeed(servers[member % count]!),
      promote: Effect.void,
      whole: Effect.forEach(
        redises.values(),
        (redis) =>
          sleeping(
            () => redis.ping(),
            (reply) => reply === "PONG"
          ),
        { discard: true }
      )
    }
    return site
  })

/** The ways of clients that are told of the servers by other servers: each finds a proxy at the address of each. */
const waysTo = (servers: ReadonlyArray<Server>, seeds: ReadonlyArray<Server>, clients: number, late: Late) =>
  Effect.forEach(Array.from({ length: clients }), (_, client) =>
    Effect.gen(function* () {
      const proxies = yield* Effect.forEach(servers, ({ port }) => LateProxy.make(port, (bytes) => late(client, bytes)))
      const at = servers.map(({ host, port }, i) => {
        const { hostname, port: near } = new URL(proxies[i]!.url)
        return [`${host}:${port}`, { host: hostname, port: Number(near) }] as const
      })
      const way: Way = { proxies, natMap: Object.fromEntries(at), urls: seeds.map(({ url }) => url) }
      return way
    })
  )

/** Looks at the roles of the servers until one is the master, and so many others follow it. */
const replicating = (redises: Site["redises"], replicas: number) =>
  sleeping(
    () => Promise.all([...redises.values()].map((redis) => redis.info("replication"))),
    (infos) =>
      infos.some((info) => /^role:master/m.test(info) && (info.match(/state=online/g)?.length ?? 0) === replicas) &&
      infos.every((info) => /^role:master/m.test(info) || /^master_link_status:up/m.test(info))
  )

/** The replicas of a master, as they see it. */
export const followersOf = (redises: Site["redises"], master: Server): Effect.Effect<ReadonlyArray<Redis>> =>
  Effect.promise(async () => {
    const all = [...redises.values()]
    const roles = (await Promise.all(all.map((redis) => redis.call("ROLE")))) as ReadonlyArray<ReadonlyArray<unknown>>
    return all.filter((_, i) => roles[i]![0] === "slave" && roles[i]![2] === master.port)
  })

/** Those of Redis, where `RedisSentinel` has others. */
const periods = ["INFO-PERIOD", 10_000, "PUBLISH-PERIOD", 2000, "PING-PERIOD", 1000]

const sentinel = (clients: number, late: Late, isSlow: boolean) =>
  Effect.gen(function* () {
    const deployment = yield* RedisSentinel.start({ sentinels: 3, replicas: 2, downAfter: "500 millis", args: debug })
    const { sentinels, servers } = deployment
    for (const redis of isSlow ? (yield* redisesOf(sentinels)).values() : []) {
      yield* Effect.promise(() => redis.call("SENTINEL", "DEBUG", ...periods))
    }
    const redises = yield* redisesOf(servers)
    const site: Site = {
      ...{ kind: "sentinel", servers, redises, clocks: new Map() },
      ways: yield* waysTo(servers, sentinels, clients, late),
      master: () => Effect.orDie(Effect.retry(deployment.master, { times: 100 })),
      promote: Effect.orDie(Effect.retry(deployment.failover, { times: 3 })),
      whole: Effect.asVoid(replicating(redises, 2))
    }
    return site
  })

/** A replica gives up a planned failover that has not come about in 5 s. */
const GIVES_UP_MILLIS = 6000

const cluster = (clients: number, late: Late) =>
  Effect.gen(function* () {
    const deployment = yield* RedisCluster.start({ replicas: 1, nodeTimeout: "1 second", args: debug })
    const { nodes } = deployment
    const redises = yield* redisesOf(nodes)
    const slot = yield* deployment.slotOf(lockOf("plain"))
    const master = Effect.orDie(Effect.retry(deployment.ownerOf(slot), { times: 10 }))
    const site: Site = {
      ...{ kind: "cluster", servers: nodes, redises, clocks: new Map() },
      ways: yield* waysTo(nodes, nodes, clients, late),
      master: () => master,
      promote: Effect.gen(function* () {
        const before = yield* master
        const [replica] = yield* followersOf(redises, before)
        let askedAt = Number.NEGATIVE_INFINITY
        while ((yield* master) === before) {
          if (now() - askedAt > GIVES_UP_MILLIS) {
            askedAt = now()
            yield* Effect.promise(() => replica!.call("CLUSTER", "FAILOVER"))
          }
          yield* Effect.sleep(20)
        }
      }),
      migrate: Effect.fnUntraced(function* (millis) {
        const from = yield* master
        // a slot of each third
        const masters = yield* Effect.forEach([1, 6000, 12_000], deployment.ownerOf)
        const to = masters.find((other) => other !== from)!
        const finish = yield* deployment.beginMoveSlot(slot, to)
        yield* Effect.sleep(millis)
        yield* finish
        // its replica has all that came with the slot: what all replicas have acknowledged must not be lost with the master
        const redis = redises.get(to.port)!
        yield* Effect.promise(() => redis.set("{chaos}:moved", "", "PX", 1))
        yield* Effect.promise(() => redis.wait(1, 0))
      }, Effect.orDie),
      whole: Effect.andThen(Effect.orDie(deployment.ok), replicating(redises, 1))
    }
    return site
  })

/** Is told of bytes that a client has sent long ago. */
type Late = (client: number, bytes: Buffer) => void

interface SiteOptions {
  readonly clients: number
  readonly late: Late
  /** Whether clocks can be set. Default: false. */
  readonly withClocks?: boolean
  /** Whether sentinels are as slow as Redis makes them. Default: false. */
  readonly slowSentinels?: boolean
}

export const openSite = (
  kind: ServerKind,
  { clients, late, slowSentinels = false, withClocks = false }: SiteOptions
): Effect.Effect<Site, unknown, Scope.Scope> => {
  switch (kind) {
    case "single":
    case "quorum":
      return independent(kind, clients, late, withClocks)
    case "sentinel":
      return sentinel(clients, late, slowSentinels)
    case "cluster":
      return cluster(clients, late)
  }
}
