import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { RedisDriver } from "effect-redis-lock"
import type { Redis } from "ioredis"
import type { ClusterNodes } from "../connection/ClusterNodes.ts"
import { ClusterScriptCommand } from "./ClusterScriptCommand.ts"
import { PendingCommands } from "./PendingCommands.ts"

/**
 * Runs scripts by SHA on the masters that serve their keys.
 */
export const makeEvalOnCluster = (
  nodes: ClusterNodes,
  timeoutMillis: number
): Effect.Effect<RedisDriver.EvalUnsafe, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { commandTimeout = timeoutMillis } = nodes.cluster.options.redisOptions ?? {}
    const pending = yield* PendingCommands.make(Math.min(timeoutMillis, commandTimeout))
    const each = (f: (command: ClusterScriptCommand) => void) => (node: Redis) => {
      for (const command of pending.all) {
        if ((command as ClusterScriptCommand).node?.client === node) f(command as ClusterScriptCommand)
      }
    }
    yield* Effect.acquireRelease(
      Effect.sync(() => {
        const watcher = {
          onReady: each((command) => command.proceed()),
          onClose: each((command) => command.disconnected())
        }
        nodes.watchers.add(watcher)
        return watcher
      }),
      (watcher) => Effect.sync(() => nodes.watchers.delete(watcher))
    )
    const target = { nodes, pending }
    return (script, keys, args, onExit) => {
      const command = new ClusterScriptCommand(target, script, keys, args, onExit)
      command.route()
      return command
    }
  })
