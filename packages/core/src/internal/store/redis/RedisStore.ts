import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Stream from "effect/Stream"
import { LockStoreError } from "../../../LockError.ts"
import type { LockStore, RunUnsafe } from "../../../LockStore.ts"
import { type EvalUnsafe, RedisDriver, type RedisDriverError, type Reply } from "../../../RedisDriver.ts"
import { awaiting } from "../../ongoing.ts"
import { scripts } from "./scripts.generated.ts"

const wrap =
  (operation: string, name: string) =>
  (error: RedisDriverError): LockStoreError =>
    new LockStoreError({ operation, lock: name, reason: error.reason, cause: error.cause })

const runUnsafeOver =
  (evalUnsafe: EvalUnsafe): RunUnsafe =>
  (operation, keys, args, onExit) =>
    evalUnsafe(scripts[operation], keys, args, (exit) =>
      onExit(Exit.isSuccess(exit) ? (exit as Exit.Success<Reply>) : Exit.mapError(exit, wrap(operation, keys[0]!)))
    )

const runOver =
  (runUnsafe: RunUnsafe): LockStore["Service"]["run"] =>
  (operation, keys, args) =>
    awaiting((resume) => runUnsafe(operation, keys, args, resume))

export const makeRedisStore: Effect.Effect<LockStore["Service"], never, RedisDriver> = Effect.map(
  RedisDriver,
  (driver) => {
    const { evalUnsafe, subscribeUnsafe } = driver
    const runUnsafe = evalUnsafe && runUnsafeOver(evalUnsafe)
    return {
      run:
        runUnsafe === undefined
          ? (operation, keys, args) =>
              Effect.mapError(driver.eval(scripts[operation], keys, args), wrap(operation, keys[0]!))
          : runOver(runUnsafe),
      subscribe: (channel) => Stream.mapError(driver.subscribe(channel), wrap("subscribe", channel)),
      runUnsafe,
      subscribeUnsafe:
        subscribeUnsafe &&
        ((channel, onSignal, onFailure) =>
          subscribeUnsafe(channel, onSignal, (error) => onFailure(wrap("subscribe", channel)(error)))),
      scan: (pattern) => Stream.mapError(driver.scan(pattern), wrap("scan", pattern)),
      publish: driver.publish,
      slot: driver.slot
    }
  }
)
