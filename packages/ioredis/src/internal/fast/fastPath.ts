import type { Cluster, Command, Redis } from "ioredis"
import type { CommandPath, SendScript, StartupNode } from "../command/CommandPath.ts"
import { BufferedConnector } from "./BufferedConnector.ts"
import { BurstWriter } from "./BurstWriter.ts"
import { FastCommand } from "./FastCommand.ts"
import { SentinelConnector } from "./SentinelConnector.ts"

/** The private part of ioredis' Cluster that is used here. */
interface ClusterInternals {
  readonly startupNodes: ReadonlyArray<string | number | StartupNode>
}

const makeSend = (client: Redis): SendScript => {
  const writer = new BurstWriter(client)
  return (request) => {
    const command = new FastCommand(request)
    writer.write(command as unknown as Command, request.script.isUrgent === true)
    return command
  }
}

/** Uses internals of ioredis for speed; only for versions in which {@link missingParts} finds none missing. */
export const fastPath: CommandPath = {
  name: "fast",
  Connector: BufferedConnector,
  SentinelConnector,
  defaults: {},
  // a failover reported by the sentinels ends a connection to a master that hangs
  sentinelDefaults: { failoverDetector: true },
  makeSend,
  socketOf: (client) => client.stream,
  startupNodeOf: (cluster: Cluster) => {
    const [node] = (cluster as unknown as ClusterInternals).startupNodes
    return typeof node === "object" ? node : undefined
  }
}
