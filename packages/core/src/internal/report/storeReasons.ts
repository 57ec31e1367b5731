/** The meaning of each reason of a `LockStoreError`, and what to do about it. */
export const storeReasons = {
  ConnectionRefused: "Redis refused the connection. Check that it runs and that address, port and TLS are right",
  NotConnected: "there is no connection to Redis at the moment; the command was not sent",
  ConnectionLost: "the connection broke before the reply came, so the command may or may not have run",
  TimedOut: "Redis did not answer in time, so the command may or may not have run",
  OutOfMemory: "Redis is out of memory (OOM). Raise maxmemory, or keep locks apart from caches",
  TooLate: "the command reached Redis after its deadline, so it was not run: the server stalled, or a clock changed",
  ReadOnly: "the server is a read-only replica. Connect to the master, or through Sentinel",
  PersistenceFailed: "Redis refuses writes because it cannot save to disk (MISCONF). Look at its log and its disk",
  NotEnoughReplicas:
    "Redis refuses writes because too few replicas are connected (NOREPLICAS). Look at the replicas, or at min-replicas-to-write",
  Loading: "Redis is still loading its data (LOADING)",
  Busy: "Redis is busy with another script (BUSY). Find the slow script, or SCRIPT KILL it",
  NoPermission:
    "the Redis user may not do this (NOPERM). It needs EVALSHA and EVAL, the commands inside the scripts, the keys of the locks, and their channels: the driver's README has a minimal ACL",
  NotAuthenticated: "Redis does not let this client in (NOAUTH, WRONGPASS, DENIED). Check user and password",
  WrongType: "the key holds a value of another kind (WRONGTYPE). Choose another name, or a key prefix",
  ClusterDown: "the Redis Cluster cannot serve this slot now (CLUSTERDOWN, TRYAGAIN). See the cluster's state",
  ClusterMismatch:
    "the server belongs to a Redis Cluster and cannot run this (MOVED, CROSSSLOT). Connect with IoRedis.layerCluster, or by a redis+cluster:// URL",
  NotReplicated:
    "the grant was not acknowledged by as many replicas as it needs, and was undone. Look at the replicas, or at the option acknowledge",
  Closed:
    "the lock client is closed, as the scope of its layer has ended, or its connection to Redis has ended for good. Use locks within that scope, or provide the layer further out; keep an application's own Redis client open as long",
  Failed: "Redis answered with an error"
} as const

type StoreReason = keyof typeof storeReasons

/** What follows from a failure for the locks. */
interface Consequence {
  /**
   * Whether the command was run: not if Redis has rejected it before it started, or nothing was sent; in part, perhaps, if an error has ended
   * it or its grant was not confirmed.
   */
  readonly ran: "no" | "in part" | "unknown"
  /** Whether the same call may succeed: a little later; once somebody has mended what is wrong; or never, as a release. */
  readonly again: "soon" | "later" | "never"
}

export const consequences: Readonly<Record<StoreReason, Consequence>> = {
  ConnectionRefused: { ran: "no", again: "soon" },
  NotConnected: { ran: "no", again: "soon" },
  ConnectionLost: { ran: "unknown", again: "soon" },
  TimedOut: { ran: "unknown", again: "soon" },
  OutOfMemory: { ran: "no", again: "later" },
  TooLate: { ran: "no", again: "soon" },
  ReadOnly: { ran: "no", again: "soon" },
  PersistenceFailed: { ran: "no", again: "later" },
  NotEnoughReplicas: { ran: "no", again: "soon" },
  Loading: { ran: "no", again: "soon" },
  Busy: { ran: "no", again: "soon" },
  NoPermission: { ran: "in part", again: "never" },
  NotAuthenticated: { ran: "no", again: "never" },
  WrongType: { ran: "no", again: "never" },
  ClusterDown: { ran: "no", again: "soon" },
  ClusterMismatch: { ran: "no", again: "later" },
  NotReplicated: { ran: "in part", again: "later" },
  Closed: { ran: "no", again: "later" },
  Failed: { ran: "in part", again: "later" }
}
