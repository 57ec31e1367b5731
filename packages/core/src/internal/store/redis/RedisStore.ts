import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Cause from "effect/Cause"
import * as Exit from "effect/Exit"
import * as Stream from "effect/Stream"
import { LockStoreError } from "../../../LockError.ts"
import type { LockStore, RunUnsafe } from "../../../LockStore.ts"
import { type EvalUnsafe, type Cancellable, RedisDriver, RedisDriverError, type Reply } from "../../../RedisDriver.ts"
import { monotonicMillis } from "../../time/monotonicMillis.ts"
import { fromCallback } from "../cancellable.ts"
import { CommandDeadlines } from "../CommandDeadlines.ts"
import { tooLate, withDeadlines } from "../withDeadlines.ts"
import { scripts } from "./scripts.generated.ts"

const wrap =
  (operation: string, name: string) =>
  (error: RedisDriverError): LockStoreError =>
    new LockStoreError({ operation, lock: name, reason: error.reason, cause: error.cause })

const runUnsafeOver =
  (evalUnsafe: EvalUnsafe, deadlines: CommandDeadlines): RunUnsafe =>
  (operation, keys, args, onExit) => {
    const command = deadlines.begin(operation, keys)
    if (command === undefined) {
      return evalUnsafe(scripts[operation], keys, args, (exit) =>
        onExit(Exit.isSuccess(exit) ? (exit as Exit.Success<Reply>) : Exit.mapError(exit, wrap(operation, keys[0]!)))
      )
    }
    let isCancelled = false
    let sent: Cancellable | undefined
    const send = () => {
      sent = evalUnsafe(scripts[operation], keys, command.stamp(args), (exit) => {
        if (Exit.isSuccess(exit)) return onExit(Exit.succeed(command.read(exit.value)))
        const error = Cause.squash(exit.cause)
        if (!(error instanceof RedisDriverError && command.isLate(error.cause))) {
          return onExit(Exit.mapError(exit, wrap(operation, keys[0]!)))
        }
        if (!command.maySendAgain) return onExit(Exit.fail(tooLate(operation, keys)))
        if (!isCancelled) send()
      })
    }
    send()
    return {
      cancel: () => {
        isCancelled = true
        sent?.cancel()
      }
    }
  }

const runOver =
  (runUnsafe: RunUnsafe): LockStore["Service"]["run"] =>
  (operation, keys, args) =>
    fromCallback((resume) => runUnsafe(operation, keys, args, resume))

/** A longer command timeout is no reason to let a command that was given up take effect later than that. */
const longestLifeMillis = 10_000

export const makeRedisStore: Effect.Effect<LockStore["Service"], never, RedisDriver> = Effect.gen(function* () {
  const driver = yield* RedisDriver
  const { evalUnsafe, subscribeUnsafe } = driver
  const deadlines = new CommandDeadlines(
    Math.min(driver.commandTimeoutMillis, longestLifeMillis),
    monotonicMillis(yield* Clock.Clock),
    driver.server
  )
  const runUnsafe = evalUnsafe && runUnsafeOver(evalUnsafe, deadlines)
  return {
    run:
      runUnsafe === undefined
        ? withDeadlines(deadlines, (operation, keys, args) =>
            Effect.mapError(driver.eval(scripts[operation], keys, args), wrap(operation, keys[0]!))
          )
        : runOver(runUnsafe),
    subscribe: (channel) => Stream.mapError(driver.subscribe(channel), wrap("subscribe", channel)),
    runUnsafe,
    subscribeUnsafe:
      subscribeUnsafe &&
      ((channel, onSignal, onFailure) =>
        subscribeUnsafe(channel, onSignal, (error) => onFailure(wrap("subscribe", channel)(error)))),
    scan: (pattern) => Stream.mapError(driver.scan(pattern), wrap("scan", pattern)),
    publish: driver.publish,
    slot: driver.slot,
    commandLifeMillis: deadlines.lifeMillis,
    serverMicros: (key) => deadlines.serverMicros(key),
    address: driver.address
  }
})
