/**
 * The `RunnerStorage` of Effect's cluster in Redis: which runners there are, and which of them owns which shard.
 *
 * A shard belongs to the process that holds its lock, for one lease (`shardLockExpiration`) by the clock of the Redis server;
 * the runner extends the lease of all its shards with one command. A process that was stopped for longer than a lease learns
 * at its next refresh that it holds nothing any more.
 *
 * @since 0.3.0
 */
import * as Clock from "effect/Clock"
import { PersistenceError } from "effect/cluster/ClusterError"
import type { RunnerAddress } from "effect/cluster/RunnerAddress"
import * as RunnerStorage from "effect/cluster/RunnerStorage"
import * as ShardId from "effect/cluster/ShardId"
import * as ShardingConfig from "effect/cluster/ShardingConfig"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import { InvalidLockOptions, type LockStoreError, RedisDriver, ScriptDeadlines } from "effect-redis-lock"
import { scripts } from "./internal/scripts.generated.ts"

/**
 * Options of {@link layer}.
 *
 * @category models
 * @since 0.3.0
 */
export interface RedisRunnerStorageOptions {
  /**
   * The prefix of the keys: runners with the same prefix are one cluster. It becomes the hash tag of the keys, so that they
   * live in one slot of a Redis Cluster; it must not be empty or contain braces. Default: `effect_cluster`.
   */
  readonly prefix?: string | undefined
  /**
   * How long a runner that has vanished without unregistering keeps its machine id after its lease is over: it may only be
   * paused, and generate more ids when it resumes. If all 1024 ids are taken, the runner that has been silent the longest
   * loses its id earlier. At most a day. Default: 1 hour.
   */
  readonly machineIdRetention?: Duration.Input | undefined
}

/** As many as fit into a snowflake; more would collide unnoticed. */
const machineIds = 1024

/** At most a day: a longer lease would keep the shards of a dead runner from being taken over. */
const checkPeriod = (option: string, input: Duration.Input): Effect.Effect<number, InvalidLockOptions> =>
  Effect.map(RedisDriver.checkTimeout(option, input), (checked) => Math.ceil(Duration.toMillis(checked)))

const checkPrefix = (prefix: string): Effect.Effect<string, InvalidLockOptions> => {
  const problem =
    prefix.length === 0
      ? "it is empty"
      : /[{}\0]/.test(prefix)
        ? "it contains a brace or a NUL character"
        : prefix.length > 1024
          ? "it is longer than 1024 characters"
          : undefined
  return problem === undefined
    ? Effect.succeed(prefix)
    : Effect.fail(new InvalidLockOptions({ option: "prefix", problem }))
}

/** Shards that Redis has granted together, until one end. */
interface Lease {
  /** Of the request that it was granted to; of a later one it is higher. */
  readonly request: number
  /** Names it in Redis, beside address and process. */
  readonly epoch: string
  readonly shards: ReadonlySet<ShardId.ShardId>
  /** The earliest end on the monotonic clock, counted from before the request. */
  deadline: number
}

/** What this process knows to hold at one address. */
interface Holdings {
  /** By shard. */
  readonly leases: Map<string, Lease>
  /** Of the last refresh that listed its shards. */
  refreshed: Lease | undefined
}

/**
 * A `RunnerStorage` in Redis. See {@link layer}.
 *
 * @category constructors
 * @since 0.3.0
 */
export const make = Effect.fnUntraced(function* (
  options?: RedisRunnerStorageOptions
): Effect.fn.Return<
  RunnerStorage.RunnerStorage["Service"],
  InvalidLockOptions,
  RedisDriver.RedisDriver | ShardingConfig.ShardingConfig | Scope.Scope
> {
  const scope = yield* Effect.scope
  const config = yield* ShardingConfig.ShardingConfig
  const clock = yield* Clock.Clock
  const driver = yield* RedisDriver.RedisDriver
  const prefix = yield* checkPrefix(options?.prefix ?? "effect_cluster")
  const lease = yield* checkPeriod("shardLockExpiration", config.shardLockExpiration)
  const refreshInterval = yield* checkPeriod("shardLockRefreshInterval", config.shardLockRefreshInterval)
  const retention = yield* checkPeriod("machineIdRetention", options?.machineIdRetention ?? "1 hour")
  // how long Sharding waits for a refresh before it gives up all its shards
  const refreshTimeoutMillis = Math.ceil(Math.min(refreshInterval, lease / 3))
  // clocks may differ in rate by one per cent, as for locks
  const driftMillis = lease * 0.01 + 2
  const runWithDeadline = yield* ScriptDeadlines.make({ longestLife: Math.min(refreshTimeoutMillis, 10_000) })

  // Identifies this process: another one at the same address, after a crash or a network split, does not own its shards. A
  // lock with it is longer than 64 bytes, so that Redis keeps the shards in a hash table instead of a list that it
  // searches.
  const process = `${crypto.randomUUID()}-${crypto.randomUUID()}`
  const runners = `{${prefix}}:runners`
  const shards = `{${prefix}}:shards`

  const monotonicMillis = () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6

  let requests = 0
  const holdings = new Map<string, Holdings>()
  const holdingsOf = (address: string): Holdings => {
    let held = holdings.get(address)
    if (held === undefined) holdings.set(address, (held = { leases: new Map(), refreshed: undefined }))
    return held
  }

  /**
   * Requests a lease of these shards, and notes which it covers. A reply that arrives after the lease has ended grants
   * nothing: this process was stopped.
   */
  const askForLease = (
    script: RedisDriver.RedisScript,
    address: string,
    args: ReadonlyArray<string | number>,
    asked: ReadonlyArray<string>
  ): Effect.Effect<Lease | undefined, LockStoreError> =>
    Effect.suspend(() => {
      const request = ++requests
      const deadline = monotonicMillis() + lease - driftMillis
      return Effect.map(
        runWithDeadline(script, [runners, shards], [address, process, lease, ...args, request, ...asked]),
        (reply) => {
          const { leases } = holdingsOf(address)
          for (const shard of asked) leases.delete(shard)
          if (!Array.isArray(reply) || monotonicMillis() >= deadline) return undefined
          const [epoch, ...refused] = reply as [epoch: string, ...refused: ReadonlyArray<number>]
          const missing = new Set(refused)
          const granted = asked.filter((_, index) => !missing.has(index + 1))
          const given: Lease = { request, epoch, shards: new Set(granted.map(ShardId.fromString)), deadline }
          for (const shard of granted) leases.set(shard, given)
          return given
        }
      )
    })

  /** A restart or a failover of Redis must cost time, not shards, until the first lease ends. */
  const whileRedisIsAway = <A>(
    self: Effect.Effect<A, LockStoreError>,
    until: number
  ): Effect.Effect<A, LockStoreError> =>
    Effect.suspend(() => {
      const giveUpAt = Math.min(until, monotonicMillis() + refreshTimeoutMillis)
      return Effect.retry(self, {
        while: (error) => error.isTransient && monotonicMillis() < giveUpAt,
        schedule: Schedule.spaced(Math.min(100, refreshTimeoutMillis / 10))
      })
    })

  /** Refreshes shards that are listed. */
  const refreshListed = (address: string, asked: ReadonlyArray<string>): Effect.Effect<Array<string>, LockStoreError> =>
    Effect.suspend(() => {
      const held = holdingsOf(address)
      const now = monotonicMillis()
      const deadlineOf = (shard: string) => held.leases.get(shard)?.deadline ?? Number.NEGATIVE_INFINITY
      const lasting = asked.filter((shard) => deadlineOf(shard) > now)
      const send = askForLease(scripts["runner_storage/refresh"], address, [retention], lasting)
      // That leases have ended is known without Redis, and must be reported at once. The command that keeps this runner
      // alive is sent in the background.
      if (lasting.length === 0 && asked.length > 0) return Effect.as(Effect.forkIn(Effect.ignore(send), scope), [])
      const firstEnd = lasting.reduce((least, shard) => Math.min(least, deadlineOf(shard)), Number.POSITIVE_INFINITY)
      return Effect.map(whileRedisIsAway(send, firstEnd), (given) => {
        if (given === undefined) return []
        if (given.shards.size > 0 && given.request > (held.refreshed?.request ?? 0)) held.refreshed = given
        return Array.from(given.shards, String)
      })
    })

  /**
   * Extends the lease of the shards that were refreshed last. Answers false if it does not cover all of them any more, or
   * has ended: then each must be asked for.
   */
  const extend = (address: string, held: Holdings, refreshed: Lease): Effect.Effect<boolean, LockStoreError> =>
    Effect.suspend(() => {
      const deadline = monotonicMillis() + lease - driftMillis
      return Effect.map(
        runWithDeadline(
          scripts["runner_storage/extend"],
          [runners, shards],
          [address, process, lease, retention, refreshed.epoch, refreshed.shards.size]
        ),
        (reply) => {
          const isExtended = reply === 1 && monotonicMillis() < deadline
          if (isExtended) refreshed.deadline = deadline
          else if (held.refreshed === refreshed) held.refreshed = undefined
          return isExtended
        }
      )
    })

  const persisted = <A>(self: Effect.Effect<A, LockStoreError>): Effect.Effect<A, PersistenceError> =>
    Effect.mapError(self, (cause) => new PersistenceError({ cause }))

  const flag = (healthy: boolean) => (healthy ? 1 : 0)

  const storage = RunnerStorage.makeEncoded({
    register: (address, runner, healthy) =>
      Effect.flatMap(
        persisted(
          runWithDeadline(
            scripts["runner_storage/register"],
            [runners, shards],
            [address, process, lease, retention, machineIds, flag(healthy), runner]
          )
        ),
        (id) =>
          id === 0
            ? Effect.fail(new PersistenceError({ cause: new Error(`all ${machineIds} machine ids are taken`) }))
            : Effect.succeed(Number(id))
      ),

    unregister: (address) =>
      persisted(Effect.asVoid(runWithDeadline(scripts["runner_storage/unregister"], [runners], [address, process]))),

    getRunners: Effect.mapBoth(driver.eval(scripts["runner_storage/runners"], [runners], []), {
      onFailure: (cause) => new PersistenceError({ cause }),
      onSuccess: (reply) => {
        const found: Array<readonly [runner: string, healthy: boolean]> = []
        const parts = reply as ReadonlyArray<string | number>
        for (let i = 0; i < parts.length; i += 2) found.push([String(parts[i]), parts[i + 1] === 1])
        return found
      }
    }),

    setRunnerHealth: (address, healthy) =>
      persisted(
        Effect.asVoid(runWithDeadline(scripts["runner_storage/set_health"], [runners], [address, flag(healthy)]))
      ),

    acquire: (address, asked) =>
      persisted(
        Effect.map(
          whileRedisIsAway(
            askForLease(scripts["runner_storage/acquire"], address, [], asked),
            Number.POSITIVE_INFINITY
          ),
          (given) => (given === undefined ? [] : Array.from(given.shards, String))
        )
      ),

    refresh: (address, asked) => persisted(refreshListed(address, asked)),

    release: (address, shard) =>
      Effect.suspend(() => {
        const held = holdingsOf(address)
        held.leases.delete(shard)
        held.refreshed = undefined
        return persisted(
          Effect.asVoid(runWithDeadline(scripts["runner_storage/release"], [shards], [address, process, shard]))
        )
      }),

    releaseAll: (address) =>
      Effect.suspend(() => {
        holdings.delete(address)
        return persisted(
          Effect.asVoid(runWithDeadline(scripts["runner_storage/release_all"], [shards], [address, process]))
        )
      })
  })

  /** Shards that were refreshed together are refreshed again, all or some of them, without listing them. */
  const refresh = (
    runner: RunnerAddress,
    shardIds: Iterable<ShardId.ShardId>
  ): Effect.Effect<Array<ShardId.ShardId>, PersistenceError> =>
    Effect.suspend(() => {
      const asked = Array.from(shardIds)
      const address = `${runner.host}:${runner.port}`
      const held = holdingsOf(address)
      const { refreshed } = held
      if (
        refreshed === undefined ||
        monotonicMillis() >= refreshed.deadline ||
        asked.length === 0 ||
        !asked.every((shard) => refreshed.shards.has(shard))
      ) {
        return storage.refresh(runner, asked)
      }
      return Effect.flatMap(
        persisted(whileRedisIsAway(extend(address, held, refreshed), refreshed.deadline)),
        (isExtended) => (isExtended ? Effect.succeed(asked) : storage.refresh(runner, asked))
      )
    })

  return RunnerStorage.RunnerStorage.of({ ...storage, refresh })
})

/**
 * Keeps the runners and shard locks of Effect's cluster in Redis, over any {@link RedisDriver.RedisDriver}: one server, Sentinel
 * or Cluster. It takes the place of `SqlRunnerStorage`.
 *
 * **Details**
 *
 * Leases and intervals are those of `ShardingConfig`. `acquire`, `refresh` and `releaseAll` send one command for any number
 * of shards. Shards that were refreshed together share a lease: to refresh them again, all or some, extends it for all of
 * them, at a cost that does not depend on their number. A lock belongs to a process at an address, so a runner that restarts
 * at the same address after a crash has to wait for the leases of its predecessor, like any other runner. While Redis is
 * restarted or fails over, `acquire` and `refresh` try again, for as long as Sharding waits for them: a third of the lease,
 * or `shardLockRefreshInterval`.
 *
 * A runner that was stopped for longer than its lease learns of the loss at its next refresh. Sharding then lets its entities
 * finish the messages that had come to them, for up to `entityTerminationTimeout`, although another runner handles them as
 * well; requests that are annotated with `ClusterSchema.InterruptOnTermination` are interrupted at once.
 *
 * Fails with `InvalidLockOptions` if an option or a duration of `ShardingConfig` is out of range, and its operations with
 * `PersistenceError`, whose cause is a `LockStoreError` or a `RedisDriverError`.
 *
 * **When not to use**
 *
 * For messages: persisted messages, and with them `ClusterCron` and workflows, need a `MessageStorage` that all runners
 * share. Redis must keep what it has acknowledged: a server that restarts empty knows of no shard locks, and its shards can
 * have two owners until the old ones refresh, within a third of the lease.
 *
 * @example
 * ```ts
 * import { RedisRunnerStorage } from "@effect-redis-lock/cluster"
 * import { IoRedis } from "@effect-redis-lock/ioredis"
 * import { NodeClusterSocket } from "@effect/platform-node"
 * import { Layer } from "effect"
 * import { MessageStorage, ShardingConfig } from "effect/cluster"
 *
 * const storage = RedisRunnerStorage.layer().pipe(
 *   Layer.provide(IoRedis.layer({ url: "redis://localhost:6379" })),
 *   Layer.provide(ShardingConfig.layerFromEnv())
 * )
 *
 * export const cluster = NodeClusterSocket.layer({ storage: "byo" }).pipe(
 *   Layer.provide([storage, MessageStorage.layerNoop])
 * )
 * ```
 *
 * @category layers
 * @since 0.3.0
 */
export const layer = (
  options?: RedisRunnerStorageOptions
): Layer.Layer<
  RunnerStorage.RunnerStorage,
  InvalidLockOptions,
  RedisDriver.RedisDriver | ShardingConfig.ShardingConfig
> => Layer.effect(RunnerStorage.RunnerStorage, make(options))
