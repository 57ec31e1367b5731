/**
 * Where the workers run: as processes on Redis, or as fibers on the memory store.
 */
import { Context, type Effect, Schema, type Scope, type Stream } from "effect"

/** The job of one worker. */
export const Job = Schema.Struct({
  /** 1, 2, 3, ... */
  worker: Schema.Int,
  /** The ledger's file. */
  ledger: Schema.String,
  deposits: Schema.Int,
  locked: Schema.Boolean,
  /** How long the lock outlives a worker that dies with it. */
  leaseMillis: Schema.Int,
  /** The deposit at which the worker gets stuck between reading and writing, to be killed there. */
  stuckAt: Schema.optional(Schema.Int)
})

export type Job = typeof Job.Type

/** A deposit: when the worker asked for the lock, and when it entered and left its section, milliseconds. */
export const Deposited = Schema.TaggedStruct("Deposited", {
  worker: Schema.Int,
  askedAt: Schema.Number,
  enteredAt: Schema.Number,
  leftAt: Schema.Number,
  /** The fencing token, if there is a lock. */
  token: Schema.optional(Schema.BigIntFromString)
})

export type Deposited = typeof Deposited.Type

/** The worker is in its section and stays there: it has read, and is about to write `balance`. */
export const Stuck = Schema.TaggedStruct("Stuck", {
  worker: Schema.Int,
  askedAt: Schema.Number,
  enteredAt: Schema.Number,
  token: Schema.BigIntFromString,
  balance: Schema.Int
})

export type Stuck = typeof Stuck.Type

/** A worker ended before its job was done. */
export class WorkerFailed extends Schema.TaggedError<WorkerFailed>()("WorkerFailed", {
  worker: Schema.Int,
  reason: Schema.String
}) {
  static of(worker: number, cause: unknown): WorkerFailed {
    return new WorkerFailed({ worker, reason: cause instanceof Error ? cause.message : String(cause) })
  }

  override get message(): string {
    return `Worker ${this.worker} failed. ${this.reason}`
  }
}

/** A report of a worker. */
export const WorkerEvent = Schema.Union([Schema.TaggedStruct("Ready", {}), Deposited, Stuck, WorkerFailed])

export type WorkerEvent = typeof WorkerEvent.Type

export interface Worker {
  /** Ends with the worker. */
  readonly events: Stream.Stream<WorkerEvent, WorkerFailed>
  /** Kills the worker, which has no chance to release anything. */
  readonly kill: Effect.Effect<void>
}

export class Workers extends Context.Service<
  Workers,
  {
    readonly kind: "processes" | "fibers"
    /** Starts a worker, which reports `Ready`, begins when `go` completes, and ends with the scope at the latest. */
    readonly start: (job: Job, go: Effect.Effect<void>) => Effect.Effect<Worker, WorkerFailed, Scope.Scope>
  }
>()("@effect-redis-lock/demo/Workers") {}
