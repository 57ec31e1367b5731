/**
 * A store over a driver: commands with deadlines by the clocks of its servers, and signals.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { LockStoreError, type StoreReason } from "../../../LockError.ts"
import { RedisDriver, type RedisDriverError } from "../../../RedisDriver.ts"
import { storeErrorsIn } from "../../report/telemetry.ts"
import { monotonicMillis } from "../../time/clock.ts"
import { acknowledgements } from "../acknowledgements.ts"
import { evalUnsafeOf, sending, ServerClocks } from "../commands.ts"
import { mapStreamError } from "../startable.ts"
import type { Store } from "../Store.ts"

/** A longer command timeout is no reason to let a command that was given up take effect later than that. */
const longestLifeMillis = 10_000

export const makeRedisStore: Effect.Effect<Store, never, RedisDriver> = Effect.gen(function* () {
  const now = monotonicMillis(yield* Clock.Clock)
  return storeOver(yield* RedisDriver, now, storeErrorsIn(yield* Effect.context<never>()))
})

export const storeOver = (
  driver: RedisDriver["Service"],
  now: () => number,
  onFailure?: (reason: StoreReason) => void
): Store => {
  const clocks = new ServerClocks(now, driver.server)
  const lifeMillis = Math.min(driver.commandTimeoutMillis, longestLifeMillis)
  return {
    run: sending({ eval: evalUnsafeOf(driver.eval), clocks, lifeMillis, onFailure }),
    subscribe: (channel) => mapStreamError(driver.subscribe(channel), toStoreError("subscribe", channel)),
    scan: (pattern, type) => Stream.mapError(driver.scan(pattern, type), toStoreError("scan", pattern)),
    publish: driver.publish,
    slot: driver.slot,
    commandLifeMillis: lifeMillis,
    commandTimeoutMillis: driver.commandTimeoutMillis,
    serverMicros: (key) => clocks.latestMicros(key),
    longestSince: (key, serverMicros) => clocks.of(key).longestSince(serverMicros, now()),
    // in a cluster without sharded pub/sub clients that listen at other nodes hear a message, too, and the script cannot tell
    handsOver:
      driver.sharesSubscriptions === true && (driver.publish === "SPUBLISH" || driver.slot("a") === driver.slot("b")),
    address: driver.address,
    acknowledges:
      driver.sendBlocking === undefined
        ? undefined
        : acknowledgements({ ...driver, sendBlocking: driver.sendBlocking }, onFailure),
    reconnects: driver.reconnects,
    invalidations:
      driver.invalidations && mapStreamError(driver.invalidations, toStoreError("tracking", "__redis__:invalidate"))
  }
}

const toStoreError =
  (operation: string, lock: string) =>
  ({ cause, reason }: RedisDriverError): LockStoreError =>
    new LockStoreError({ operation, lock, reason, cause })
