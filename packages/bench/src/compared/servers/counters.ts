import type { RowDataPacket } from "mysql2/promise"
import { type Counters, ServerCounters } from "../../servers/ServerCounters.ts"
import type { Place } from "../../Place.ts"
import { fourLetters } from "./fourLetters.ts"
import { cpuMicrosOf } from "./processCpu.ts"

/** Counts the requests of all clients so far, over a connection of its own. */
type Requests = () => Promise<number>

const mariadbRequests = async ({ port }: Place): Promise<Requests> => {
  const { createConnection } = await import("mysql2/promise")
  const { mariadbOptions } = await import("../systems/mariadb.ts")
  const client = await createConnection(mariadbOptions(port, "locks"))
  let own = 0
  return async () => {
    const [rows] = await client.query<Array<RowDataPacket>>("SHOW GLOBAL STATUS LIKE 'Questions'")
    return Number(rows[0]!["Value"]) - own++
  }
}

const postgresqlRequests = async ({ port }: Place): Promise<Requests> => {
  const { Client } = await import("pg")
  const { postgresqlOptions } = await import("../systems/postgresql.ts")
  const client = new Client(postgresqlOptions(port))
  await client.connect()
  let own = 0
  return async () => {
    const { rows } = await client.query("SELECT coalesce(sum(calls), 0) AS calls FROM pg_stat_statements")
    return Number(rows[0].calls) - own++
  }
}

const sumOf = async (ports: ReadonlyArray<number>, count: (port: number) => Promise<number>): Promise<number> =>
  (await Promise.all(ports.map(count))).reduce((sum, requests) => sum + requests, 0)

const zookeeperRequests =
  ({ otherPorts, port }: Place): Requests =>
  () =>
    sumOf([port, ...otherPorts], async (port) =>
      Number(/zk_packets_received\s+(\d+)/.exec(await fourLetters(port, "mntr"))?.[1])
    )

const etcdRequests =
  ({ otherPorts, port }: Place): Requests =>
  () =>
    sumOf([port, ...otherPorts], async (port) => {
      const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
      let received = 0
      for (const [, count] of metrics.matchAll(/^grpc_server_msg_received_total\{[^}]*\} (\S+)$/gm)) {
        received += Number(count)
      }
      return received
    })

const requestsOf = (place: Place): Requests | Promise<Requests> => {
  switch (place.system) {
    case "mariadb":
      return mariadbRequests(place)
    case "postgresql":
      return postgresqlRequests(place)
    case "zookeeper":
      return zookeeperRequests(place)
    case "etcd":
      return etcdRequests(place)
    case "redis":
      throw new Error("Redis counts its commands one by one")
  }
}

/** Reads the counters of whatever runs at a place. */
export const countersOf = async (place: Place): Promise<Counters> => {
  if (place.system === "redis") return new ServerCounters([place.port, ...place.otherPorts], place.replicaPorts)
  const requests = await requestsOf(place)
  return {
    read: async () => ({
      calls: new Map([["request", await requests()]]),
      cpuMicros: await cpuMicrosOf(place.processes ?? [])
    })
  }
}
