import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Scope from "effect/Scope"
import type { RedisDriver } from "effect-redis-lock"
import type { Redis } from "ioredis"
import type { CommandPath } from "./CommandPath.ts"
import { connect } from "./connecting.ts"
import { Connection } from "./Connection.ts"
import type { ConnectionLog } from "./ConnectionLog.ts"
import { endedError } from "./endedError.ts"
import { failureOf } from "./failure.ts"
import { forSubscriptions } from "./settings.ts"

type SendBlocking = NonNullable<RedisDriver.RedisDriver["Service"]["sendBlocking"]>

interface Options {
  readonly path: CommandPath
  readonly log: ConnectionLog
  /** The client of the server that keeps a key, or why there is none. */
  readonly clientFor: (key: string) => Redis | RedisDriver.RedisDriverError
}

interface Open {
  readonly connection: Connection
  readonly origin: Redis
}

/**
 * Connections for commands that block: each serves one caller at a time, and is kept for the next one. There are as many as callers
 * at one time: mostly one, opened when it is first needed. They are made as the client of the server is, and never connect again.
 */
export class BlockingConnections {
  readonly #options: Options
  readonly #all = new Set<Open>()
  readonly #idle: Array<Open> = []
  #isClosed = false

  private constructor(options: Options) {
    this.#options = options
  }

  static make(options: Options): Effect.Effect<BlockingConnections, never, Scope.Scope> {
    return Effect.acquireRelease(
      Effect.sync(() => new BlockingConnections(options)),
      (connections) =>
        Effect.sync(() => {
          connections.#isClosed = true
          for (const open of connections.#all) connections.#drop(open)
        })
    )
  }

  /** Sends commands together, and gives up the connection where not all replies come in time. */
  readonly send: SendBlocking = (key, commands, timeoutMillis) =>
    Effect.suspend(() => {
      const origin = this.#options.clientFor(key)
      if ("_tag" in origin) return Effect.fail(origin)
      return Effect.uninterruptibleMask((restore) =>
        Effect.flatMap(restore(this.#take(origin)), (open) =>
          Effect.onExit(restore(pipelined(open.connection, commands)), (exit) =>
            Effect.sync(() => {
              // what has not answered may still block
              if (Exit.isSuccess(exit) && this.#isUsable(open)) this.#idle.push(open)
              else this.#drop(open)
            })
          )
        )
      )
    }).pipe(
      Effect.timeoutOrElse({
        duration: timeoutMillis,
        orElse: () => Effect.fail(failureOf(new Error(`timed out: no reply within ${timeoutMillis} ms`)))
      })
    )

  #isUsable({ connection }: Open): boolean {
    return connection.client.status === "ready" && !this.#isClosed
  }

  #take(origin: Redis): Effect.Effect<Open, RedisDriver.RedisDriverError> {
    return Effect.suspend(() => {
      if (this.#isClosed) return Effect.fail(endedError("Redis", true, undefined))
      while (this.#idle.length > 0) {
        const index = this.#idle.findIndex((open) => open.origin === origin)
        if (index === -1) break
        const [open] = this.#idle.splice(index, 1) as [Open]
        if (open.connection.client.status === "ready") return Effect.succeed(open)
        this.#drop(open)
      }
      const { log, path } = this.#options
      const client = origin.duplicate({ ...forSubscriptions, lazyConnect: true, retryStrategy: null })
      const connection = new Connection(client, { path, log, name: "acknowledgements", isWanted: () => false })
      const open = { connection, origin }
      this.#all.add(open)
      return Effect.onError(Effect.as(connect(connection), open), () => Effect.sync(() => this.#drop(open)))
    })
  }

  #drop(open: Open): void {
    this.#all.delete(open)
    const index = this.#idle.indexOf(open)
    if (index !== -1) this.#idle.splice(index, 1)
    open.connection.close()
    open.connection.client.disconnect()
  }
}

const pipelined = (
  connection: Connection,
  commands: ReadonlyArray<ReadonlyArray<string | number>>
): Effect.Effect<ReadonlyArray<RedisDriver.Reply | RedisDriver.RedisDriverError>, RedisDriver.RedisDriverError> =>
  Effect.callback((resume) => {
    const replies = commands.map(([name, ...args]) =>
      (connection.client.call(String(name), ...args) as Promise<RedisDriver.Reply>).catch((error: unknown) => {
        const failure = connection.failureOf(error)
        // a refusal concerns one command; what broke concerns all of them
        if ((error as Error | undefined)?.name === "ReplyError") return failure
        throw failure
      })
    )
    Promise.all(replies).then(
      (all) => resume(Effect.succeed(all)),
      (failure: RedisDriver.RedisDriverError) => resume(Effect.fail(failure))
    )
  })
