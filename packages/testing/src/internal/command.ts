import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import { Redis } from "ioredis"

/** A command was refused, or no answer came. */
export class CommandFailed extends Data.TaggedError("CommandFailed")<{ readonly message: string }> {}

const TIMEOUT_MILLIS = 5000

/** Sends one command over a connection of its own. Never sent twice. */
export const command = (
  server: { readonly host: string; readonly port: number },
  name: string,
  ...args: ReadonlyArray<string | number>
): Effect.Effect<unknown, CommandFailed> =>
  Effect.acquireUseRelease(
    Effect.sync(() => {
      const client = new Redis({
        host: server.host,
        port: server.port,
        lazyConnect: true,
        retryStrategy: () => null,
        enableReadyCheck: false,
        disableClientInfo: true,
        connectTimeout: TIMEOUT_MILLIS,
        commandTimeout: TIMEOUT_MILLIS
      })
      // the command reports it
      client.on("error", () => {})
      return client
    }),
    (client) =>
      Effect.tryPromise({
        try: async () => {
          await client.connect()
          return await client.call(name, ...args)
        },
        catch: (error) =>
          new CommandFailed({
            message: `${name} ${args.join(" ")} on port ${server.port}: ${error instanceof Error ? error.message : String(error)}`
          })
      }),
    (client) => Effect.sync(() => client.disconnect())
  )
