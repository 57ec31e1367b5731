import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { RedisDriver } from "effect-redis-lock"
import { BlockingConnections } from "./connection/BlockingConnections.ts"
import { CommandWriter } from "./command/CommandWriter.ts"
import { makeEval } from "./command/ScriptCommand.ts"
import { eachTime, listen, scoped } from "./connection/listening.ts"
import { scanOf } from "./command/scan.ts"
import { type Warnings, warnOfServers } from "./serverWarnings.ts"
import { Subscriber } from "./subscriber.ts"
import { invalidationsOf } from "./tracking.ts"

/** The driver over one connection for commands, and another for subscriptions once there are any. */
export const makeServerDriver = (
  writer: CommandWriter,
  warnings: Warnings
): Effect.Effect<RedisDriver.RedisDriver["Service"], never, Scope.Scope> =>
  Effect.gen(function* () {
    const { connection, timeoutMillis } = writer
    const evalUnsafe = yield* makeEval(writer)
    const open = () => new CommandWriter(connection.beside("subscriptions", {}), timeoutMillis)
    const subscriber = yield* scoped(
      () => new Subscriber({ sharded: false, serverOf: () => "", open, refresh: () => {} })
    )
    const blocking = yield* scoped(
      () => new BlockingConnections(() => (writer.client.status === "end" ? connection.notConnected : writer))
    )
    // one listener at the connection, however many clients share the driver
    const readyListeners = new Set<() => void>()
    const whenReady = (listener: () => void) => {
      readyListeners.add(listener)
      return { close: () => readyListeners.delete(listener) }
    }
    const onReady = () => {
      if (connection.hasLeftReplica) {
        // they may still be at the former master, which keeps its connections but has nothing to tell any more
        subscriber.replaceConnections(new Error("READONLY: this server has become a replica"))
      }
      for (const listener of readyListeners) listener()
    }
    const onClose = () => blocking.leave(writer.client)
    yield* scoped(() => listen(writer.client, { ready: onReady, close: onClose }))
    connection.log.open()
    yield* warnOfServers([writer], warnings)
    return {
      eval: RedisDriver.evalOf(evalUnsafe),
      subscribe: RedisDriver.subscribeOf(subscriber.subscribe),
      scan: scanOf(writer),
      sharesSubscriptions: true,
      publish: "PUBLISH",
      slot: () => 0,
      server: () => writer.server,
      address: () => connection.server,
      commandTimeoutMillis: timeoutMillis,
      sendBlocking: blocking.send,
      reconnects: eachTime(whenReady),
      invalidations: invalidationsOf({
        client: () => writer.client,
        isShared: !connection.isOurs,
        subscriber,
        listen: whenReady
      })
    }
  })
