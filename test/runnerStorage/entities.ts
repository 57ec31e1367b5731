/**
 * What the runners of the process tests run, and how they and their clients are configured.
 */
import { Option, Schema } from "effect"
import { ClusterSchema, Entity, RunnerAddress, type ShardingConfig } from "effect/cluster"
import { Rpc } from "effect/rpc"

/**
 * Handles one message after another, each for a while. Without `InterruptOnTermination` a runner that has lost its shards would go on with
 * the messages that had come to it, for up to `entityTerminationTimeout`.
 */
export const Counter = Entity.make("Counter", [
  Rpc.make("Count", { payload: { message: Schema.String }, primaryKey: ({ message }) => message })
    .annotate(ClusterSchema.Persisted, true)
    .annotate(ClusterSchema.InterruptOnTermination, true)
])

export const shardCount = 300

/** What a runner logs in Redis while something of its runs: one line for each step. */
export interface Step {
  /** Of the server, milliseconds. */
  readonly at: number
  readonly process: string
  /** The entity, the singleton, or the tick of the cron job. */
  readonly what: string
  /** One call of a handler, one start of a singleton. */
  readonly run: string
  readonly message?: string
  readonly isLast?: boolean
}

/** What a runner believes to own, as it says ten times a second. */
export interface Claim {
  readonly process: string
  /** The server's time before it looked, and when it had said so, milliseconds. */
  readonly before: number
  readonly at: number
  readonly shards: ReadonlyArray<number>
}

export interface RunnerSettings {
  readonly process: string
  readonly url: string
  readonly prefix: string
  readonly port: number
  readonly messagesPort: number
  readonly leaseMillis: number
  /** The list in which it logs its steps. */
  readonly log: string
}

/** Every interval is short against the lease, so that what is measured is the lease. */
export const shardingOptions = (
  leaseMillis: number,
  port: number | undefined
): Partial<ShardingConfig.ShardingConfig["Service"]> => ({
  runnerAddress: port === undefined ? Option.none() : Option.some(RunnerAddress.make("127.0.0.1", port)),
  shardsPerGroup: shardCount,
  shardLockExpiration: leaseMillis,
  refreshAssignmentsInterval: 250,
  entityMessagePollInterval: 500,
  entityReplyPollInterval: 200,
  runnerHealthCheckInterval: 1000,
  sendRetryInterval: 50
})
