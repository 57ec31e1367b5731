/**
 * Commands to a server of a test, each over a connection of its own.
 */
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import { Redis } from "ioredis"
import { withRealClock } from "./realClock.ts"

/** A step of a test's deployment has failed: a command was refused, no answer came, or a state was not reached. */
export class StepFailed extends Data.TaggedError("StepFailed")<{ readonly message: string }> {}

/** What a user runs: with an error of its own where a step has failed, and on the real clock. */
export const failingAs =
  <F>(failure: (message: string) => F) =>
  <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, Exclude<E, StepFailed> | F, R> =>
    Effect.mapError(withRealClock(self), (error) =>
      error instanceof StepFailed ? failure(error.message) : (error as Exclude<E, StepFailed>)
    )

const TIMEOUT_MILLIS = 5000

/** Uses a connection once: it is never opened again, and nothing is sent twice. */
export const connected = <A>(
  url: string,
  timeoutMillis: number,
  use: (client: Redis) => Promise<A>
): Effect.Effect<A, Error> =>
  Effect.suspend(() => {
    let broken: Error | undefined
    return Effect.acquireUseRelease(
      Effect.sync(() => {
        const client = new Redis(url, {
          lazyConnect: true,
          retryStrategy: () => null,
          enableReadyCheck: false,
          disableClientInfo: true,
          connectTimeout: timeoutMillis
        })
        // The error event tells the cause; connect() itself rejects with "Connection is closed."
        client.on("error", (error) => {
          broken = error
        })
        return client
      }),
      (client) =>
        Effect.tryPromise({
          try: async () => {
            await client.connect()
            return await use(client)
          },
          catch: (error) => broken ?? (error instanceof Error ? error : new Error(String(error)))
        }),
      (client) => Effect.sync(() => client.disconnect())
    )
  }).pipe(
    Effect.timeoutOrElse({
      duration: timeoutMillis,
      orElse: () => Effect.fail(new Error(`no answer within ${timeoutMillis} ms`))
    }),
    withRealClock
  )

/** Sends one command. */
export const command = (
  { port, url }: { readonly port: number; readonly url: string },
  name: string,
  ...args: ReadonlyArray<string | number>
): Effect.Effect<unknown, StepFailed> =>
  Effect.mapError(
    connected(url, TIMEOUT_MILLIS, (client) => client.call(name, ...args)),
    ({ message }) => new StepFailed({ message: `${name} ${args.join(" ")} on port ${port}: ${message}` })
  )
