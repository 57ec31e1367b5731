import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { RedisDriver } from "effect-redis-lock"
import type { CommandWriter } from "./CommandWriter.ts"
import { failed, type Failure, failureOf } from "../failure.ts"

/** The keys of one server that have a type and match a pattern. */
export const scanOf =
  (writer: CommandWriter) =>
  (pattern: string, type: RedisDriver.KeyType): Stream.Stream<string, Failure> =>
    Stream.paginate("0", (cursor) =>
      Effect.tryPromise({
        try: async () => {
          if (writer.connection.isUnusable || writer.client.status === "end") throw writer.connection.notConnected
          const reply = await writer.client.scan(cursor, "MATCH", pattern, "COUNT", 1000, "TYPE", type)
          if (!Array.isArray(reply)) throw RedisDriver.inTransaction
          return reply
        },
        catch: (error) => failureOf(error)
      }).pipe(
        Effect.timeoutOrElse({
          duration: writer.timeoutMillis,
          orElse: () =>
            Effect.suspend(() => {
              writer.onCommandTimeout()
              return Effect.fail(
                failed("TimedOut", `timed out after ${Duration.format(Duration.millis(writer.timeoutMillis))}`)
              )
            })
        }),
        Effect.map(([next, keys]) => [keys, next === "0" ? Option.none() : Option.some(next)] as const)
      )
    )
