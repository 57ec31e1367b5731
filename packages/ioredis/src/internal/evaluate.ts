import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { RedisDriver } from "effect-redis-lock"
import type { Redis } from "ioredis"

type Eval = RedisDriver.RedisDriver["Service"]["eval"]

const fail = (reason: RedisDriver.RedisDriverError["reason"], message: string) =>
  Effect.fail(new RedisDriver.RedisDriverError({ reason, cause: new Error(message) }))

/**
 * Runs scripts by SHA on one client.
 */
export const makeEval = (client: Redis, timeoutMillis: number): Effect.Effect<Eval, never, Scope.Scope> =>
  Effect.gen(function* () {
    // Counts connections: a client that re-sends commands gives a reply whose command may have run twice.
    let connection = 0
    const onClose = () => {
      connection++
    }
    yield* Effect.acquireRelease(
      Effect.sync(() => client.on("close", onClose)),
      () => Effect.sync(() => client.off("close", onClose))
    )

    return (script, keys, args) =>
      Effect.callback<RedisDriver.Reply, RedisDriver.RedisDriverError>((resume) => {
        if (client.status !== "ready") {
          resume(fail("NotConnected", `the connection is in state "${client.status}"`))
          return
        }
        const sentOn = connection
        let waiting = true
        const settle = (effect: Effect.Effect<RedisDriver.Reply, RedisDriver.RedisDriverError>) => {
          if (!waiting) return
          waiting = false
          clearTimeout(timer)
          resume(effect)
        }
        const timer = setTimeout(() => settle(fail("TimedOut", `no reply within ${timeoutMillis} ms`)), timeoutMillis)
        const onReply = (reply: unknown) =>
          settle(
            sentOn === connection
              ? Effect.succeed(reply as RedisDriver.Reply)
              : fail("ConnectionLost", "the connection broke and the client sent the command again")
          )
        const onError = (error: unknown) => settle(Effect.fail(RedisDriver.errorOf(error)))
        client.evalsha(script.sha1, keys.length, ...keys, ...args).then(onReply, (error) => {
          // what was given up must not be sent after all
          if (waiting && RedisDriver.isUnknownScript(error)) {
            client.eval(script.lua, keys.length, ...keys, ...args).then(onReply, onError)
          } else {
            onError(error)
          }
        })
        return Effect.sync(() => {
          waiting = false
          clearTimeout(timer)
        })
      })
  })
