import * as Effect from "effect/Effect"
import { InvalidLockOptions } from "effect-redis-lock"
import type { RedisOptions } from "ioredis"

type Check = Effect.Effect<void, InvalidLockOptions>

export const check = (isValid: boolean, option: string, problem: string): Check =>
  isValid ? Effect.void : Effect.fail(new InvalidLockOptions({ option, problem }))

/** Checks what a caller without a compiler may have left out. */
export const checkOptions = (options: unknown, example: string): Check =>
  check(typeof options === "object" && options !== null, "options", `they must be an object, such as ${example}`)

/** ioredis makes a text of the name later, where no failure can be caught. */
export const checkMasterName = (name: unknown): Check =>
  check(typeof name === "string" && name !== "", "name", "it must be a string, and not empty")

export const checkClient = (client: unknown): Check => {
  const { options, status } = (client ?? {}) as { readonly options?: unknown; readonly status?: unknown }
  const isClient = typeof options === "object" && options !== null && typeof status === "string"
  return check(isClient, "client", "it must be a Redis or a Cluster of ioredis")
}

/** A cluster has one database, which its URL cannot change. */
export const checkDatabase = (option: string, { db = 0 }: RedisOptions): Check =>
  check(Number(db) === 0, option, "a cluster has only database 0")

const isInteger = (from: number, to: number) => (value: unknown) => {
  const number = typeof value === "string" && /^\d+$/.test(value) ? Number(value) : value
  return Number.isSafeInteger(number) && (number as number) >= from && (number as number) <= to
}
const isMillis = (value: unknown) => typeof value === "number" && value >= 0 && value <= 2 ** 31 - 1
const isText = (value: unknown) => typeof value === "string"
const isFunction = (value: unknown) => typeof value === "function"

/**
 * Whether ioredis would reconnect after every error reply; it ignores any other answer, also a promise. The first request over a connection
 * is answered by an error, as the server's clock is not known yet: the client would reconnect forever.
 */
export const reconnectsAlways = (reconnectOnError: unknown): boolean => {
  if (typeof reconnectOnError !== "function") return false
  try {
    return [true, 1, 2].includes(reconnectOnError(Object.assign(new Error("LATE 0"), { name: "ReplyError" })))
  } catch {
    return false
  }
}

const rules: ReadonlyArray<readonly [ReadonlyArray<string>, (value: unknown) => boolean, string]> = [
  [["db"], isInteger(0, Number.MAX_SAFE_INTEGER), "an integer, 0 or greater"],
  [["port"], isInteger(1, 65535), "an integer from 1 to 65535"],
  [["family"], (value) => value === 0 || value === 4 || value === 6, "0, 4 or 6"],
  [["protocol"], (value) => value === 2 || value === 3, "2 or 3"],
  [
    [
      "commandTimeout",
      "connectTimeout",
      "disconnectTimeout",
      "keepAlive",
      "maxLoadingRetryTime",
      "sentinelCommandTimeout",
      "socketTimeout"
    ],
    isMillis,
    "a number of milliseconds"
  ],
  [
    ["connectionName", "host", "name", "password", "path", "sentinelPassword", "sentinelUsername", "username"],
    isText,
    "a string"
  ],
  [
    ["reconnectOnError"],
    (value) => isFunction(value) && !reconnectsAlways(value),
    "a function, and not true of every error: the first reply over a connection may be one"
  ],
  [["retryStrategy", "sentinelReconnectStrategy", "sentinelRetryStrategy"], isFunction, "a function"]
]

/**
 * Checks options that ioredis accepts unchecked, only to end the process with an uncaught exception or to connect to something
 * else: `db: "abc"` is database 0.
 */
export const checkIoredis = <A extends object>(
  options: A | undefined,
  option = "ioredis"
): Effect.Effect<A | {}, InvalidLockOptions> => {
  const values = (options ?? {}) as Readonly<Record<string, unknown>>
  for (const [names, isValid, expected] of rules) {
    for (const name of names) {
      const value = values[name]
      // ioredis' own defaults are null
      if (value !== undefined && value !== null && !isValid(value)) {
        return Effect.fail(new InvalidLockOptions({ option: `${option}.${name}`, problem: `it must be ${expected}` }))
      }
    }
  }
  return Effect.succeed(options ?? {})
}
