import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { RedisDriver } from "effect-redis-lock"
import type { Redis } from "ioredis"
import { Deadlines, fail, Pending } from "./Pending.ts"

type Eval = RedisDriver.RedisDriver["Service"]["eval"]

/**
 * Runs scripts by SHA on one client.
 */
export const makeEval = (client: Redis, timeoutMillis: number): Effect.Effect<Eval, never, Scope.Scope> =>
  Effect.gen(function* () {
    const deadlines = yield* Deadlines.make(timeoutMillis)
    const onClose = () => {
      for (const command of deadlines.pending) {
        command.fail("ConnectionLost", "the connection broke before the reply came")
      }
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
        const command = new Pending(deadlines, resume)
        const onReply = (reply: unknown) => command.settle(Effect.succeed(reply as RedisDriver.Reply))
        const onError = (error: unknown) => command.settle(Effect.fail(RedisDriver.errorOf(error)))
        command.send(client, "evalsha", [script.sha1, keys.length, ...keys, ...args]).then(onReply, (error) => {
          // what was given up must not be sent after all
          if (command.isWaiting && RedisDriver.isUnknownScript(error)) {
            command.send(client, "eval", [script.lua, keys.length, ...keys, ...args]).then(onReply, onError)
          } else {
            onError(error)
          }
        })
        return Effect.sync(() => command.giveUp())
      })
  })
