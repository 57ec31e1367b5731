import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { LockStoreError } from "../../../LockError.ts"
import type { Store } from "../Store.ts"
import { RedisDriver, type RedisDriverError } from "../../../RedisDriver.ts"
import { monotonicMillis } from "../../time/monotonicMillis.ts"
import { storeErrorsIn } from "../../report/telemetry/telemetry.ts"
import { CommandDeadlines } from "../CommandDeadlines.ts"
import { mapStreamError } from "../startable.ts"
import { withDeadlines } from "../withDeadlines.ts"
import { acknowledgements } from "./Acknowledgements.ts"
import { scripts } from "./scripts.generated.ts"

/** A longer command timeout is no reason to let a command that was given up take effect later than that. */
const longestLifeMillis = 10_000

export const makeRedisStore: Effect.Effect<Store, never, RedisDriver> = Effect.gen(function* () {
  const driver = yield* RedisDriver
  const deadlines = new CommandDeadlines(
    Math.min(driver.commandTimeoutMillis, longestLifeMillis),
    monotonicMillis(yield* Clock.Clock),
    driver.server
  )
  const countError = storeErrorsIn(yield* Effect.context<never>())
  return {
    run: withDeadlines(
      deadlines,
      (operation, keys, args) => driver.eval(scripts[operation], keys, args),
      (error, operation, keys) => toStoreError(operation, keys[0]!)(error),
      ({ reason }) => countError(reason)
    ),
    subscribe: (channel) => mapStreamError(driver.subscribe(channel), toStoreError("subscribe", channel)),
    scan: (pattern, type) => Stream.mapError(driver.scan(pattern, type), toStoreError("scan", pattern)),
    publish: driver.publish,
    slot: driver.slot,
    commandLifeMillis: deadlines.lifeMillis,
    commandTimeoutMillis: driver.commandTimeoutMillis,
    serverMicros: (key) => deadlines.serverMicros(key),
    // in a cluster without sharded pub/sub clients that listen at other nodes hear a message, too, and the script cannot tell
    handsOver:
      driver.sharesSubscriptions === true && (driver.publish === "SPUBLISH" || driver.slot("a") === driver.slot("b")),
    address: driver.address,
    acknowledges:
      driver.sendBlocking === undefined
        ? undefined
        : acknowledgements({ ...driver, sendBlocking: driver.sendBlocking }),
    reconnects: driver.reconnects
  }
})

const toStoreError =
  (operation: string, lock: string) =>
  ({ cause, reason }: RedisDriverError): LockStoreError =>
    new LockStoreError({ operation, lock, reason, cause })
