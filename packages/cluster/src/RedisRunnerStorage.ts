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
import type * as ShardId from "effect/cluster/ShardId"
import * as ShardingConfig from "effect/cluster/ShardingConfig"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { InvalidLockOptions, type LockStoreError, RedisDriver, ScriptDeadlines } from "effect-redis-lock"
import { scripts } from "./internal/scripts.generated.ts"
import { ShardLeases } from "./internal/ShardLeases.ts"

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
}

/** As many as fit into a snowflake; more would collide unnoticed. */
const machineIds = 1024

/**
 * How long a runner that has vanished without unregistering keeps its machine id after its lease is over, in milliseconds: it may
 * only be paused, and generate more ids when it resumes. If all ids are in use, the runner that has been silent the longest
 * loses its id earlier.
 */
const retention = 3_600_000

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
  const config = yield* ShardingConfig.ShardingConfig
  const driver = yield* RedisDriver.RedisDriver
  const prefix = yield* checkPrefix(options?.prefix ?? "effect_cluster")
  const lease = yield* checkPeriod("shardLockExpiration", config.shardLockExpiration)
  const refreshInterval = yield* checkPeriod("shardLockRefreshInterval", config.shardLockRefreshInterval)
  // how long Sharding waits for a refresh before it gives up all its shards
  const refreshTimeout = Math.ceil(Math.min(refreshInterval, lease / 3))
  const runWithDeadline = yield* ScriptDeadlines.make({ longestLife: Math.min(refreshTimeout, 10_000) })

  // Identifies this process: another one at the same address, after a crash or a network split, does not own its shards. A
  // lock with it is longer than 64 bytes, so that Redis keeps the shards in a hash table instead of a list that it
  // searches.
  const process = `${crypto.randomUUID()}-${crypto.randomUUID()}`
  const runners = `{${prefix}}:runners`
  const shards = `{${prefix}}:shards`

  const leases = new ShardLeases({
    keys: [runners, shards],
    process,
    lease,
    retention,
    refreshTimeout,
    run: runWithDeadline,
    clock: yield* Clock.Clock,
    scope: yield* Effect.scope
  })

  const persisted = <A>(
    self: Effect.Effect<A, LockStoreError | RedisDriver.RedisDriverError>
  ): Effect.Effect<A, PersistenceError> => Effect.mapError(self, (cause) => new PersistenceError({ cause }))

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
            ? Effect.fail(new PersistenceError({ cause: new Error(`all ${machineIds} machine ids are in use`) }))
            : Effect.succeed(Number(id))
      ),

    unregister: (address) =>
      persisted(Effect.asVoid(runWithDeadline(scripts["runner_storage/unregister"], [runners], [address, process]))),

    getRunners: persisted(
      Effect.flatMap(driver.eval(scripts["runner_storage/runners"], [runners], []), (reply) => {
        if (reply === "QUEUED") return Effect.fail(RedisDriver.inTransaction)
        const found: Array<readonly [runner: string, healthy: boolean]> = []
        const parts = reply as ReadonlyArray<string | number>
        for (let i = 0; i < parts.length; i += 2) found.push([String(parts[i]), parts[i + 1] === 1])
        return Effect.succeed(found)
      })
    ),

    setRunnerHealth: (address, healthy) =>
      persisted(
        Effect.asVoid(runWithDeadline(scripts["runner_storage/set_health"], [runners], [address, flag(healthy)]))
      ),

    acquire: (address, asked) => persisted(leases.acquire(address, asked)),

    refresh: (address, asked) => persisted(leases.refresh(address, asked)),

    release: (address, shard) => persisted(leases.release(address, shard)),

    releaseAll: (address) => persisted(leases.releaseAll(address))
  })

  /** Shards that were refreshed together are refreshed again, all or some of them, without listing them. */
  const refresh = (
    runner: RunnerAddress,
    shardIds: Iterable<ShardId.ShardId>
  ): Effect.Effect<Array<ShardId.ShardId>, PersistenceError> =>
    Effect.suspend(() => {
      const asked = Array.from(shardIds)
      const address = `${runner.host}:${runner.port}`
      return Effect.flatMap(persisted(leases.extend(address, asked)), (isExtended) =>
        isExtended ? Effect.succeed(asked) : storage.refresh(runner, asked)
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
