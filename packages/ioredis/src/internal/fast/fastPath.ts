import type { Cluster, Command, Redis } from "ioredis"
import type { CommandPath, SendScript, StartupNode } from "../command/CommandPath.ts"
import { BufferedConnector } from "./BufferedConnector.ts"
import { BurstWriter } from "./BurstWriter.ts"
import { FastCommand } from "./FastCommand.ts"
import { SentinelConnector } from "./SentinelConnector.ts"

/** The private parts of ioredis' clients that are used here. */
interface ClientInternals {
  readonly condition: { readonly select?: number } | null
  /** While it reconnects: what it selects again then. */
  readonly prevCondition: { readonly select?: number } | null
}
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
  databaseOf: async (client) => {
    const { condition, prevCondition } = client as unknown as ClientInternals
    return (prevCondition ?? condition)?.select ?? client.options.db ?? 0
  },
  startupNodeOf: (cluster: Cluster) => {
    const [node] = (cluster as unknown as ClusterInternals).startupNodes
    return typeof node === "object" ? node : undefined
  }
}
