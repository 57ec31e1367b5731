import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { LockStoreError } from "../../../LockError.ts"
import type { LockStore, Operation } from "../../../LockStore.ts"
import { RedisDriver, type RedisDriverError } from "../../../RedisDriver.ts"
import { scripts } from "./scripts.generated.ts"

const wrap =
  (operation: string, name: string) =>
  (error: RedisDriverError): LockStoreError =>
    new LockStoreError({ operation, name, reason: error.reason, cause: error.cause })

export const makeRedisStore: Effect.Effect<LockStore["Service"], never, RedisDriver> = Effect.map(
  RedisDriver,
  (driver) => ({
    run: (operation: Operation, keys, args) =>
      Effect.mapError(driver.eval(scripts[operation], keys, args), (error) => wrap(operation, keys[0]!)(error)),
    subscribe: (channel) => Stream.mapError(driver.subscribe(channel), wrap("subscribe", channel)),
    scan: (pattern) => Stream.mapError(driver.scan(pattern), wrap("scan", pattern)),
    publish: driver.publish,
    slot: driver.slot
  })
)
