import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import { connected } from "./command.ts"

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
const describe = (error: NodeJS.ErrnoException): string =>
  error.message.replace(/\.$/, "") || String(error.code ?? error.name)

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
export const ping = (url: string, timeoutMillis: number): Effect.Effect<ServerInfo, NoPong> =>
  Effect.mapError(
    connected(url, timeoutMillis, async (client) => {
      await client.ping()
      return parseInfo(await client.info("server").catch(() => ""))
    }),
    (error) => {
      const detail = describe(error)
      return new NoPong({ detail, wantsCredentials: /^(NOAUTH|NOPERM|WRONGPASS)/.test(detail) })
    }
  )
