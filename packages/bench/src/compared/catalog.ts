import type { Entry } from "../candidates/catalog.ts"
import { buildJava } from "../processes/javaBuild.ts"
import type { Server } from "./servers/Server.ts"

/** A way to lock, on the server of some system with one setting. */
export interface System extends Entry {
  readonly server: () => Promise<Server>
  /** What decides how long a lock outlives its process. */
  readonly decides: string
}

export const reference = "redis SETNX"

const lease = "the lease"
const sessionTimeout = "the session's timeout"
const connection = "TCP: the kernel closes the connection with the process"

const redisFast = async () => (await import("./servers/redis.ts")).redisFast
const redisDurable = async () => (await import("./servers/redis.ts")).redisDurable
const redisReplicated = async () => (await import("./servers/redis.ts")).redisReplicated
const redisQuorum = async () => (await import("./servers/redis.ts")).redisQuorum
const mariadbDurable = async () => (await import("./servers/mariadb.ts")).mariadbDurable
const mariadbFast = async () => (await import("./servers/mariadb.ts")).mariadbFast
const postgresqlDurable = async () => (await import("./servers/postgresql.ts")).postgresqlDurable
const postgresqlFast = async () => (await import("./servers/postgresql.ts")).postgresqlFast
const zookeeperDurable = async () => (await import("./servers/zookeeper.ts")).zookeeperDurable
const zookeeperFast = async () => (await import("./servers/zookeeper.ts")).zookeeperFast
const etcdDurable = async () => (await import("./servers/etcd.ts")).etcdDurable
const etcdFast = async () => (await import("./servers/etcd.ts")).etcdFast

const setNx = {
  about: "`SET name owner NX PX`, and a script that compares and deletes; a waiter polls every 100 ms",
  decides: lease,
  load: () => import("./systems/redisSetNx.ts")
}

const ours = {
  decides: lease,
  load: () => import("../candidates/effectRedisLock.ts")
}

const mariadbRow = {
  about:
    "a row with a unique name, an owner and an expiry by the server's clock: one statement to take it, one to delete it; a waiter polls every 100 ms",
  decides: lease,
  load: () => import("./systems/mariadbRow.ts")
}

const postgresqlRow = { ...mariadbRow, load: () => import("./systems/postgresqlRow.ts") }

const zookeeper = {
  about:
    "Curator 5.9.0's `InterProcessMutex`, in a Java process: a sequential ephemeral node, and a watch on the one before it",
  decides: sessionTimeout,
  prepare: buildJava,
  load: () => import("./systems/zookeeper.ts")
}

const etcd = {
  about:
    "etcd's lock service over gRPC, which runs the recipe of its `concurrency` package on the server: a key with a lease, and a watch on the one before it",
  decides: lease,
  load: () => import("./systems/etcd.ts")
}

/** What would be compared where a server could be had. */
export const notMeasured: ReadonlyArray<readonly [name: string, reason: string]> = [
  ["mongodb", "Debian has no MongoDB server to start"]
]

/** What is compared, in the order of the tables. */
export const systems: ReadonlyArray<System> = [
  { name: reference, server: redisFast, ...setNx },
  { name: `${reference}, durable`, server: redisDurable, ...setNx },
  { name: "effect-redis-lock", about: "`Lock.withLock`, everything as shipped", server: redisFast, ...ours },
  { name: "effect-redis-lock, durable", about: "the same", server: redisDurable, ...ours },
  {
    name: "effect-redis-lock, acknowledged",
    about: "the same, with grants that wait for both replicas (`acknowledge`)",
    server: redisReplicated,
    ...ours,
    load: () => import("./systems/effectRedisLockAcknowledged.ts")
  },
  {
    name: "effect-redis-lock, quorum",
    about: "the same over `RedisLock.layerQuorum`, on the majority of three servers",
    server: redisQuorum,
    ...ours
  },
  {
    name: "redisson (java)",
    about: "4.7.0 with its defaults, in a Java process: `lock` and `unlock`",
    server: redisFast,
    decides: lease,
    prepare: buildJava,
    load: () => import("../candidates/redisson.ts")
  },
  {
    name: "redlock",
    about: "5.0.0-beta.2 with its defaults, on one server",
    server: redisFast,
    decides: lease,
    load: () => import("../candidates/redlock.ts")
  },
  {
    name: "effect-distributed-lock",
    about:
      "0.0.11, `withPermits(1)` with its defaults; each acquisition opens a connection; not measured with 10,000 names",
    server: redisFast,
    except: ["names"],
    decides: lease,
    load: () => import("../candidates/effectDistributedLock.ts")
  },
  { name: "mariadb row, durable", server: mariadbDurable, ...mariadbRow },
  { name: "mariadb row, fast", server: mariadbFast, ...mariadbRow },
  {
    name: "mariadb GET_LOCK",
    about: "a name that a connection holds; nothing is written, so that no setting matters",
    server: mariadbFast,
    decides: connection,
    load: () => import("./systems/mariadbGetLock.ts")
  },
  { name: "postgresql row, durable", server: postgresqlDurable, ...postgresqlRow },
  { name: "postgresql row, fast", server: postgresqlFast, ...postgresqlRow },
  {
    name: "postgresql advisory",
    about: "`pg_advisory_lock`, a number that a connection holds; nothing is written, so that no setting matters",
    server: postgresqlFast,
    decides: connection,
    load: () => import("./systems/postgresqlAdvisory.ts")
  },
  { name: "zookeeper, durable", server: zookeeperDurable, ...zookeeper },
  { name: "zookeeper, fast", server: zookeeperFast, ...zookeeper },
  { name: "etcd, durable", server: etcdDurable, ...etcd },
  { name: "etcd, fast", server: etcdFast, ...etcd }
]
