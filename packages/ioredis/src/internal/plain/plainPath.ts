import { Command, type Redis } from "ioredis"
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
  startupNodeOf: () => undefined
}
