import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { InvalidLockOptions } from "effect-redis-lock"
import type { CommandWriter } from "./command/CommandWriter.ts"
import { check } from "./options/checks.ts"

/** All warnings, in the order in which they are logged. */
export const allWarnings = ["eviction", "persistence", "replicas", "clock"] as const

export type Warning = (typeof allWarnings)[number]

export interface Warnings {
  readonly kinds: ReadonlyArray<Warning>
  /** The lease of locks without a `leaseTime`, if it is known. */
  readonly leaseMillis: number | undefined
}

/** The longest lease without a warning on a server that saves nothing to disk. */
const SHORT_LEASE_MILLIS = 60_000

/** The largest difference of the clocks without a warning. */
const CLOCK_MILLIS = 1000

export const checkWarnings = (kinds: ReadonlyArray<Warning>): Effect.Effect<void, InvalidLockOptions> => {
  const areKnown = Array.isArray(kinds) && kinds.every((kind) => allWarnings.includes(kind))
  return check(areKnown, "warnings", `it must be a list of ${allWarnings.join(", ")}`)
}

/** What INFO says, and our own times before it was sent and after it was read, milliseconds since 1970. */
export interface Info {
  readonly text: string
  readonly sentAt: number
  readonly receivedAt: number
}

/** The problem of a server, with the remedy; undefined if there is none, or the server does not say. */
export const problemOf = (
  kind: Warning,
  { receivedAt, sentAt, text }: Info,
  leaseMillis: number | undefined
): string | undefined => {
  const field = (name: string) => new RegExp(`^${name}:(.*?)\\r?$`, "m").exec(text)?.[1]
  switch (kind) {
    case "eviction": {
      const policy = field("maxmemory_policy")
      // without a limit nothing is evicted
      return policy === undefined || policy === "noeviction" || field("maxmemory") === "0"
        ? undefined
        : `Redis may evict locks that are held when its memory is full (maxmemory-policy ${policy}). Set the policy to noeviction, or give the locks a server of their own.`
    }
    case "persistence": {
      const hasSaved = field("rdb_last_bgsave_time_sec") !== "-1" || (field("rdb_saves") ?? "0") !== "0"
      if (field("aof_enabled") !== "0" || hasSaved) return undefined
      const lease =
        leaseMillis === undefined ? "long leases" : `leases of ${Duration.format(Duration.millis(leaseMillis))}`
      return `Redis has saved nothing to disk since it started, and has no append-only file: if it restarts, locks with ${lease} are free too early. Turn on appendonly, or use leases of at most a minute.`
    }
    case "replicas": {
      const replicas = Number(field("connected_slaves") ?? 0)
      return field("role") === "master" && replicas > 0
        ? `Redis has replicas (${replicas}), which learn of a lock only after it was granted: after a failover it may be granted twice. Let grants wait for replicas (acknowledge), have what the locks guard check the fencing token, or hold them on a quorum of independent servers.`
        : undefined
    }
    case "clock": {
      const micros = field("server_time_usec")
      if (micros === undefined) return undefined
      const ahead = Number(micros) / 1000 - receivedAt
      const behind = sentAt - Number(micros) / 1000
      const apart = Math.max(ahead, behind)
      return apart > CLOCK_MILLIS
        ? `The clock of Redis is ${(apart / 1000).toFixed(1)} s ${ahead > 0 ? "ahead of" : "behind"} this machine's. Synchronise both, by NTP: fencing tokens are taken from the clock of Redis.`
        : undefined
    }
  }
}

/**
 * Sends INFO to servers, in the background, and warns once about each kind of problem that any of them has. Does not warn about a server
 * that does not reply, or refuses.
 */
export const warnOfServers = (
  servers: ReadonlyArray<CommandWriter>,
  { kinds, leaseMillis }: Warnings
): Effect.Effect<void, never, Scope.Scope> => {
  if (kinds.length === 0) return Effect.void
  const ask = ({ client, connection, timeoutMillis }: CommandWriter) =>
    Effect.tryPromise(async () => {
      const sentAt = Date.now()
      const text = await client.info()
      return { server: connection.server, text, sentAt, receivedAt: Date.now() }
    }).pipe(
      Effect.timeout(timeoutMillis),
      Effect.orElseSucceed(() => undefined)
    )
  const warn = Effect.gen(function* () {
    const answers = yield* Effect.forEach(servers, ask, { concurrency: "unbounded" })
    for (const kind of kinds) {
      const found = answers.flatMap((answer) => {
        const problem = answer && problemOf(kind, answer, leaseMillis)
        return problem === undefined ? [] : [{ server: answer!.server, problem }]
      })
      const [first] = found
      if (first === undefined) continue
      // a Redis for development rightly saves nothing
      const isGrave = kind !== "persistence" || (leaseMillis ?? 0) > SHORT_LEASE_MILLIS
      yield* Effect.annotateLogs(isGrave ? Effect.logWarning(first.problem) : Effect.logDebug(first.problem), {
        warning: kind,
        server: found.map(({ server }) => server).join(", ")
      })
    }
  })
  return Effect.asVoid(Effect.forkScoped(warn))
}
