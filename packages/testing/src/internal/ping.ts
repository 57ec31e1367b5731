import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import { Redis } from "ioredis"
import { withRealClock } from "./realClock.ts"

/** What a server says about itself; a field is absent if the user may not run INFO. */
export interface ServerInfo {
  readonly name: string
  readonly version: string | undefined
  readonly processId: number | undefined
}

/** PING was not answered with PONG. */
export class NoPong extends Data.TaggedError("NoPong")<{
  /** Why, in a few words. */
  readonly detail: string
  /** Whether a server is there and ready, but wants credentials first. */
  readonly wantsCredentials: boolean
}> {}

/** A refused connection to "localhost" is an AggregateError with an empty message, hence the code. */
const describe = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error)
  return error.message.replace(/\.$/, "") || String((error as NodeJS.ErrnoException).code ?? error.name)
}

const field = (info: string, name: string): string | undefined => new RegExp(`^${name}:(.*?)\\r?$`, "m").exec(info)?.[1]

const parseInfo = (info: string): ServerInfo => {
  const processId = Number(field(info, "process_id"))
  return {
    name: field(info, "server_name") ?? "redis",
    version: field(info, "valkey_version") ?? field(info, "redis_version"),
    processId: Number.isInteger(processId) ? processId : undefined
  }
}

/** Connects, sends PING and INFO once, and disconnects. Never retries by itself; gives up after `timeoutMillis`. */
export const ping = (url: string, timeoutMillis: number): Effect.Effect<ServerInfo, NoPong> => {
  let lastError: unknown
  const attempt = Effect.acquireUseRelease(
    Effect.sync(() => {
      // a caller may retry: the error of an earlier attempt says nothing of this one
      lastError = undefined
      const client = new Redis(url, {
        lazyConnect: true,
        retryStrategy: () => null,
        enableReadyCheck: false,
        disableClientInfo: true,
        connectTimeout: timeoutMillis
      })
      // The error event tells the cause; connect() itself rejects with "Connection is closed."
      client.on("error", (error) => {
        lastError = error
      })
      return client
    }),
    (client) =>
      Effect.tryPromise({
        try: async () => {
          await client.connect()
          await client.ping()
          return parseInfo(await client.info("server").catch(() => ""))
        },
        catch: (error) => {
          const detail = describe(lastError ?? error)
          return new NoPong({ detail, wantsCredentials: /^(NOAUTH|NOPERM|WRONGPASS)/.test(detail) })
        }
      }),
    (client) => Effect.sync(() => client.disconnect())
  )
  return attempt.pipe(
    Effect.timeoutOrElse({
      duration: timeoutMillis,
      orElse: () => Effect.fail(new NoPong({ detail: `no answer within ${timeoutMillis} ms`, wantsCredentials: false }))
    }),
    withRealClock
  )
}
