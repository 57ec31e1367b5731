import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { RedisDriver } from "effect-redis-lock"
import type { Redis } from "ioredis"

type Eval = RedisDriver.RedisDriver["Service"]["eval"]
type Outcome = Effect.Effect<RedisDriver.Reply, RedisDriver.RedisDriverError>

const fail = (reason: RedisDriver.RedisDriverError["reason"], message: string) =>
  Effect.fail(new RedisDriver.RedisDriverError({ reason, cause: new Error(message) }))

/** A command whose reply somebody waits for. */
class Pending {
  readonly until: number
  /** The connection it was sent on. */
  readonly connection: number
  readonly #all: Set<Pending>
  readonly #resume: (outcome: Outcome) => void

  constructor(all: Set<Pending>, until: number, connection: number, resume: (outcome: Outcome) => void) {
    this.until = until
    this.connection = connection
    this.#all = all
    this.#resume = resume
    all.add(this)
  }

  get isWaiting(): boolean {
    return this.#all.has(this)
  }

  settle(outcome: Outcome): void {
    if (this.giveUp()) this.#resume(outcome)
  }

  giveUp(): boolean {
    return this.#all.delete(this)
  }
}

/**
 * Runs scripts by SHA on one client.
 */
export const makeEval = (client: Redis, timeoutMillis: number): Effect.Effect<Eval, never, Scope.Scope> =>
  Effect.gen(function* () {
    // In the order of sending, which is that of their timeouts: one timer watches over all.
    const pending = new Set<Pending>()
    let timer: ReturnType<typeof setTimeout> | undefined
    const expire = () => {
      timer = undefined
      const now = performance.now()
      for (const command of pending) {
        if (command.until > now) {
          timer = setTimeout(expire, command.until - now).unref()
          break
        }
        command.settle(fail("TimedOut", `no reply within ${timeoutMillis} ms`))
      }
    }

    // Counts connections: a client that re-sends commands gives a reply whose command may have run twice.
    let connection = 0
    const onClose = () => {
      connection++
    }
    yield* Effect.acquireRelease(
      Effect.sync(() => client.on("close", onClose)),
      () =>
        Effect.sync(() => {
          client.off("close", onClose)
          clearTimeout(timer)
        })
    )

    return (script, keys, args) =>
      Effect.callback<RedisDriver.Reply, RedisDriver.RedisDriverError>((resume) => {
        if (client.status !== "ready") {
          resume(fail("NotConnected", `the connection is in state "${client.status}"`))
          return
        }
        const command = new Pending(pending, performance.now() + timeoutMillis, connection, resume)
        timer ??= setTimeout(expire, timeoutMillis).unref()
        const onReply = (reply: unknown) =>
          command.settle(
            command.connection === connection
              ? Effect.succeed(reply as RedisDriver.Reply)
              : fail("ConnectionLost", "the connection broke and the client sent the command again")
          )
        const onError = (error: unknown) => {
          // what was given up must not be sent after all
          if (command.isWaiting && RedisDriver.isUnknownScript(error)) {
            client
              .eval(script.lua, keys.length, ...keys, ...args)
              .then(onReply, (error) => command.settle(Effect.fail(RedisDriver.errorOf(error))))
          } else {
            command.settle(Effect.fail(RedisDriver.errorOf(error)))
          }
        }
        client.evalsha(script.sha1, keys.length, ...keys, ...args).then(onReply, onError)
        return Effect.sync(() => command.giveUp())
      })
  })
