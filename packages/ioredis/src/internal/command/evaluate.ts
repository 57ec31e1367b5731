import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { RedisDriver } from "effect-redis-lock"
import { PendingCommands } from "./PendingCommands.ts"
import type { CommandWriter } from "./CommandWriter.ts"
import { ScriptCommand } from "./ScriptCommand.ts"

/**
 * Runs scripts by SHA on one server.
 */
export const makeEval = (
  writer: CommandWriter,
  timeoutMillis: number
): Effect.Effect<RedisDriver.EvalUnsafe, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { client, connection } = writer
    // an application's client may have a timeout of its own
    const { commandTimeout = timeoutMillis } = client.options
    const pending = yield* PendingCommands.make(Math.min(timeoutMillis, commandTimeout))
    const onClose = () => {
      const replica = connection.leavesReplica
      for (const command of pending.all) {
        if (replica === undefined) command.fail("ConnectionLost", "the connection broke before the reply came")
        else command.refuse(replica)
      }
    }
    yield* Effect.acquireRelease(
      Effect.sync(() => client.on("close", onClose)),
      () => Effect.sync(() => client.off("close", onClose))
    )

    return (script, keys, args, onExit) => {
      const command = new ScriptCommand(pending, script, keys, args, onExit)
      if (client.status === "ready" && !connection.isUnusable) command.send(writer)
      else command.refuse(connection.notConnected)
      return command
    }
  })
