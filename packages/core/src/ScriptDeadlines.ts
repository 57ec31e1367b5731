/**
 * Runs your own scripts by the rule that the locks' scripts follow: a command that creates something carries the server
 * time until which it may take effect, so that it never takes effect after its sender has given up. Otherwise it could be
 * stuck in a broken connection, and reach the server long after the command that undid it.
 *
 * `@effect-redis-lock/cluster` is built on it. Locks do not need it.
 *
 * @since 0.3.0
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { evalUnsafeOf, sending, ServerClocks } from "./internal/store/commands.ts"
import type { OperationName, StoreOperation } from "./internal/store/operations/StoreOperation.ts"
import { monotonicMillis } from "./internal/time/clock.ts"
import type { InvalidLockOptions, LockStoreError } from "./LockError.ts"
import { checkTimeout, RedisDriver, type RedisScript, type Reply } from "./RedisDriver.ts"

/**
 * Runs a script with a deadline behind its other arguments. Fails with `TooLate` if the server was not reached in time
 * three times in a row, each time on a connection that answered: its clock was stepped, or it stopped.
 *
 * @category models
 * @since 0.3.0
 */
export type EvalWithDeadline = (
  script: RedisScript,
  keys: readonly [string, ...ReadonlyArray<string>],
  args: ReadonlyArray<string | number>
) => Effect.Effect<Reply, LockStoreError>

/**
 * Options of {@link make}.
 *
 * @category models
 * @since 0.3.0
 */
export interface ScriptDeadlinesOptions {
  /**
   * How long after it was sent a command may take effect: at most this, and never longer than the driver's command timeout.
   * Default: 10 seconds.
   */
  readonly longestLife?: Duration.Input | undefined
}

/** A script of another package has no row in the table of operations; its reply stays what it is. */
const operation = { hasDeadline: true, tellsTime: false, reply: (raw) => raw } as StoreOperation<Reply>

/**
 * An `eval` whose commands carry deadlines by the clock of the server that runs them.
 *
 * **Details**
 *
 * The deadline is the script's last argument, in milliseconds since the epoch. The script compares it with `TIME`, and
 * refuses a late command with `redis.error_reply('LATE ' .. micros)`, where `micros` is the server's time in microseconds:
 * see `lua/include/deadline.lua`. From a refusal the sender learns the server's clock, and sends the command again; the first
 * command to a server is always refused once.
 *
 * **When not to use**
 *
 * For scripts that only read. Run these by `RedisDriver.eval`.
 *
 * @category constructors
 * @since 0.3.0
 */
export const make = Effect.fnUntraced(function* (
  options?: ScriptDeadlinesOptions
): Effect.fn.Return<EvalWithDeadline, InvalidLockOptions, RedisDriver> {
  const driver = yield* RedisDriver
  const longestLife = yield* checkTimeout("longestLife", options?.longestLife ?? "10 seconds")
  const run = sending({
    eval: evalUnsafeOf(driver.eval),
    clocks: new ServerClocks(monotonicMillis(yield* Clock.Clock), driver.server),
    lifeMillis: Math.min(driver.commandTimeoutMillis, Duration.toMillis(longestLife))
  })
  return (script, keys, args) =>
    run({ operation: { ...operation, name: script.name as OperationName, script }, keys, args })
})
