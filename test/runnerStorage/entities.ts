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

/** At that time a call of a handler, or a start of a singleton, was under way. (Clients of chaos runs give this event the same name.) */
export interface Step {
  readonly event: "stays"
  /** On the clock of chaos runs, milliseconds. */
  readonly at: number
  /** The entity, the singleton, or the tick of the cron job. */
  readonly lock: string
  readonly hold: string
}

/** What it believes to own, as it says ten times a second. */
export interface Claim {
  readonly event: "claims"
  readonly at: number
  readonly shards: ReadonlyArray<number>
}

export type RunnerEvent = Step | Claim

/** What a runner has told. */
export type Told = RunnerEvent & { readonly process: number }

export const nameOf = (process: number) => `runner${process}`

export interface RunnerSettings {
  readonly process: number
  readonly url: string
  readonly prefix: string
  readonly port: number
  readonly messagesPort: number
  readonly leaseMillis: number
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
