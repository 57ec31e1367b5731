import type { Candidate, Kind } from "../Candidate.ts"
import { buildJava } from "../processes/javaBuild.ts"

/**
 * Everything that is measured, in the order of the tables. A candidate's module is loaded only in the processes that
 * measure it.
 */
export interface Entry {
  readonly name: string
  readonly about: string
  /** The kinds that it supports. Default: locks. */
  readonly kinds?: ReadonlyArray<Kind>
  /** The only workloads in which it is measured. Default: all whose kinds it supports. */
  readonly only?: ReadonlyArray<string>
  /** Workloads in which it is not measured. */
  readonly except?: ReadonlyArray<string>
  /** Builds whatever the candidate needs; returns the reason if that is not possible. */
  readonly prepare?: () => Promise<string | undefined>
  readonly load: () => Promise<{ readonly candidate: Candidate }>
}

export const rawHash = "raw-hash"
export const rawPubSub = "raw-pubsub"
export const rawOurs = "raw-ours"
export const ours = "effect-redis-lock"
export const oursOverNodeRedis = "effect-redis-lock (node-redis)"
export const redisson = "redisson (java)"

const single: ReadonlyArray<Kind> = ["lock", "fair", "read", "write", "semaphore"]
const composed: ReadonlyArray<Kind> = ["red", "multi"]

export const catalog: ReadonlyArray<Entry> = [
  {
    name: rawHash,
    about: "two minimal scripts over a hash, sent with EVALSHA; polls every 100 ms while the lock is taken",
    except: ["W12-2", "W12-8", "W12-24", "W12-64"],
    load: () => import("./rawHash.ts")
  },
  {
    name: rawPubSub,
    about:
      "the same scripts; waiters queue in the process, first come, first served, and the first asks again on every release message of one shared subscription. In W1, W2 and W6 nobody waits, and raw-hash stands in for it. It is not fair between processes; readers and permits have equally small scripts",
    kinds: single,
    except: ["W1", "W2", "W6"],
    load: () => import("./rawPubSub.ts")
  },
  {
    name: "raw-hand-over",
    about:
      "two scripts without which no lock can serve processes in order: a denied owner queues in Redis, a release makes the first one the holder and tells it. What order costs without any library",
    only: ["W4", "W12-2", "W12-8", "W12-24", "W12-64", "W15-2", "W15-4", "W15-8"],
    load: () => import("./rawHandOver.ts")
  },
  {
    name: "raw-hand-over-extended",
    about:
      "the same, which writes a command that extends the lease before the section begins, as effect-redis-lock does: what is handed over must end soon if its process has just died",
    only: ["W4", "W15-2", "W15-4", "W15-8"],
    load: async () => (await import("./rawHandOver.ts")).extending
  },
  {
    name: rawOurs,
    about:
      "the two scripts of our locks in a bare loop, awaiting a majority where there are several servers: the cost of a fencing token, Redisson's hash and a wake-up without any library",
    kinds: ["lock", ...composed],
    only: ["W1", "W10-3", "W10-5", "W11"],
    load: () => import("./rawOurs.ts")
  },
  {
    name: ours,
    about:
      "`Lock.withLock` over `IoRedis.layer` (in W9 `Semaphore.withPermits`, in W10 over `RedisLock.layerQuorum`, in W11 with `MultiLock.make`), everything as shipped: watchdog, fencing tokens, metrics",
    kinds: [...single, ...composed],
    load: () => import("./effectRedisLock.ts")
  },
  {
    name: oursOverNodeRedis,
    about: "the same over Effect's own `Redis` service and node-redis",
    only: ["W1", "W2"],
    load: () => import("./effectRedisLockNodeRedis.ts")
  },
  {
    name: redisson,
    about:
      "4.7.0 itself, in a Java process with its defaults: `lock` and `unlock` on a thread per worker, in W6 `lockAsync`, in W10 `RedissonRedLock`, in W11 `getMultiLock`. Its heap figure excludes thread stacks",
    kinds: [...single, ...composed],
    // a Java process takes much memory
    except: ["W12-24", "W12-64"],
    prepare: buildJava,
    load: () => import("./redisson.ts")
  },
  {
    name: "redlock",
    about: "5.0.0-beta.2 with its defaults (10 retries, 200 ms ± 100 ms): `acquire` and `release`, in W6 `using`",
    kinds: ["lock", ...composed],
    load: () => import("./redlock.ts")
  },
  {
    name: "redis-semaphore",
    about: "5.8.0, `Mutex` and `Semaphore` with their defaults (poll every 10 ms, give up after 10 s)",
    kinds: ["lock", "semaphore"],
    load: () => import("./redisSemaphore.ts")
  },
  {
    name: "redlock-universal",
    about:
      "0.8.5, `createLock` over `IoredisAdapter` with its defaults (3 retries, 100 ms), one lock object per name; in W6 `using`, in W10 `createRedlock`, in W11 `acquireBatch` of its `LockManager`",
    kinds: ["lock", ...composed],
    load: () => import("./redlockUniversal.ts")
  },
  {
    name: "node-redisson",
    about: "1.0.4, `RLock` with its defaults",
    load: () => import("./nodeRedisson.ts")
  },
  {
    name: "effect-distributed-lock",
    about:
      "0.0.11 over Effect 3 and ioredis 5, `withPermits(1)` with its defaults (pub/sub, and polling every 100 ms for each waiter). Each acquisition opens a connection of its own, 31 ms a pair here: too slow for W1, W2 and W6",
    kinds: ["lock", "semaphore"],
    except: ["W1", "W2", "W6"],
    load: () => import("./effectDistributedLock.ts")
  },
  {
    name: "simple-redis-mutex",
    about: "3.0.0 over node-redis, `lock` with its defaults (pub/sub, polling every 10 s)",
    // it renews no lock by itself
    except: ["W5", "W6"],
    load: () => import("./simpleRedisMutex.ts")
  }
]

/** Whether it is a library rather than a bare loop. */
export const isLibrary = (name: string): boolean => !name.startsWith("raw-")

/** Whether a candidate is measured in a workload. */
export const runsIn = (entry: Entry, workload: { readonly id: string; readonly kinds: ReadonlyArray<Kind> }): boolean =>
  entry.only?.includes(workload.id) !== false &&
  entry.except?.includes(workload.id) !== true &&
  workload.kinds.every((kind) => (entry.kinds ?? ["lock"]).includes(kind))
