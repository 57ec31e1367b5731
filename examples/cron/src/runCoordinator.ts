/**
 * A coordinator for node-cron 4: decides which process runs a tick of its `distributed` tasks.
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
  /** How long to wait for Redis; after that node-cron skips the tick in this process. Default: 5 seconds. */
  readonly timeout?: Duration.Input
}

/**
 * A coordinator for `setRunCoordinator`, or for the option `runCoordinator` of one task. Each tick runs at most once.
 *
 * node-cron calls it in every process when a tick is due by that process's clock, with a key made of the task's name and the tick's
 * time. The first caller stores its id under that key, as the result of a `RunOnce`. All later callers get that id, which is not theirs,
 * and skip the tick.
 *
 * It has no `onComplete`, because a process whose clock is behind would run the tick again if the id were removed after the run. It does not
 * keep a tick from starting while an earlier one is still running in another process; `DistributedCron` does.
 */
export const runCoordinator = (
  runtime: ManagedRuntime.ManagedRuntime<RedisLock.RedisLock, unknown>,
  { retention = "1 hour", timeout = "5 seconds" }: RunCoordinatorOptions = {}
): RunCoordinator => ({
  shouldRun: (key, leaseMillis) => {
    const caller = crypto.randomUUID()
    const timeToLive = Math.max(Duration.toMillis(retention), leaseMillis)
    const first = RunOnce.make(`node-cron:${key}`, { timeToLive, result: Schema.String })
    return runtime.runPromise(
      RunOnce.run(Effect.succeed(caller), first).pipe(
        Effect.map((winner) => winner === caller),
        Effect.timeout(timeout)
      )
    )
  }
})
