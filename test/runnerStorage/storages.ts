/**
 * What the tests of the cluster's `RunnerStorage` share: storages as processes have them, runners and shards.
 */
import { RedisRunnerStorage } from "@effect-redis-lock/cluster"
import { Context, type Duration, Effect, Layer, Schedule, type Scope } from "effect"
import { type ClusterError, Runner, RunnerAddress, RunnerStorage, ShardId, ShardingConfig } from "effect/cluster"
import { type InvalidLockOptions, LockStoreError, RedisDriver } from "effect-redis-lock"

export interface StorageOptions extends RedisRunnerStorage.RedisRunnerStorageOptions {
  /** Default: a minute, so that no test waits for its end. */
  readonly lease?: Duration.Input
  /** Instead of the hour for which a silent runner keeps its machine id, in milliseconds. */
  readonly retention?: number
}

const hour = 3_600_000

/** A driver whose scripts are given another retention than the hour. */
const impatient = (retention: number) =>
  Layer.effect(
    RedisDriver.RedisDriver,
    Effect.map(RedisDriver.RedisDriver, (driver) => ({
      ...driver,
      commandTimeoutMillis: driver.commandTimeoutMillis,
      server: (key) => driver.server(key),
      eval: (script, keys, args) =>
        driver.eval(
          script,
          keys,
          args.map((arg) => (arg === hour ? retention : arg))
        )
    }))
  )

/** The storage of one process: each has a driver of its own. */
export const storageOver = <E>(
  driver: Layer.Layer<RedisDriver.RedisDriver, E>,
  { lease = "1 minute", retention, ...options }: StorageOptions = {}
): Effect.Effect<RunnerStorage.RunnerStorage["Service"], E | InvalidLockOptions, Scope.Scope> =>
  Effect.map(
    Layer.build(
      RedisRunnerStorage.layer(options).pipe(
        Layer.provide(retention === undefined ? Layer.fresh(driver) : Layer.provide(impatient(retention), driver)),
        Layer.provide(ShardingConfig.layer({ shardLockExpiration: lease }))
      )
    ),
    (context) => Context.get(context, RunnerStorage.RunnerStorage)
  )

/** For a process with a short lease: its commands are refused as late where a busy machine delays them for a third of it. */
export const again = <A>(self: Effect.Effect<A, ClusterError.PersistenceError>) =>
  Effect.retry(self, {
    while: ({ cause }) => cause instanceof LockStoreError && cause.reason === "TooLate",
    times: 100,
    schedule: Schedule.spaced(20)
  })

export const addressOf = (port: number) => RunnerAddress.make("localhost", port)

export const runnerOf = (port: number) => Runner.make({ address: addressOf(port), groups: ["default"], weight: 1 })

/** The shards of a group from 1 up to a number. */
export const shardsUpTo = (last: number, group = "default") =>
  Array.from({ length: last }, (_, index) => ShardId.make(group, index + 1))

export const idsOf = (shards: ReadonlyArray<ShardId.ShardId>) => shards.map(({ id }) => id)
