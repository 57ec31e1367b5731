import { Command, type Redis } from "ioredis"
import { RedisDriver } from "effect-redis-lock"
import type { CommandPath, SendScript } from "../command/CommandPath.ts"
import { Connector, socketOf } from "../connection/Connector.ts"
import { SentinelConnector } from "../connection/SentinelConnector.ts"

/** ioredis' message after its own `commandTimeout`. */
const TIMED_OUT = "Command timed out"

/**
 * Commands as ioredis documents them for what it has no method for. Its methods would do for connections of our own, but a
 * command that an application's client keeps for its next connection could not be disarmed, and `enableAutoPipelining` would
 * keep it back.
 */
const makeSend =
  (client: Redis): SendScript =>
  (request) => {
    const { args, keys, script, sendsText } = request
    const [name, subject] = sendsText ? ["eval", script.lua] : ["evalsha", script.sha1]
    const command = new Command(name, [subject, keys.length, ...keys, ...args])
    void (client.sendCommand(command) as Promise<unknown>).then(
      (reply) => request.onReply(reply),
      (error: unknown) => {
        if (error instanceof Error && error.message === TIMED_OUT) request.expire()
        else request.onError(error)
      }
    )
    return {
      disarm: () => {
        command.name = "ping"
        command.args = []
      }
    }
  }

/** How CLIENT INFO is refused before Redis 6.2, or without the permission. */
const refusal = /unknown (sub)?command|syntax error|^NOPERM\b/i

/**
 * ioredis does not publish which database a client has selected since it was made, so the server is asked. Where it is in database
 * 0 the SELECT of the client's options was refused, which ioredis ignores; any other is what the application has selected. Not every
 * change comes with an event (`call("SELECT", ...)`, RESET), so an answer holds only for now.
 */
const databaseOf = async (client: Redis): Promise<number> => {
  const wanted = client.options.db ?? 0
  const info = String(
    await client.call("CLIENT", "INFO").catch((error: Error) => {
      if (refusal.test(error.message)) return ""
      throw error
    })
  )
  if (info === "QUEUED") throw RedisDriver.inTransaction
  const [, actual] = / db=(\d+)/.exec(info) ?? []
  return actual === undefined || actual === "0" ? wanted : Number(actual)
}

/** Uses only the public API of ioredis, from the oldest to the newest version that this package admits. */
export const plainPath: CommandPath = {
  name: "plain",
  Connector,
  SentinelConnector,
  // ioredis 5.4 and later write CLIENT SETINFO on its own: a server that has turned the connection away would not be heard
  defaults: { disableClientInfo: true },
  // ioredis may end for good if it hears of a failover while it looks up the master
  sentinelDefaults: { failoverDetector: false },
  makeSend,
  socketOf,
  databaseOf,
  startupNodeOf: () => undefined
}
