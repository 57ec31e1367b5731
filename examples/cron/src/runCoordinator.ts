/**
 * Decides for node-cron 4 which process runs a tick of its `distributed` tasks.
 */
import { Duration, Effect, type ManagedRuntime, Schema } from "effect"
import { type RedisLock, RunOnce } from "effect-redis-lock"
import type { RunCoordinator } from "node-cron"

export interface RunCoordinatorOptions {
  /**
   * How long a tick is remembered. A process whose clock is behind by more than that, or that was stopped for longer, would run it again.
   * Default: 1 hour, or the task's `distributedLease` if that is longer.
   */
  readonly retention?: Duration.Input
  /** How long to wait for Redis; then node-cron skips the tick in this process. Default: 5 seconds. */
  readonly timeout?: Duration.Input
}

/**
 * A coordinator for `setRunCoordinator`, or for the option `runCoordinator` of one task. Each tick runs at most once.
 *
 * node-cron asks it in every process, whenever a tick has come by that process's clock, with a key of the task's name and the tick's
 * time. Whoever asks first leaves its mark there, as the result of a `RunOnce`; all others find the mark of somebody else.
 *
 * There is no `onComplete`: a mark that was removed after the run would let a process whose clock is behind run the tick again. So
 * nothing keeps one tick from beginning while the one before still runs elsewhere. `DistributedCron` does.
 */
export const runCoordinator = (
  runtime: ManagedRuntime.ManagedRuntime<RedisLock.RedisLock, unknown>,
  { retention = "1 hour", timeout = "5 seconds" }: RunCoordinatorOptions = {}
): RunCoordinator => ({
  shouldRun: (key, leaseMillis) => {
    const mark = crypto.randomUUID()
    const ttl = Math.max(Duration.toMillis(retention), leaseMillis)
    const tick = RunOnce.make(`node-cron:${key}`, { ttl, result: Schema.String })
    return runtime.runPromise(
      RunOnce.run(Effect.succeed(mark), tick).pipe(
        Effect.map((first) => first === mark),
        Effect.timeout(timeout)
      )
    )
  }
})
