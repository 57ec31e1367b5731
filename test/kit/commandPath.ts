/**
 * Which path through ioredis the driver takes, see `fastPath` of IoRedis' options.
 */
import { Effect, Layer, Logger, References, type Scope } from "effect"
import { Command, Redis } from "ioredis"
import type { Socket } from "node:net"

/** ioredis 5 has only the plain one. */
export const hasFastPath = "setReplyContext" in Command.prototype

/** The path that the environment of this run asks for. */
export const pathOfThisRun: "fast" | "plain" =
  process.env["REDIS_LOCK_FAST_PATH"] === "false" || !hasFastPath ? "plain" : "fast"

/** What the driver says of the path that it takes. */
export const pathLog = () => {
  const lines: Array<string> = []
  const logger = Logger.make(({ fiber, message }) => {
    if (fiber.getRef(References.CurrentLogAnnotations)["event"] === "path") lines.push(String(message))
  })
  return {
    lines,
    layer: Layer.mergeAll(Logger.layer([logger]), Layer.succeed(References.MinimumLogLevel, "Debug"))
  }
}

/**
 * Notes by which path each script reached ioredis, until the scope closes: on the plain one it is a command of ioredis' own
 * making, on the fast one of ours.
 */
export const notingPaths: Effect.Effect<Set<"fast" | "plain">, never, Scope.Scope> = Effect.gen(function* () {
  const paths = new Set<"fast" | "plain">()
  const { sendCommand } = Redis.prototype
  yield* Effect.acquireRelease(
    Effect.sync(() => {
      Redis.prototype.sendCommand = function (this: Redis, command, stream) {
        // the driver rehearses on a connection that leads nowhere
        const isReal = (this.stream as Socket | undefined)?.remoteAddress !== undefined
        if (isReal && command.name.startsWith("eval")) paths.add(command.constructor === Command ? "plain" : "fast")
        return sendCommand.call(this, command, stream)
      }
    }),
    () =>
      Effect.sync(() => {
        Redis.prototype.sendCommand = sendCommand
      })
  )
  return paths
})
