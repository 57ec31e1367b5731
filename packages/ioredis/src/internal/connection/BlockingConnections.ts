import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { RedisDriver } from "effect-redis-lock"
import type { Redis } from "ioredis"
import type { CommandWriter } from "../command/CommandWriter.ts"
import { connect } from "./connecting.ts"
import type { Connection } from "./Connection.ts"
import { given } from "../options/settings.ts"
import { endedError, failed, type Failure, refusalOf } from "../failure.ts"

type SendBlocking = NonNullable<RedisDriver.RedisDriver["Service"]["sendBlocking"]>

/** The server that has a key, or the reason why there is none. */
type ServerOf = (key: string) => CommandWriter | Failure

interface Open {
  readonly connection: Connection
  readonly origin: CommandWriter
  /** Our monotonic time, milliseconds; undefined while it serves a caller. */
  idleSince: number | undefined
  /** Whether another server may answer at the origin's address by now. */
  isOutdated: boolean
}

/**
 * Connections for commands that block: each serves one caller at a time, and is then kept for the next one. There are as many as
 * concurrent callers: mostly one, opened when first needed. They have the options of the server's client, and never reconnect. Once
 * that client has lost its own connection, or a server has turned out to be a replica, new ones are opened: the address may lead elsewhere by then.
 * So is one in place of a connection that was idle for long: nothing is sent over it meanwhile, and a NAT may have forgotten it without a word.
 */
export class BlockingConnections {
  readonly #serverOf: ServerOf
  readonly #all = new Set<Open>()
  #isClosed = false

  constructor(serverOf: ServerOf) {
    this.#serverOf = serverOf
  }

  close(): void {
    this.#isClosed = true
    for (const open of this.#all) this.#drop(open)
  }

  /** Sends commands together, and drops the connection if not all replies arrive in time. */
  readonly send: SendBlocking = (key, commands, timeoutMillis) =>
    Effect.suspend(() => {
      const origin = this.#serverOf(key)
      if (origin instanceof RedisDriver.RedisDriverError) return Effect.fail(origin)
      return Effect.uninterruptibleMask((restore) =>
        Effect.flatMap(restore(this.#take(origin)), (open) =>
          Effect.onExit(restore(pipelined(open.connection, commands)), (exit) =>
            Effect.sync(() => {
              if (Exit.isSuccess(exit) && exit.value.some(isReadOnly)) this.leave(origin.client)
              // without all replies, the connection may still be blocked
              if (Exit.isSuccess(exit) && this.#isUsable(open)) open.idleSince = performance.now()
              else this.#drop(open)
            })
          )
        )
      )
    }).pipe(
      Effect.timeoutOrElse({
        duration: timeoutMillis,
        orElse: () => Effect.fail(failed("TimedOut", `timed out: no reply within ${timeoutMillis} ms`))
      })
    )

  /** Another server may answer at the address of this client from now on: connections that were opened before are not used again. */
  readonly leave = (client: Redis): void => {
    for (const open of this.#all) {
      if (open.origin.client !== client) continue
      open.isOutdated = true
      if (open.idleSince !== undefined) this.#drop(open)
    }
  }

  #isUsable({ connection, isOutdated }: Open): boolean {
    return connection.client.status === "ready" && !isOutdated && !this.#isClosed
  }

  #take(origin: CommandWriter): Effect.Effect<Open, Failure> {
    return Effect.suspend(() => {
      if (this.#isClosed) return Effect.fail(endedError("Redis", true))
      for (const open of this.#all) {
        if (open.idleSince === undefined || open.origin !== origin) continue
        const idleMillis = performance.now() - open.idleSince
        open.idleSince = undefined
        // as long as the connection for commands may be silent before it is probed
        if (idleMillis < 2 * origin.timeoutMillis && this.#isUsable(open)) return Effect.succeed(open)
        this.#drop(open)
      }
      const { database } = origin.connection
      const settings = { ...given({ db: database }), lazyConnect: true, retryStrategy: null }
      const connection = origin.connection.beside("acknowledgements", settings, { isWanted: () => false })
      const open: Open = { connection, origin, idleSince: undefined, isOutdated: false }
      this.#all.add(open)
      return Effect.onError(Effect.as(connect(connection), open), () => Effect.sync(() => this.#drop(open)))
    })
  }

  #drop(open: Open): void {
    this.#all.delete(open)
    open.connection.close()
    open.connection.client.disconnect()
  }
}

const isReadOnly = (reply: RedisDriver.Reply | Failure): boolean =>
  reply instanceof RedisDriver.RedisDriverError && reply.reason === "ReadOnly"

const pipelined = (
  connection: Connection,
  commands: ReadonlyArray<ReadonlyArray<string | number>>
): Effect.Effect<ReadonlyArray<RedisDriver.Reply | Failure>, Failure> =>
  Effect.tryPromise({
    try: () =>
      Promise.all(
        commands.map(async ([name, ...args]) => {
          try {
            return (await connection.client.call(String(name), ...args)) as RedisDriver.Reply
          } catch (error) {
            // an error reply concerns one command, a broken connection all of them
            if ((error as Error | undefined)?.name === "ReplyError") return refusalOf(connection.failureOf(error))
            throw error
          }
        })
      ),
    catch: (error) => connection.failureOf(error)
  })
