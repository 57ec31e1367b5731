import { Client } from "pg"
import { dirname, join } from "node:path"
import { realpath } from "node:fs/promises"
import { postgresqlOptions } from "../systems/postgresql.ts"
import type { Server } from "./Server.ts"
import { findProgram, freePorts, serverDirectory, startServer, versionedPrograms } from "./serverProcess.ts"

/** The directory of PostgreSQL's programs: a `postgres` on the PATH may be a link into it. */
const programs = async (): Promise<string | undefined> => {
  const server = await findProgram("postgres", await versionedPrograms("/usr/lib/postgresql"))
  if (server === undefined) return undefined
  const directory = dirname(await realpath(server))
  return (await findProgram("initdb", [directory])) === undefined ? undefined : directory
}

const postgresql = (setting: string, settings: ReadonlyArray<string>): Server => ({
  setting,
  missing: async () =>
    (await programs()) === undefined ? "there is no PostgreSQL here: apt-get install postgresql" : undefined,
  start: async () => {
    const bin = (await programs())!
    const directory = await serverDirectory("postgresql")
    const data = join(directory, "data")
    const [port] = await freePorts(1)
    const options = [
      ...[`port=${port}`, "listen_addresses=127.0.0.1", "unix_socket_directories=", "max_connections=200"],
      // counts statements
      "shared_preload_libraries=pg_stat_statements",
      ...settings
    ]
    const connect = async () => {
      const client = new Client(postgresqlOptions(port!))
      client.on("error", () => {})
      await client.connect()
      return client
    }
    const { pid, stop } = await startServer({
      prepare: [join(bin, "initdb"), "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C"],
      program: join(bin, "postgres"),
      directory,
      args: ["-D", data, ...options.flatMap((option) => ["-c", option])],
      signal: "QUIT",
      isReady: async () => (await connect()).end()
    })
    const client = await connect()
    await client.query("CREATE EXTENSION pg_stat_statements")
    await client.query(
      "CREATE TABLE leases (name text PRIMARY KEY, owner text NOT NULL, expires_at timestamptz NOT NULL)"
    )
    const { rows } = await client.query("SHOW server_version")
    return {
      version: `PostgreSQL ${String(rows[0].server_version).split(" ")[0]}`,
      place: { system: "postgresql", port: port!, otherPorts: [], processes: [pid] },
      clear: async () => {
        await client.query("DELETE FROM leases")
        // rows that were deleted would slow the next run down
        await client.query("VACUUM leases")
      },
      stop: async () => {
        await client.end()
        await stop()
      }
    }
  }
})

export const postgresqlDurable = postgresql("`fsync=on`, `synchronous_commit=on`", [])
export const postgresqlFast = postgresql("`fsync=off`, `synchronous_commit=off`", [
  "fsync=off",
  "synchronous_commit=off",
  "full_page_writes=off"
])
